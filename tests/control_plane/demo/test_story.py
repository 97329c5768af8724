"""Demo story: it conforms to the contract, breaks no invariant, and is always the same."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from guardwave.control_plane.core.clock import NANOSECONDS, to_ns
from guardwave.control_plane.demo.story import GUARD, VERSION, Fleet, simulated_events
from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.model.otlp_values import LogItem, ResourceLogs, ScopeLogs
from guardwave.control_plane.ingest.model.records import LoopDetected
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.control_plane.stores.evidence.delta.prompt_events import LoopDelta
from guardwave.control_plane.stores.evidence.delta.request import PromptEvent
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.vocabulary import Cohort, Decision, LoopType, Mode, Outcome

KEY = b"k" * 32
DAY = date(2026, 11, 28)
NIGHT = datetime(2026, 11, 29, 6, tzinfo=UTC)
FLEET = Fleet("internal", size=60, prompts_a_day=6.0, live_day=DAY)
MODES = pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])


def prompts(mode: Mode, fleet: Fleet = FLEET, day: date = DAY):
    return [prompt for owner in fleet.owners() for prompt in fleet.prompts(owner, day, mode)]


@MODES
def test_every_moment_of_a_day_is_a_record_that_conforms_and_breaks_no_invariant(mode):
    items = []
    for prompt in prompts(mode):
        pseudonym = pseudonym_of(KEY, prompt.owner.name)
        assignment = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, mode, 1)
        assignment_id = issue(KEY, "internal", assignment)
        for event in simulated_events(prompt, mode=mode, assignment_id=assignment_id):
            at = to_ns(day_start(DAY)) + int(event.at_s * NANOSECONDS)
            items.append(LogItem(at, at, event.event_name, event.attributes, has_body=False))
    resource = {"service.version": VERSION, "deployment.environment.name": "internal"}
    batch = ResourceLogs(resource, (ScopeLogs("agent.guard", "1", tuple(items)),))
    decoded = read_logs([batch], RequestContext("internal", to_ns(NIGHT)))
    assert decoded.rejected == ()
    assert (decoded.ignored_by_reason, decoded.dropped_attributes) == ({}, 0)
    assert len(decoded.records) == len(items) > 500
    builder = EvidenceBuilder("internal", KEY, "producer")
    deltas = [builder.build(record) for record in decoded.records]
    assert [delta.violations for delta in deltas if delta.violations] == []
    events = [event for delta in deltas for event in delta.events]
    of_prompts = [event for event in events if isinstance(event, PromptEvent)]
    judged = [event for event in of_prompts if not isinstance(event.delta, LoopDelta)]
    assert all(event.is_conforming for event in judged)
    loops = [record for record in decoded.records if isinstance(record, LoopDetected)]
    assert (len(judged), len(events) - len(of_prompts)) == (len(items) - len(loops), len(loops))
    assert len(of_prompts) - len(judged) == sum(record.guard is None for record in loops) > 0


@MODES
def test_the_story_is_the_same_on_every_date(mode):
    later = replace(FLEET, live_day=DAY + timedelta(days=400))
    first, second = prompts(mode), prompts(mode, later, DAY + timedelta(days=400))
    assert [replace(prompt, prompt_id="") for prompt in first] == [
        replace(prompt, prompt_id="") for prompt in second
    ]


def test_when_a_prompt_begins_does_not_depend_on_the_mode():
    assert [prompt.start_s for prompt in prompts(Mode.SHADOW)] == [
        prompt.start_s for prompt in prompts(Mode.ENFORCE)
    ]


def test_only_enforce_stops_and_only_after_a_warning():
    assert all(
        prompt.outcome is not Outcome.GUARD_STOPPED
        for mode in (Mode.SHADOW, Mode.WARN)
        for prompt in prompts(mode)
    )
    enforced = prompts(Mode.ENFORCE)
    stopped = [prompt for prompt in enforced if prompt.outcome is Outcome.GUARD_STOPPED]
    assert stopped
    for prompt in stopped:
        decisions = [transition.decision for transition in prompt.transitions]
        assert decisions == [Decision.TRACKED, Decision.WARNED, Decision.STOPPED]


def test_a_limit_of_the_host_ends_the_same_few_prompts_in_every_mode():
    by_mode = [prompts(mode, replace(FLEET, size=300)) for mode in Mode]
    limited = [
        [(prompt.prompt_id, prompt.ended_by) for prompt in day if prompt.outcome is Outcome.LIMIT]
        for day in by_mode
    ]
    assert all(found == limited[0] for found in limited)
    assert 0.002 < len(limited[0]) / len(by_mode[0]) < 0.01
    assert {loop for _, loop in limited[0]} == {
        LoopType.TOTAL_TOOL_CALLS,
        LoopType.INVALID_TOOL_PARAMS,
    }
