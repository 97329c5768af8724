"""Side-effect modes: the calls that run and the transitions, for each row of the mode table."""

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.side_effect import (
    Action,
    DuplicateError,
    Incident,
    Layer,
    PromptStarted,
    SideEffectStep,
    Verdict,
)
from guardwave.reducer.guards.side_effect.state import CallStatus
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode, Route
from tests.support.guards.side_effects import Host, transition_words

IDLE, TRACKING, WARNED, LATCHED = GuardPhase
WARN_STEP = (TRACKING, WARNED, Decision.WARNED)


def second(mode, action, *, nudged=False):
    host = Host(mode, action=action)
    host.run("c1")
    if nudged:
        host.run("c2")
    return host, host.propose("c3")


@pytest.mark.parametrize("action", [pytest.param(action, id=action.value) for action in Action])
def test_off_neither_looks_nor_reports_whatever_the_rung(action):
    host, step = second(Mode.OFF, action)
    assert step == SideEffectStep(host.guard, Verdict.EXECUTE)
    assert host.guard == Host(Mode.OFF, action=action).guard


@pytest.mark.parametrize(
    ("action", "nudged", "expected"),
    [
        pytest.param("warn", False, [(TRACKING, WARNED, Decision.WOULD_WARN)], id="warn"),
        pytest.param("reflect", False, [(TRACKING, WARNED, Decision.WOULD_WARN)], id="nudge"),
        pytest.param("reflect", True, [(WARNED, LATCHED, Decision.WOULD_STOP)], id="after a nudge"),
        pytest.param("block", False, [(TRACKING, LATCHED, Decision.WOULD_STOP)], id="block"),
        pytest.param("suspend", False, [(TRACKING, WARNED, Decision.WOULD_SUSPEND)], id="suspend"),
        pytest.param("off", False, [], id="off"),
    ],
)
def test_in_shadow_the_repeat_runs_and_the_rung_is_reported(action, nudged, expected):
    _, step = second(Mode.SHADOW, Action(action), nudged=nudged)
    assert step.verdict is Verdict.EXECUTE
    assert transition_words(step) == expected
    assert (step.incident, step.question, step.error, step.text) == (None, None, None, None)


@pytest.mark.parametrize(
    ("action", "nudged", "expected"),
    [
        pytest.param("warn", False, [WARN_STEP], id="warn"),
        pytest.param("reflect", False, [WARN_STEP], id="nudge"),
        pytest.param(
            "reflect",
            True,
            [(WARNED, WARNED, Decision.WARNED), (WARNED, LATCHED, Decision.WOULD_STOP)],
            id="after a nudge",
        ),
        pytest.param(
            "block", False, [WARN_STEP, (WARNED, LATCHED, Decision.WOULD_STOP)], id="block"
        ),
        pytest.param(
            "suspend", False, [WARN_STEP, (WARNED, WARNED, Decision.WOULD_SUSPEND)], id="suspend"
        ),
    ],
)
def test_in_warn_the_repeat_runs_with_a_named_incident(action, nudged, expected):
    _, step = second(Mode.WARN, Action(action), nudged=nudged)
    assert step.verdict is Verdict.EXECUTE_WITH_INCIDENT
    assert transition_words(step) == expected
    assert step.repeat is not None
    assert step.incident == Incident(Action.WARN, step.repeat)
    assert step.incident.source == "duplicate-guard"
    assert (step.question, step.error, step.text) == (None, None, None)


def test_in_warn_the_rung_off_reports_nothing():
    _, step = second(Mode.WARN, Action.OFF)
    assert (step.verdict, step.transitions, step.incident) == (Verdict.EXECUTE, (), None)


@pytest.mark.parametrize(
    ("action", "nudged", "verdict", "expected", "text"),
    [
        pytest.param("off", False, "execute", [], None, id="off"),
        pytest.param("warn", False, "execute_with_incident", [WARN_STEP], None, id="warn"),
        pytest.param(
            "reflect", False, "reflect", [WARN_STEP], messages.SIDE_EFFECT_NUDGE, id="nudge"
        ),
        pytest.param(
            "reflect",
            True,
            "block",
            [(WARNED, LATCHED, Decision.STOPPED)],
            messages.SIDE_EFFECT_BLOCKED,
            id="after a nudge",
        ),
        pytest.param(
            "block",
            False,
            "block",
            [(TRACKING, LATCHED, Decision.STOPPED)],
            messages.SIDE_EFFECT_BLOCKED,
            id="block",
        ),
        pytest.param(
            "suspend",
            False,
            "suspend",
            [(TRACKING, WARNED, Decision.SUSPENDED)],
            messages.SIDE_EFFECT_WAITING,
            id="suspend",
        ),
    ],
)
def test_in_enforce_the_configured_rung_acts(action, nudged, verdict, expected, text):
    _, step = second(Mode.ENFORCE, Action(action), nudged=nudged)
    assert step.verdict == verdict
    assert transition_words(step) == expected
    assert step.text == text
    acted = None if action == "off" else Action(verdict if verdict in list(Action) else "warn")
    assert (step.incident and step.incident.action) == acted
    assert (step.question is not None) is (verdict == "suspend")
    records = {"reflect": "reflected", "block": None, "suspend": "suspended"}
    assert step.record == records.get(verdict, "running")
    assert (step.error is not None) is (verdict == "block")


def test_the_error_of_a_blocked_call_names_tool_digest_and_both_calls():
    _, step = second(Mode.ENFORCE, Action.BLOCK)
    assert step.repeat is not None
    assert step.repeat.layer is Layer.ARGUMENTS
    digest = step.repeat.digest
    assert digest is not None
    assert len(digest) == 32
    assert step.error == DuplicateError("charge", digest, "c1", "c3", "side_effect_duplicate")


def test_a_refusal_is_a_stop():
    host, _ = second(Mode.ENFORCE, Action.SUSPEND)
    step = host.answer("c3", False)
    assert (step.verdict, step.text) == (Verdict.REFUSED, messages.SIDE_EFFECT_REFUSED)
    assert step.record is CallStatus.DENIED
    assert step.repeat is not None
    assert (step.repeat.call_id, step.repeat.first.call_id) == ("c3", "c1")
    assert transition_words(step) == [(WARNED, LATCHED, Decision.STOPPED)]
    assert step.error is not None
    assert (step.error.first_call_id, step.error.call_id) == ("c1", "c3")
    again = host.propose("c4")
    assert (again.verdict, again.text) == (Verdict.REFUSE, messages.SIDE_EFFECT_REFUSED)
    assert transition_words(again) == [(LATCHED, LATCHED, Decision.STOPPED)]
    assert again.incident is not None
    assert again.incident.action is Action.SUSPEND
    assert again.error is not None
    assert again.error.call_id == "c4"


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.WARN])
def test_below_enforce_a_finished_call_id_runs_again_and_nothing_is_reported(mode):
    host = Host(mode, action=Action.BLOCK)
    host.run("c1")
    before = host.guard
    step = host.propose("c1")
    assert (step.verdict, step.transitions, step.incident) == (Verdict.EXECUTE, (), None)
    assert host.guard == before


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.WARN])
def test_below_enforce_the_record_of_a_nudge_answers_for_nothing(mode):
    host = Host(action=Action.REFLECT)
    host.run("c1")
    host.run("c2")
    host.take(PromptStarted(mode))
    step = host.propose("c2")
    assert (step.verdict, step.text) == (Verdict.EXECUTE, None)


def test_a_lower_mode_from_the_next_prompt_on_lets_a_refused_call_run():
    host, _ = second(Mode.ENFORCE, Action.SUSPEND)
    host.answer("c3", False)
    host.take(PromptStarted(Mode.WARN))
    step = host.propose("c4")
    assert step.verdict is Verdict.EXECUTE_WITH_INCIDENT
    assert transition_words(step)[-1] == (LATCHED, LATCHED, Decision.WOULD_STOP)


def test_a_lower_mode_lets_a_suspended_call_run_and_a_late_answer_changes_nothing():
    host, _ = second(Mode.ENFORCE, Action.SUSPEND)
    host.take(PromptStarted(Mode.SHADOW))
    assert host.propose("c3").verdict is Verdict.EXECUTE
    before = host.guard
    assert host.answer("c3", True).verdict is Verdict.UNASKED
    assert host.guard == before


def test_a_late_refusal_below_enforce_is_remembered_and_not_reported_as_a_stop():
    host, _ = second(Mode.ENFORCE, Action.SUSPEND)
    host.take(PromptStarted(Mode.SHADOW))
    step = host.answer("c3", False)
    assert (step.verdict, step.transitions) == (Verdict.REFUSED, ())
    host.take(PromptStarted(Mode.ENFORCE))
    assert host.propose("c4").verdict is Verdict.REFUSE


def test_earlier_runs_stay_known_over_prompts():
    host = Host(Mode.SHADOW, action=Action.BLOCK)
    host.run("c1")
    host.take(PromptStarted(Mode.ENFORCE))
    assert host.propose("c2").verdict is Verdict.BLOCK


def test_a_call_that_ends_under_off_is_recorded_and_not_reported():
    host = Host(Mode.ENFORCE, action=Action.BLOCK)
    host.propose("c1")
    host.take(PromptStarted(Mode.OFF))
    assert host.settle("c1").transitions == ()
    host.take(PromptStarted(Mode.ENFORCE))
    assert host.propose("c2").verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "route", [pytest.param(route, id=route.value) for route in Route if route.value[0] != "i"]
)
def test_every_route_but_the_foreground_is_off(route):
    host = Host()
    host.take(PromptStarted(Mode.ENFORCE, route))
    assert (host.guard.mode, host.guard.route) == (Mode.OFF, route)
    started = type(host.guard).start(Mode.ENFORCE, route=route)
    assert (started.mode, started.route) == (Mode.OFF, route)
