"""Checks of qwen-code's telemetry: invariants, coverage, content and rejected items."""

from datetime import timedelta

import pytest

from guardwave.control_plane.stores.evidence.delta.request import UNTRUSTED_VIOLATION
from guardwave.reducer.rollout.days import DayFloors, why_incomplete
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.hosts import partial_of
from tests.support.latches import is_latched, recorded_invariants
from tests.support.otlp.qwen import (
    GUARD_EVENT,
    Json,
    Receiver,
    attribute,
    cases,
    changed,
    edited,
    event_of,
    of_guard,
    unwarned,
)
from tests.support.worlds import ENVIRONMENT, GUARD

SHADOW = cases()["shadow-repeat_fail"]
ENFORCE = cases()["enforce-repeat_fail"]


def latched(receiver: Receiver) -> set[str]:
    """Return the invariants whose violations latched the environment."""
    return set(recorded_invariants(receiver.context)) if is_latched(receiver.context) else set()


def text(value: str) -> Json:
    return {"stringValue": value}


@pytest.mark.parametrize("name", sorted(cases()))
def test_no_recorded_case_violates_anything(store, name):
    receiver = Receiver(store, cases()[name])
    receiver.send_all(cases()[name].bodies)
    suspicions = receiver.context.suspects.overdue(ENVIRONMENT, receiver.now + timedelta(minutes=5))
    assert (latched(receiver), suspicions) == (set(), ())


@pytest.mark.parametrize(
    ("key", "value", "invariant"),
    [
        pytest.param("mode", "enforce", Invariant.MODE_MISMATCH, id="a mode above its assignment"),
        pytest.param(
            "terminal_status",
            "cancelled",
            Invariant.CANCELLED_COUNTED,
            id="a cancelled call",
        ),
        pytest.param(
            "execution_status",
            "not_started",
            Invariant.INELIGIBLE_COUNTED,
            id="a call counted that never ran",
        ),
        pytest.param("function_args", "{}", Invariant.SENSITIVE_FIELD, id="arguments"),
        pytest.param("error.message", "no", Invariant.SENSITIVE_FIELD, id="the text of an error"),
        pytest.param("note", "x" * 129, Invariant.SENSITIVE_FIELD, id="a long string"),
    ],
)
def test_a_guards_record_that_breaks_an_invariant_latches(store, key, value, invariant):
    receiver = Receiver(store, SHADOW)
    edit = of_guard(lambda item: changed(item, key, text(value)))
    receiver.send_all(SHADOW.edited_logs(edit))
    assert latched(receiver) == {invariant}


def test_content_on_a_guards_record_that_is_rejected_latches_too(store):
    receiver = Receiver(store, SHADOW)

    def broken(item: Json) -> Json:
        return changed(changed(item, "decision", text("guessed")), "stack", text("at x"))

    answers = [receiver.send(body) for body in SHADOW.edited_logs(of_guard(broken))]
    assert sum(partial_of(answer)[0] for answer in answers) == 9
    assert latched(receiver) == {Invariant.SENSITIVE_FIELD}


@pytest.mark.parametrize("key", ["prompt_id", "candidate_ordinal", "execution_error_type"])
def test_what_a_point_must_not_carry_latches(store, key):
    receiver = Receiver(store, SHADOW)

    def named(metric: Json) -> list[Json]:
        if not metric["name"].startswith("qwen-code.repeated"):
            return [metric]
        points = [changed(point, key, text("x")) for point in metric["sum"]["dataPoints"]]
        return [{**metric, "sum": {**metric["sum"], "dataPoints": points}}]

    metrics = [body for body in SHADOW.bodies if body.signal == "metrics"]
    receiver.send_all([edited(body, named) for body in metrics])
    assert latched(receiver) == {Invariant.SENSITIVE_FIELD}


def test_an_attribute_that_a_collector_adds_is_dropped_and_counted(store):
    receiver = Receiver(store, SHADOW)
    edit = of_guard(lambda item: changed(item, "k8s.pod.name", text("pod-7")))
    receiver.send_all(SHADOW.edited_logs(edit))
    assert latched(receiver) == set()
    (row,) = receiver.rows()
    assert row.would_stopped == 1
    before = receiver.health()["dropped_attributes"]
    store.flushall()
    plain = Receiver(store, SHADOW)
    plain.send_all(SHADOW.logs)
    assert before - plain.health()["dropped_attributes"] == 9


def overdue(receiver: Receiver) -> set[Invariant]:
    """Return the delayed invariants that are due to be decided five minutes on."""
    found = receiver.context.suspects.overdue(ENVIRONMENT, receiver.now + timedelta(minutes=5))
    return {violation.invariant for violation in found}


def test_a_stop_that_reports_no_warning_before_it_is_a_violation(store):
    receiver = Receiver(store, ENFORCE)
    receiver.send_all(ENFORCE.edited_logs(of_guard(unwarned)))
    assert overdue(receiver) == {Invariant.STOP_WITHOUT_WARN}


def test_a_stop_after_a_warning_whose_record_was_lost_is_none(store):
    receiver = Receiver(store, ENFORCE)
    lost = of_guard(lambda item: None if attribute(item, "decision") == "warned" else item)
    receiver.send_all(ENFORCE.edited_logs(lost))
    assert overdue(receiver) == set()


def test_a_stop_after_unreliable_input_is_a_violation(store):
    receiver = Receiver(store, ENFORCE)

    def unreliable(item: Json) -> Json:
        if attribute(item, "decision") != "warned":
            return item
        item = changed(item, "decision", text("reset"))
        return changed(item, "reset_reason", text("unreliable_input"))

    receiver.send_all(ENFORCE.edited_logs(of_guard(unreliable)))
    assert Invariant.ENFORCED_ON_UNRELIABLE_INPUT in overdue(receiver)


@pytest.mark.parametrize(
    ("kept", "covered"),
    [
        pytest.param(9, 1, id="all records came"),
        pytest.param(8, 0, id="one of nine is missing"),
        pytest.param(0, 0, id="none came"),
    ],
)
def test_a_day_is_covered_as_far_as_the_guards_counter_shows_records(store, kept, covered):
    receiver = Receiver(store, SHADOW)
    count = iter(range(9))
    dropping = of_guard(lambda item: item if next(count) < kept else None)
    receiver.send_all(SHADOW.edited_logs(dropping))
    receiver.send_all([body for body in SHADOW.bodies if body.signal != "logs"])
    evidence = receiver.context.evidence
    (day,) = evidence.days(ENVIRONMENT)
    evidence.seal(ENVIRONMENT, day, at=receiver.now, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(ENVIRONMENT, [day])
    assert (sealed.ended, sealed.covered) == (1, covered)


@pytest.mark.parametrize(
    ("records", "counter", "reason"),
    [
        pytest.param(True, True, None, id="records and counter"),
        pytest.param(True, False, "shows 0 of 9 transitions", id="no counter"),
        pytest.param(False, False, "1 ended prompt called tools", id="neither of them"),
    ],
)
def test_coverage_of_a_day_without_the_guards_counter_is_not_known(store, records, counter, reason):
    receiver = Receiver(store, SHADOW)
    kept = of_guard(lambda item: item if records else None)
    receiver.send_all(SHADOW.edited_logs(kept))
    if counter:
        receiver.send_all([body for body in SHADOW.bodies if body.signal == "metrics"])
    evidence = receiver.context.evidence
    (day,) = evidence.days(ENVIRONMENT)
    evidence.seal(ENVIRONMENT, day, at=receiver.now, longest_outage_seconds=0.0)
    (sealed,) = evidence.sealed_days(ENVIRONMENT, [day])
    sentence = why_incomplete(sealed, (), floors=DayFloors(contract=0.99, coverage=0.99))
    if reason is None:
        assert sentence is None
    else:
        assert sentence is not None
        assert sentence.startswith("coverage is not known")
        assert reason in sentence


def test_how_tools_ran_is_volume_under_the_mode_of_the_assignment(store):
    receiver = Receiver(store, ENFORCE)
    receiver.send_all(ENFORCE.bodies)
    (day,) = receiver.context.evidence.days(ENVIRONMENT)
    counted = receiver.context.evidence.counters(ENVIRONMENT, day)
    ran = {
        (stratum.guard, stratum.mode): value
        for (stratum, name), value in counted.items()
        if name == "agent.guard.tool.executions{execution.status=error}"
    }
    assert ran == {(GUARD, Mode.ENFORCE): 9}


def test_the_counter_of_two_sessions_in_one_process_adds_up(store):
    case = cases()["identity"]
    receiver = Receiver(store, case)
    receiver.send_all(case.bodies)
    (day,) = receiver.context.evidence.days(ENVIRONMENT)
    counted = receiver.context.evidence.counters(ENVIRONMENT, day)
    ran = [value for (_, name), value in counted.items() if "executions" in name]
    assert sum(ran) == 12


def test_what_a_subagent_answered_adds_tokens_and_no_turn(store):
    receiver = Receiver(store, SHADOW)

    def of_subagent(item: Json) -> list[Json]:
        if event_of(item) != "qwen-code.api_response":
            return [item]
        other = changed(item, "response_id", text("other"))
        return [item, changed(other, "subagent_name", text("Explore"))]

    receiver.send_all(SHADOW.edited_logs(of_subagent))
    (row,) = receiver.rows()
    assert (row.completed, row.turns, row.tokens, row.covered) == (1, 13, 2 * 14378, 1)


@pytest.mark.parametrize(
    ("event", "edit", "fault"),
    [
        pytest.param(
            "qwen-code.conversation_finished",
            lambda item: {**item, "traceId": ""},
            "neither a trace id nor the attribute prompt_id",
            id="an end of no prompt",
        ),
        pytest.param(
            "qwen-code.conversation_finished",
            lambda item: changed(item, "turnCount", text("many")),
            "turnCount is 'many'",
            id="turns that are no number",
        ),
        pytest.param(
            "session.start",
            lambda item: changed(item, "session.id", {}),
            "session.id",
            id="no session",
        ),
        pytest.param(
            GUARD_EVENT,
            lambda item: changed(item, "mode", {}),
            "mode is missing",
            id="a decision without a mode",
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_rejected_by_name(store, event, edit, fault):
    receiver = Receiver(store, SHADOW)

    def apply(item: Json) -> list[Json]:
        return [edit(item)] if event_of(item) == event else []

    rejected = [partial_of(receiver.send(body)) for body in SHADOW.edited_logs(apply)]
    assert sum(count for count, _ in rejected) > 0
    assert any(fault in message for _, message in rejected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("qwen-code.turn_status", text("dreaming"), id="a status not known"),
        pytest.param("qwen-code.turn_status", {}, id="no status"),
        pytest.param("interaction.duration_ms", {"intValue": -1}, id="a negative duration"),
        pytest.param("interaction.duration_ms", text("long"), id="a duration that is no number"),
    ],
)
def test_a_span_that_does_not_report_how_the_prompt_ended_is_rejected(store, key, value):
    receiver = Receiver(store, ENFORCE)
    (spans,) = [body for body in ENFORCE.bodies if body.signal == "traces"]
    answer = receiver.send(edited(spans, lambda item: [changed(item, key, value)]))
    assert b'"rejectedSpans":"1"' in answer.body
    assert key.encode() in answer.body
    assert receiver.rows() == ()


def test_a_violation_of_an_untrusted_producer_is_only_counted(store):
    receiver = Receiver(store, SHADOW)
    receiver.host = type(receiver.host)(receiver.context, is_trusted=False)
    edit = of_guard(lambda item: changed(item, "mode", text("enforce")))
    receiver.send_all(SHADOW.edited_logs(edit))
    assert latched(receiver) == set()
    assert receiver.health()[f"{UNTRUSTED_VIOLATION}:{Invariant.MODE_MISMATCH}"] == 9
