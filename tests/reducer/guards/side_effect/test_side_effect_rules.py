"""Side-effect rules: their order and their boundaries."""

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.side_effect import (
    Action,
    FirstUse,
    Idempotency,
    IdempotencyWindow,
    Layer,
    ToolDeclaration,
    Verdict,
)
from guardwave.reducer.guards.side_effect.state import CallStatus
from guardwave.reducer.vocabulary import ExecutionStatus
from tests.support.guards.side_effects import ERROR, Host

BLOCK, REFLECT, SUSPEND, WARN = Action.BLOCK, Action.REFLECT, Action.SUSPEND, Action.WARN


def test_the_record_of_a_finished_call_outranks_its_declaration():
    host = Host()
    harmless = ToolDeclaration(side_effect=False)
    host.run("c0")
    assert host.propose("c1", declaration=harmless).record is CallStatus.RUNNING
    host.settle("c1")
    assert host.propose("c0").verdict is Verdict.REPLAY
    step = host.propose("c1", declaration=harmless)
    assert (step.verdict, step.record) == (Verdict.REPLAY, CallStatus.SUCCEEDED)
    assert step.text is None


@pytest.mark.parametrize(
    ("action", "finish", "status", "text"),
    [
        pytest.param(REFLECT, None, "reflected", messages.SIDE_EFFECT_NUDGE, id="the same nudge"),
        pytest.param(SUSPEND, False, "denied", messages.SIDE_EFFECT_REFUSED, id="the same denial"),
    ],
)
def test_a_replayed_record_has_the_text_it_had(action, finish, status, text):
    host = Host(action=action)
    host.run("c1")
    host.run("c2")
    if finish is not None:
        host.answer("c2", finish)
    step = host.propose("c2")
    assert (step.verdict, step.record, step.text) == (Verdict.REPLAY, status, text)
    assert (step.transitions, step.incident) == ((), None)


def test_an_open_question_is_reported_again_but_not_asked_again():
    host = Host()
    host.run("c1")
    asked = host.run("c2")
    before = host.guard
    step = host.propose("c2")
    assert (step.verdict, step.record) == (Verdict.SUSPEND, CallStatus.SUSPENDED)
    assert (step.question, step.incident, step.transitions) == (None, None, ())
    assert (step.repeat, step.text) == (asked.repeat, messages.SIDE_EFFECT_WAITING)
    assert host.guard == before


@pytest.mark.parametrize(
    "declaration",
    [
        pytest.param(ToolDeclaration(idempotency_key_fields=("order",)), id="key fields"),
        pytest.param(ToolDeclaration(idempotency=Idempotency.ARGS), id="keyed by arguments"),
        pytest.param(
            ToolDeclaration(idempotency_window=IdempotencyWindow.THREAD), id="window: thread"
        ),
        pytest.param(
            ToolDeclaration(idempotency_window=IdempotencyWindow.CROSS_RUN), id="window: cross-run"
        ),
        pytest.param(
            ToolDeclaration(side_effect=True, idempotency_key_fields=("order",)),
            id="a key and a declared side effect",
        ),
    ],
)
def test_a_keyed_tool_is_exempt_and_leaves_no_trace(declaration):
    host = Host(action=BLOCK)
    before = host.guard
    for call_id in ("c1", "c2", "c2"):
        assert host.run(call_id, declaration=declaration).verdict is Verdict.EXEMPT
    assert host.guard == before


@pytest.mark.parametrize(
    ("side_effect", "idempotent", "guarded"),
    [
        pytest.param(None, None, True, id="nothing declared"),
        pytest.param(None, False, True, id="not idempotent"),
        pytest.param(None, True, False, id="idempotent"),
        pytest.param(True, None, True, id="a side effect"),
        pytest.param(True, True, True, id="a side effect beats idempotent"),
        pytest.param(False, False, False, id="no side effect beats not idempotent"),
        pytest.param(False, None, False, id="no side effect"),
    ],
)
def test_declarations_have_an_order(side_effect, idempotent, guarded):
    host = Host(action=BLOCK)
    declaration = ToolDeclaration(side_effect=side_effect, idempotent=idempotent)
    host.run("c1", declaration=declaration)
    step = host.propose("c2", declaration=declaration)
    assert step.verdict is (Verdict.BLOCK if guarded else Verdict.EXECUTE)


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        pytest.param(1100, Verdict.BLOCK, id="exactly the ttl is still a repeat"),
        pytest.param(1101, Verdict.EXECUTE, id="one more is new work"),
        pytest.param(900, Verdict.BLOCK, id="a clock that went back"),
    ],
)
def test_the_ttl_is_strict(at, verdict):
    host = Host(action=BLOCK, ttl_ms=100)
    host.run("c1", at=1000)
    assert host.propose("c2", at=at).verdict is verdict


def test_a_ttl_of_nothing_ends_with_the_millisecond():
    host = Host(action=BLOCK, ttl_ms=0)
    host.run("c1", at=5)
    assert host.run("c2", at=5).verdict is Verdict.BLOCK
    assert host.run("c3", at=6).verdict is Verdict.EXECUTE


def test_after_the_ttl_the_new_run_is_the_first_by_id_and_time():
    host = Host(action=BLOCK, ttl_ms=100)
    host.run("c1", at=0)
    host.run("c2", at=101)
    step = host.propose("c3", at=201)
    assert step.repeat is not None
    assert (step.repeat.first.call_id, step.repeat.first.at_ms) == ("c2", 101)


def test_a_run_counts_from_when_it_succeeded():
    host = Host(action=BLOCK, ttl_ms=100)
    host.propose("c1", at=0)
    host.settle("c1", at=50)
    assert host.propose("c2", at=150).verdict is Verdict.BLOCK


def test_a_warned_repeat_does_not_renew_the_window():
    host = Host(action=WARN, ttl_ms=100)
    host.run("c1", at=0)
    assert host.run("c2", at=100).verdict is Verdict.EXECUTE_WITH_INCIDENT
    assert host.run("c3", at=101).verdict is Verdict.EXECUTE


def test_an_approved_repeat_does_not_renew_the_window():
    host = Host(ttl_ms=100)
    host.run("c1", at=0)
    host.run("c2", at=50)
    host.answer("c2", True, at=90)
    host.settle("c2", at=90)
    step = host.propose("c3", at=100)
    assert step.repeat is not None
    assert step.repeat.first.call_id == "c1"
    assert host.propose("c4", at=101).verdict is Verdict.EXECUTE


def test_a_new_run_in_flight_after_the_ttl_has_twins_of_its_own():
    host = Host(action=BLOCK, ttl_ms=100)
    host.run("c1", at=0)
    assert host.propose("c2", at=200).verdict is Verdict.EXECUTE
    step = host.propose("c3", at=201)
    assert (step.verdict, step.repeat and step.repeat.first.call_id) == (Verdict.BLOCK, "c2")


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(status, id="unknown" if status is None else status.value)
        for status in [None, *ExecutionStatus]
        if status is not ExecutionStatus.SUCCESS
    ],
)
def test_only_a_success_is_a_first_run(status):
    host = Host(action=BLOCK)
    assert host.propose("c1").record is CallStatus.RUNNING
    assert host.settle("c1", status=status).record is CallStatus.FAILED
    assert host.propose("c1").verdict is Verdict.EXECUTE
    assert host.settle("c1", status=status).record is CallStatus.FAILED
    assert host.propose("c2").verdict is Verdict.EXECUTE


def test_a_call_settles_once():
    host = Host()
    host.propose("c1")
    host.settle("c1")
    before = host.guard
    step = host.settle("c1", status=ERROR)
    assert (step.record, step.transitions, host.guard) == (CallStatus.SUCCEEDED, (), before)
    assert host.settle("stranger").record is None
    assert host.guard == before


@pytest.mark.parametrize(
    ("action", "second", "third"),
    [
        pytest.param(Action.OFF, Verdict.EXECUTE, Verdict.EXECUTE, id="off: run"),
        pytest.param(
            WARN, Verdict.EXECUTE_WITH_INCIDENT, Verdict.EXECUTE_WITH_INCIDENT, id="warn: run"
        ),
        pytest.param(REFLECT, Verdict.REFLECT, Verdict.BLOCK, id="reflect: one nudge, then block"),
        pytest.param(BLOCK, Verdict.BLOCK, Verdict.BLOCK, id="block"),
        pytest.param(SUSPEND, Verdict.SUSPEND, Verdict.SUSPEND, id="suspend: each is asked about"),
    ],
)
def test_parallel_twins_of_unfinished_work(action, second, third):
    host = Host(action=action)
    steps = [host.propose(call_id) for call_id in ("c1", "c2", "c3")]
    assert [step.verdict for step in steps] == [Verdict.EXECUTE, second, third]
    assert {step.repeat.first.call_id for step in steps if step.repeat is not None} <= {"c1"}


def test_a_twin_reports_the_run_in_flight():
    host = Host()
    host.propose("c1", at=3, channel="mail")
    step = host.propose("c2", at=4)
    assert step.repeat is not None
    assert step.repeat.first == FirstUse("c1", "r1", 3, "mail")
    assert step.repeat.layer is Layer.ARGUMENTS


def test_a_twin_that_succeeds_when_the_first_one_failed_is_the_first_run():
    host = Host(action=WARN)
    host.propose("c1")
    host.propose("c2")
    host.settle("c1", status=ERROR)
    host.settle("c2", at=7)
    step = host.propose("c3")
    assert step.repeat is not None
    assert (step.repeat.first.call_id, step.repeat.first.at_ms) == ("c2", 7)


def test_the_first_to_succeed_stays_the_first():
    host = Host(action=WARN)
    host.propose("c1")
    host.propose("c2")
    host.settle("c2")
    host.settle("c1")
    step = host.propose("c3")
    assert step.repeat is not None
    assert step.repeat.first.call_id == "c2"


def test_a_failed_first_run_leaves_its_twin_in_flight_as_the_one_to_repeat():
    host = Host(action=WARN)
    host.propose("c1")
    host.propose("c2")
    host.settle("c1", status=ERROR)
    step = host.propose("c3")
    assert (step.verdict, step.repeat and step.repeat.first.call_id) == (
        Verdict.EXECUTE_WITH_INCIDENT,
        "c2",
    )


@pytest.mark.parametrize(
    "action", [pytest.param(rung, id=rung) for rung in (REFLECT, BLOCK, SUSPEND)]
)
def test_a_call_that_is_running_is_not_started_under_the_same_id_again(action):
    host = Host(action=action)
    host.propose("c1")
    step = host.propose("c1")
    assert (step.verdict, step.record, step.question) == (Verdict.BLOCK, None, None)
    assert host.settle("c1").record is CallStatus.SUCCEEDED


def test_a_running_call_that_is_started_again_in_warn_is_in_flight_once():
    host = Host(action=WARN)
    host.propose("c1")
    assert host.propose("c1").verdict is Verdict.EXECUTE_WITH_INCIDENT
    (track,) = host.guard.tracks.values()
    assert len(track.running) == 1
    host.settle("c1", status=ERROR)
    assert host.propose("c2").verdict is Verdict.EXECUTE


def test_a_nudge_still_counts_after_the_ttl():
    host = Host(action=REFLECT, ttl_ms=100)
    host.run("c1")
    assert host.run("c2").verdict is Verdict.REFLECT
    assert host.run("c3", at=200).verdict is Verdict.EXECUTE
    assert host.run("c4", at=201).verdict is Verdict.BLOCK
