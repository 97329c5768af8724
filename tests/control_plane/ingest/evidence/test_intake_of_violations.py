"""Violations of accepted records: latched before the answer, once, under a verified id."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.core.state import Action
from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.reducer.catalogue import CATALOGUE
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode
from tests.support.hosts import (
    Event,
    Host,
    Prompt,
    assignment_for,
    issue_id,
    logs,
    partial_of,
    pseudonym_in,
)
from tests.support.latches import (
    idle_violations,
    is_latched,
    latch_of,
    recorded_invariants,
    release,
)
from tests.support.otlp.bodies import counter_request, decode_logs
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, environment_of

TODAY = NOW.date()
AT = NOW - timedelta(hours=2)

# The decision of a record that breaks the invariant, and its other attributes.
BROKEN: Mapping[Invariant, tuple[str, Mapping[str, Value]]] = {
    Invariant.CONTRACT_VIOLATION: ("reset", {"reset__reason": "contract_violation"}),
    Invariant.CANCELLED_COUNTED: ("tracked", {"terminal__status": "cancelled"}),
    Invariant.INELIGIBLE_COUNTED: ("tracked", {"execution__status": "not_started"}),
    Invariant.INCOMPLETE_BATCH_DECISION: ("tracked", {"batch__complete": False}),
    Invariant.MODE_MISMATCH: ("tracked", {"mode": "enforce"}),
    Invariant.SENSITIVE_FIELD: ("tracked", {"tool__arguments": "rm -rf"}),
}
EACH = pytest.mark.parametrize(
    "invariant", [pytest.param(name, id=name.replace("_", " ")) for name in BROKEN]
)


@pytest.fixture
def phase():
    return Mode.ENFORCE


def breaking(context, invariant: Invariant, *, prompt_id: str = "p-1") -> Event:
    """Return a transition of a treated owner that breaks an invariant."""
    wave = context.environments.wave(ENVIRONMENT, GUARD, 2)
    treated = context.environments.roster(ENVIRONMENT, GUARD, wave).pseudonyms[-1]
    assignment = Assignment(GUARD, treated, 2, Cohort.CONTROL, Mode.WARN, 2)
    prompt = Prompt(prompt_id, [issue_id(context, assignment)], AT, mode=Mode.WARN)
    decision, changed = BROKEN[invariant]
    return prompt.transition(1, decision, **changed)


def rollout(context):
    found = context.environments.rollout(ENVIRONMENT, GUARD)
    assert found is not None
    return found


def audit(context, action: Action) -> int:
    entries = context.environments.audit_entries(ENVIRONMENT)
    return sum(1 for entry in entries if entry["action"] == action)


@EACH
def test_a_trusted_violation_latches_the_environment_before_the_answer(context, host, invariant):
    answer = host.send(logs([breaking(context, invariant)]))
    assert partial_of(answer) == (0, "")
    held = environment_of(context)
    assert idle_violations(context) == {}
    assert held.latch is not None
    assert str(invariant).replace("_", " ") in held.latch.reason
    assert recorded_invariants(context) == [invariant]
    assert rollout(context).phase is Mode.SHADOW


@EACH
def test_the_record_that_shows_a_violation_is_evidence_too(context, host, invariant):
    event = breaking(context, invariant)
    start = Prompt("p-1", [str(event.attributes["agent.guard.assignment.id"])], AT).start()
    host.send(logs([start, event]))
    (row,) = context.evidence.owner_days(ENVIRONMENT, GUARD, 2, [TODAY])
    assert (row.cohort, row.started) == (Cohort.CONTROL, 1)


def test_a_violation_closes_the_wave_opens_a_shadow_wave_and_draws_again(context, host):
    before = rollout(context)
    host.send(logs([breaking(context, Invariant.CONTRACT_VIOLATION)]))
    after = rollout(context)
    closed = context.environments.wave(ENVIRONMENT, GUARD, before.wave)
    opened = context.environments.wave(ENVIRONMENT, GUARD, after.wave)
    assert closed is not None
    assert closed.closed_at == NOW
    assert opened is not None
    assert (opened.phase, opened.closed_at, after.wave) == (Mode.SHADOW, None, before.wave + 1)
    assert after.salt_epoch == before.salt_epoch + 1
    assert after.generation == before.generation + 1


def test_the_same_record_again_is_no_second_violation(context, host):
    request = logs([breaking(context, Invariant.CONTRACT_VIOLATION)])
    for _ in range(3):
        assert host.send(request).status == 200
    assert len(context.incidents.violations(ENVIRONMENT)) == 1
    assert audit(context, Action.LATCHED) == 1
    assert audit(context, Action.VIOLATION_RECORDED) == 0


def test_the_same_record_after_the_acknowledgement_latches_nothing(context, host):
    request = logs([breaking(context, Invariant.CONTRACT_VIOLATION)])
    host.send(request)
    release(context)
    entries = context.environments.audit_entries(ENVIRONMENT)
    host.send(request)
    assert not is_latched(context)
    assert context.environments.audit_entries(ENVIRONMENT) == entries


def test_a_further_violation_is_recorded_under_the_latch_that_holds(context, host):
    host.send(logs([breaking(context, Invariant.CONTRACT_VIOLATION)]))
    first = latch_of(context)
    host.send(logs([breaking(context, Invariant.MODE_MISMATCH, prompt_id="p-2")]))
    second = latch_of(context)
    assert (first.rollback, first.newest_violation) == (1, 1)
    assert (second.rollback, second.newest_violation) == (1, 2)
    assert second.reason == first.reason
    assert (audit(context, Action.LATCHED), audit(context, Action.VIOLATION_RECORDED)) == (1, 1)


def test_many_violations_of_one_body_are_one_rollback(context, host):
    host.send(logs([breaking(context, name, prompt_id=name) for name in BROKEN]))
    assert {violation.invariant for violation in context.incidents.violations(ENVIRONMENT)} == set(
        BROKEN
    )
    assert len(context.incidents.rollbacks(ENVIRONMENT)) == 1
    assert audit(context, Action.LATCHED) == 1


@EACH
def test_an_untrusted_violation_is_counted_and_changes_nothing(context, invariant):
    stranger = Host(context, is_trusted=False)
    before = environment_of(context), rollout(context)
    for _ in range(3):
        assert partial_of(stranger.send(logs([breaking(context, invariant)]))) == (0, "")
    assert (environment_of(context), rollout(context)) == before
    assert context.incidents.violations(ENVIRONMENT) == ()
    assert idle_violations(context) == {f"untrusted_violation:{invariant}": 1}


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "untrusted"])
@pytest.mark.parametrize(
    "invariant", [pytest.param(name, id=name) for name in BROKEN if name != "mode_mismatch"]
)
def test_a_violation_without_an_id_is_counted_once(context, invariant, is_trusted):
    host = Host(context, is_trusted=is_trusted)
    decision, changed = BROKEN[invariant]
    event = Prompt("p-1", [], AT).transition(1, decision, **changed)
    for _ in range(3):
        assert partial_of(host.send(logs([event]))) == (0, "")
    assert idle_violations(context) == {f"unvouched_violation:{invariant}": 1}


def test_a_mode_that_no_id_assigned_is_no_mismatch(context, host):
    host.send(logs([Prompt("p-1", [], AT).transition(1, "tracked", mode="enforce")]))
    assert idle_violations(context) == {}


def test_bodies_without_an_id_are_counted_on_every_kind_of_event(context, host):
    prompt = Prompt("p-1", [], AT)
    attributes = {"agent.guard.prompt.id": "p-1", "agent.guard.loop.type": "identical_tool_call"}
    plain = [
        *(prompt.start(), prompt.end(), prompt.disruption()),
        Event("agent.guard.loop_detected", AT, attributes),
    ]
    events = [replace(event, body="the whole prompt") for event in plain]
    for _ in range(2):
        assert partial_of(host.send(logs(events))) == (0, "")
    assert idle_violations(context) == {"unvouched_violation:sensitive_field": 4}
    assert not is_latched(context)


def test_an_untrusted_prompt_of_two_guards_is_one_violation(context):
    pseudonym = pseudonym_in(context, "owner-1")
    ids = [
        issue_id(context, Assignment(guard, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1))
        for guard in (GUARD, "identical_call")
    ]
    start = replace(Prompt("p-1", ids, AT).start(), body="the whole prompt")
    Host(context, is_trusted=False).send(logs([start]))
    assert idle_violations(context) == {"untrusted_violation:sensitive_field": 1}


@EACH
@pytest.mark.parametrize("ids", [[], ["a1.forged"]], ids=["without an id", "under a forged id"])
def test_a_violation_without_a_verified_id_changes_nothing(context, host, invariant, ids):
    before = environment_of(context), rollout(context)
    decision, changed = BROKEN[invariant]
    host.send(logs([Prompt("p-1", ids, AT).transition(1, decision, **changed)]))
    assert (environment_of(context), rollout(context)) == before
    assert context.incidents.violations(ENVIRONMENT) == ()


@pytest.mark.parametrize("kind", ["start", "end", "disruption"])
def test_a_body_on_any_event_of_a_prompt_is_a_sensitive_field(context, host, kind):
    _, owner_id = assignment_for(context, "owner-1")
    event = getattr(Prompt("p-1", [owner_id], AT), kind)()
    host.send(logs([Event(event.name, event.at, event.attributes, body="the whole prompt")]))
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert found.invariant is Invariant.SENSITIVE_FIELD
    assert is_latched(context)


def test_a_body_on_a_loop_event_is_a_sensitive_field(context, host):
    assignment, owner_id = assignment_for(context, "owner-1")
    attributes = {
        "agent.guard.prompt.id": "p-1",
        "agent.guard.assignment.id": owner_id,
        "agent.guard.loop.type": "identical_tool_call",
    }
    loop = Event("agent.guard.loop_detected", AT, attributes, body="the text of the tool")
    for _ in range(2):
        assert partial_of(host.send(logs([loop]))) == (0, "")
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert (found.invariant, found.guard, found.mode) == (
        Invariant.SENSITIVE_FIELD,
        GUARD,
        assignment.mode,
    )
    counted = context.evidence.counters(ENVIRONMENT, TODAY)
    assert {counter: count for (_, counter), count in counted.items()} == {loop.name: 1}


def test_a_prompt_id_on_a_metric_point_is_a_sensitive_field(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    labels = {
        "agent.guard.name": GUARD,
        "agent.guard.mode": "shadow",
        "agent.guard.prompt.id": "p-1",
    }
    now_ns = int(AT.timestamp()) * 10**9
    request = counter_request(
        labels, as_int=1, time_unix_nano=now_ns, start_time_unix_nano=now_ns - 1
    )
    host.send(request)
    assert not is_latched(context)
    attribute = request.resource_metrics[0].resource.attributes.add(key="agent.guard.assignment.id")
    attribute.value.string_value = owner_id
    request.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0].as_int = 2
    host.send(request)
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert found.invariant is Invariant.SENSITIVE_FIELD


def reported(owner_id: str, *, value: int = 1):
    """Return a count of violations, as a host reports one that it found itself."""
    labels = {
        "agent.guard.name": GUARD,
        "agent.guard.mode": "warn",
        "agent.guard.invariant": "existing_guard_changed",
    }
    at = int(AT.timestamp()) * 10**9
    request = counter_request(
        labels,
        metric="agent.guard.violations",
        as_int=value,
        time_unix_nano=at,
        start_time_unix_nano=at - 1,
    )
    attribute = request.resource_metrics[0].resource.attributes.add(key="agent.guard.assignment.id")
    attribute.value.string_value = owner_id
    return request


def test_a_violation_that_a_host_reports_by_count_latches_once(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    assert host.send(reported(owner_id, value=0)).status == 200
    assert not is_latched(context)
    for _ in range(2):
        assert host.send(reported(owner_id)).status == 200
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert found.invariant is Invariant.EXISTING_GUARD_CHANGED
    assert is_latched(context)


def test_a_count_of_violations_without_a_verified_id_changes_nothing(context, host):
    for _ in range(2):
        host.send(reported("a1.forged"))
    assert idle_violations(context) == {"unvouched_violation:existing_guard_changed": 1}
    assert context.incidents.violations(ENVIRONMENT) == ()
    assert not is_latched(context)


def test_a_crash_between_latch_and_evidence_loses_neither(context, host):
    request = logs([breaking(context, Invariant.CANCELLED_COUNTED)])
    latch(context, ENVIRONMENT, violations_in(context, request))
    assert is_latched(context)
    assert context.evidence.days(ENVIRONMENT) == ()
    assert partial_of(host.send(request)) == (0, "")
    assert len(context.incidents.violations(ENVIRONMENT)) == 1
    assert context.evidence.days(ENVIRONMENT) == (TODAY,)


def violations_in(context, request) -> list[FoundViolation]:
    """Return the violations of a request as intake finds them, before it writes anything."""
    batches = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    decoded = read_logs(batches, RequestContext(ENVIRONMENT, context.clock.now_ns()))
    builder = EvidenceBuilder(
        ENVIRONMENT, bytes.fromhex(environment_of(context).tag_key), "producer"
    )
    return [
        violation for record in decoded.records for violation in builder.build(record).violations
    ]


def test_invariants_of_counting_apply_to_the_guards_that_declare_them(context, host):
    other = next(name for name, guard in CATALOGUE.items() if not guard.declares)
    pseudonym = pseudonym_in(context, "owner-1")
    owner_id = issue_id(context, Assignment(other, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1))
    prompt = Prompt("p-1", [owner_id], AT, guard=other)
    host.send(logs([prompt.transition(1, "tracked", terminal__status="cancelled")]))
    assert context.incidents.violations(ENVIRONMENT) == ()
    assert not is_latched(context)


def test_a_record_without_a_status_is_a_contract_fault_and_no_violation(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    event = Prompt("p-1", [owner_id], AT).transition(
        1, "tracked", terminal__status=None, execution__status=None
    )
    host.send(logs([event]))
    assert context.incidents.violations(ENVIRONMENT) == ()
    context.evidence.seal(ENVIRONMENT, TODAY, at=NOW, longest_outage_seconds=0.0)
    (day,) = context.evidence.sealed_days(ENVIRONMENT, [TODAY])
    assert (day.records, day.conforming) == (1, 0)
