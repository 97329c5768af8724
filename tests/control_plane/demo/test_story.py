"""The demo's story is told in the words of the contract, breaks nothing, and is always the same."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from control_plane.clock import NANOSECONDS, to_ns
from control_plane.demo.story import GUARD, VERSION, Fleet, moments
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.otlp import LogItem, ResourceLogs, ScopeLogs
from control_plane.ingest.reading import Receiving, read_logs
from control_plane.ingest.records import LoopDetected
from control_plane.stores.evidence_events import PromptEvent
from control_plane.stores.prompt_news import Looped
from reducer.rollout.assignment import Assignment, issue
from reducer.rollout.days import day_start
from reducer.rollout.pseudonym import pseudonym_of
from reducer.vocabulary import Cohort, Decision, LoopType, Mode, Outcome

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
        assigned = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, mode, 1)
        assignment_id = issue(KEY, "internal", assigned)
        for moment in moments(prompt, mode=mode, assignment_id=assignment_id):
            at = to_ns(day_start(DAY)) + int(moment.at_s * NANOSECONDS)
            items.append(LogItem(at, at, moment.event_name, moment.attributes, has_body=False))
    resource = {"service.version": VERSION, "deployment.environment.name": "internal"}
    batch = ResourceLogs(resource, (ScopeLogs("agent.guard", "1", tuple(items)),))
    decoded = read_logs([batch], Receiving("internal", to_ns(NIGHT)))
    assert decoded.rejected == ()
    assert (decoded.ignored_by_reason, decoded.dropped_attributes) == ({}, 0)
    assert len(decoded.records) == len(items) > 500
    bookkeeper = Bookkeeper("internal", KEY, "producer")
    booked = [bookkeeper.book(record) for record in decoded.records]
    assert [each.violations for each in booked if each.violations] == []
    events = [event for each in booked for event in each.events]
    of_prompts = [event for event in events if isinstance(event, PromptEvent)]
    judged = [event for event in of_prompts if not isinstance(event.news, Looped)]
    assert all(event.is_conforming for event in judged)
    loops = [record for record in decoded.records if isinstance(record, LoopDetected)]
    assert (len(judged), len(events) - len(of_prompts)) == (len(items) - len(loops), len(loops))
    assert len(of_prompts) - len(judged) == sum(record.guard is None for record in loops) > 0


@MODES
def test_the_story_is_the_same_on_every_date(mode):
    later = replace(FLEET, live_day=DAY + timedelta(days=400))
    told, again = prompts(mode), prompts(mode, later, DAY + timedelta(days=400))
    assert [replace(each, prompt_id="") for each in told] == [
        replace(each, prompt_id="") for each in again
    ]


def test_when_a_prompt_begins_does_not_depend_on_the_mode():
    assert [each.start_s for each in prompts(Mode.SHADOW)] == [
        each.start_s for each in prompts(Mode.ENFORCE)
    ]


def test_only_enforce_stops_and_only_after_a_warning():
    assert all(
        each.outcome is not Outcome.GUARD_STOPPED
        for mode in (Mode.SHADOW, Mode.WARN)
        for each in prompts(mode)
    )
    stopped = [each for each in prompts(Mode.ENFORCE) if each.outcome is Outcome.GUARD_STOPPED]
    assert stopped
    for prompt in stopped:
        decisions = [each.decision for each in prompt.transitions]
        assert decisions == [Decision.TRACKED, Decision.WARNED, Decision.STOPPED]


def test_a_limit_of_the_host_ends_the_same_few_prompts_in_every_mode():
    told = [prompts(mode, replace(FLEET, size=300)) for mode in Mode]
    limited = [
        [(each.prompt_id, each.ended_by) for each in day if each.outcome is Outcome.LIMIT]
        for day in told
    ]
    assert all(each == limited[0] for each in limited)
    assert 0.002 < len(limited[0]) / len(told[0]) < 0.01
    assert {loop for _, loop in limited[0]} == {
        LoopType.TOTAL_TOOL_CALLS,
        LoopType.INVALID_TOOL_PARAMS,
    }
