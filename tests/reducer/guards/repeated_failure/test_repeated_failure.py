from typing import Any

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.repeated_failure import (
    BATCH_LIMIT,
    FAILURE_LIMIT,
    GUARD,
    FailureAction,
    FailureKey,
    PromptStarted,
    RepeatedFailure,
    reduce,
)
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, ResetReason, Route
from tests.support.guards.batches import after, batch, failures, observe

WORD: Any = "enforce"
IDLE, TRACKING, WARNED, LATCHED = GuardPhase
OFF, SHADOW, WARN, ENFORCE = Mode
UNRELIABLE = batch(is_input_reliable=False)
STREAK = (failures(4), failures(4), failures(1))


def decisions(mode, *events):
    state, found = RepeatedFailure.start(mode), []
    for event in events:
        step = reduce(state, event)
        state = step.state
        found.append((step.transitions[0].decision if step.transitions else None, step.action))
    return found


def test_the_limits_are_those_of_the_contract():
    assert (GUARD, FAILURE_LIMIT, BATCH_LIMIT) == ("repeated_tool_failure", 8, 2)


NONE, REMIND, STOP = FailureAction


@pytest.mark.parametrize(
    ("mode", "first", "at_limit", "beyond"),
    [
        pytest.param(OFF, (None, NONE), (None, NONE), (None, NONE), id="off"),
        pytest.param(
            SHADOW,
            (Decision.TRACKED, NONE),
            (Decision.WOULD_WARN, NONE),
            (Decision.WOULD_STOP, NONE),
            id="shadow",
        ),
        pytest.param(
            WARN,
            (Decision.TRACKED, NONE),
            (Decision.WARNED, REMIND),
            (Decision.WOULD_STOP, NONE),
            id="warn",
        ),
        pytest.param(
            ENFORCE,
            (Decision.TRACKED, NONE),
            (Decision.WARNED, REMIND),
            (Decision.STOPPED, STOP),
            id="enforce",
        ),
    ],
)
def test_the_decision_of_each_mode_in_each_phase(mode, first, at_limit, beyond):
    assert decisions(mode, *STREAK) == [first, at_limit, beyond]


@pytest.mark.parametrize("mode", [SHADOW, WARN, ENFORCE])
def test_a_latched_guard_is_silent_in_every_mode(mode):
    latched = after(*STREAK, mode=mode)
    assert latched.phase is LATCHED
    for event in (failures(9), UNRELIABLE, batch(observe("success", "error")), batch()):
        assert reduce(latched, event) == (latched, (), NONE)


def test_enforcement_that_is_disabled_warns_and_only_would_stop():
    assert decisions(ENFORCE, UNRELIABLE, *STREAK)[1:] == [
        (Decision.TRACKED, NONE),
        (Decision.WARNED, REMIND),
        (Decision.WOULD_STOP, NONE),
    ]


def test_enforcement_that_is_disabled_leaves_shadow_in_shadow():
    assert decisions(SHADOW, UNRELIABLE, *STREAK)[1:] == decisions(SHADOW, *STREAK)


def test_off_does_not_even_disable_enforcement():
    assert after(UNRELIABLE, *STREAK, mode=OFF) == RepeatedFailure.start(OFF)


@pytest.mark.parametrize("route", [Route.CRON, Route.NOTIFICATION, Route.BACKGROUND, Route.CHANNEL])
def test_every_route_but_the_foreground_is_off(route):
    assert RepeatedFailure.start(ENFORCE, route=route) == RepeatedFailure(OFF, route)


def test_the_foreground_is_the_route_unless_another_is_named():
    assert RepeatedFailure.start(WARN) == RepeatedFailure(WARN, Route.INTERACTIVE_FOREGROUND)


@pytest.mark.parametrize(
    ("sizes", "phase"),
    [
        pytest.param([7], TRACKING, id="seven at once"),
        pytest.param([8], TRACKING, id="eight in one batch"),
        pytest.param([20], TRACKING, id="twenty in one batch"),
        pytest.param([6, 1], TRACKING, id="seven in two"),
        pytest.param([7, 1], WARNED, id="eight in two"),
        pytest.param([8, 1], WARNED, id="nine in two"),
        pytest.param([1] * 7, TRACKING, id="seven in seven"),
        pytest.param([1] * 8, WARNED, id="eight in eight"),
        pytest.param([7, 1, 1], LATCHED, id="one more after the warning"),
    ],
)
def test_a_warning_takes_eight_failures_in_two_batches(sizes, phase):
    state = after(*(failures(size) for size in sizes))
    assert (state.phase, state.failure_count, state.batch_count) == (phase, sum(sizes), len(sizes))
    assert (state.key, state.candidate_ordinal) == (FailureKey("fetch", "timeout"), 1)


RESETS = [
    pytest.param(UNRELIABLE, ResetReason.UNRELIABLE_INPUT, True, id="unreliable input"),
    pytest.param(
        batch(observe(), has_external_input=True), ResetReason.EXTERNAL_INPUT, False, id="external"
    ),
    pytest.param(
        batch(observe(), has_queued_prompt=True),
        ResetReason.QUEUED_PROMPT,
        False,
        id="queued prompt",
    ),
    pytest.param(batch(observe(), complete=False), ResetReason.INCOMPLETE, False, id="incomplete"),
    pytest.param(
        batch(observe("success", "error")), ResetReason.CONTRACT_VIOLATION, True, id="violation"
    ),
    pytest.param(batch(observe("cancelled")), ResetReason.CANCELLED, False, id="cancelled"),
    pytest.param(batch(observe(execution=None)), ResetReason.UNKNOWN, True, id="unknown"),
    pytest.param(
        batch(observe("error", "not_started")), ResetReason.NOT_STARTED, False, id="not started"
    ),
    pytest.param(
        batch(observe("error", "success")), ResetReason.POST_EXECUTION_FAILURE, False, id="post"
    ),
    pytest.param(batch(observe("success", "success")), ResetReason.SUCCESS, False, id="success"),
    pytest.param(
        batch(observe(), observe("success", "success")), ResetReason.SUCCESS, False, id="recovery"
    ),
    pytest.param(batch(observe(), observe(tool="shell")), ResetReason.MIXED, False, id="two tools"),
    pytest.param(
        batch(observe(), observe(error_type="not_found")), ResetReason.MIXED, False, id="two errors"
    ),
]


@pytest.mark.parametrize(("event", "reason", "disables"), RESETS)
@pytest.mark.parametrize("mode", [SHADOW, WARN, ENFORCE])
@pytest.mark.parametrize("begun", [STREAK[:1], STREAK[:2]], ids=["tracking", "warned"])
def test_a_reset_drops_the_streak_and_keeps_the_count_of_streaks(
    begun, mode, event, reason, disables
):
    before = after(*begun, mode=mode)
    state, (transition,), action = reduce(before, event)
    assert state == RepeatedFailure(
        mode, before.route, last_ordinal=1, is_enforcement_disabled=disables
    )
    assert (transition.decision, transition.reset_reason) == (Decision.RESET, reason)
    assert action is NONE


@pytest.mark.parametrize(("event", "reason", "disables"), RESETS)
def test_a_reset_from_idle_is_reported_only_when_it_disables_enforcement_anew(
    event, reason, disables
):
    idle = RepeatedFailure.start(ENFORCE)
    first = reduce(idle, event)
    assert [transition.reset_reason for transition in first.transitions] == (
        [reason] if disables else []
    )
    assert first.state.is_enforcement_disabled is disables
    assert reduce(first.state, event) == (first.state, (), NONE)


BOUNDARIES = [
    {"is_input_reliable": False},
    {"has_external_input": True},
    {"has_queued_prompt": True},
    {"complete": False},
]


@pytest.mark.parametrize("place", range(4))
def test_a_boundary_outranks_those_after_it_and_every_outcome(place):
    flags = {name: value for boundary in BOUNDARIES[place:] for name, value in boundary.items()}
    step = reduce(after(failures(2)), batch(observe("success", "error"), **flags))
    (transition,) = step.transitions
    assert transition.reset_reason is list(ResetReason)[[9, 7, 8, 6][place]]
    assert step.state.is_enforcement_disabled is (place == 0)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(batch(), id="nothing"),
        pytest.param(batch(observe(duplicate=True)), id="a duplicate"),
        pytest.param(batch(observe("success", "error", duplicate=True)), id="a wrong duplicate"),
        pytest.param(batch(observe("success", "success", tool="shell")), id="another success"),
        pytest.param(
            batch(observe(tool="shell"), observe("success", "success", tool="shell")),
            id="another tool that recovers",
        ),
    ],
)
@pytest.mark.parametrize("begun", [(), STREAK[:1], STREAK[:2]], ids=["idle", "tracking", "warned"])
def test_a_batch_without_evidence_about_the_streak_changes_nothing(begun, event):
    state = after(*begun)
    assert reduce(state, event) == (state, (), NONE)


@pytest.mark.parametrize("begun", [STREAK[:1], STREAK[:2]], ids=["tracking", "warned"])
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(failures(9, tool="shell"), id="another tool"),
        pytest.param(failures(9, error_type="not_found"), id="another error"),
        pytest.param(
            batch(*failures(9, tool="shell").observations, observe("success", "success")),
            id="another tool while this one succeeds",
        ),
    ],
)
def test_another_key_starts_the_next_streak_without_a_reset(begun, event):
    state, (transition,), action = reduce(after(*begun), event)
    assert (transition.decision, action) == (Decision.TRACKED, NONE)
    assert (state.phase, state.failure_count, state.batch_count) == (TRACKING, 9, 1)
    assert (state.candidate_ordinal, state.last_ordinal) == (2, 2)
    assert state.key == FailureKey(*event_key(event))


def event_key(event):
    return event.observations[0].tool, event.observations[0].error_type


def test_each_streak_is_reminded_of_once():
    again = (*STREAK[:2], batch(observe("success", "success")), *STREAK[:2])
    assert [action for _, action in decisions(ENFORCE, *again)].count(REMIND) == 2
    assert after(*again).candidate_ordinal == 2


def test_a_new_prompt_ends_streak_latch_and_disabled_enforcement():
    ended = after(UNRELIABLE, *STREAK, mode=WARN)
    assert (ended.phase, ended.is_enforcement_disabled) == (LATCHED, True)
    assert reduce(ended, PromptStarted()) == (RepeatedFailure.start(WARN), (), NONE)


def test_a_new_prompt_stays_on_its_route():
    state = RepeatedFailure.start(ENFORCE, route=Route.CRON)
    assert reduce(state, PromptStarted()).state == state


def test_only_a_reminder_and_a_stop_have_a_text_and_only_a_stop_a_loop_type():
    assert [action.text for action in FailureAction] == [
        None,
        messages.REPEATED_FAILURE_REMINDER,
        messages.REPEATED_FAILURE_STOP,
    ]
    assert [action.loop_type for action in FailureAction] == [
        None,
        None,
        LoopType.REPEATED_TOOL_EXECUTION_FAILURE,
    ]


@pytest.mark.parametrize(
    "text", [messages.REPEATED_FAILURE_REMINDER, messages.REPEATED_FAILURE_STOP]
)
def test_a_text_has_no_place_for_data_of_a_tool(text):
    assert not set(text) & set("{}%<>$0123456789")
    assert text.isascii()
    assert len(text) < 400


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(
            lambda: RepeatedFailure.start(WORD),
            "the mode of repeated_tool_failure is of type str",
            id="a mode",
        ),
        pytest.param(
            lambda: RepeatedFailure.start(WARN, route=WORD), "route is of type str", id="a route"
        ),
        pytest.param(
            lambda: reduce(RepeatedFailure.start(WARN), WORD),
            "event is of type str; pass a SettledBatch or PromptStarted",
            id="an event",
        ),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
