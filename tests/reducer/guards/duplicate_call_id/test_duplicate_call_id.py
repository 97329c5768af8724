import pytest

from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import (
    BatchProposed,
    CallAction,
    CallVerdict,
    DuplicateCallId,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
    reduce,
)
from guardwave.reducer.guards.messages import DUPLICATE_CALL_ANSWER, DUPLICATE_CALL_STOP
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, Route
from tests.support.guards.calls import call, session, unreadable

ENFORCE = DuplicateCallId.start(Mode.ENFORCE)
ONE = BatchProposed.of(call())
EXECUTE, SYNTHETIC = CallAction.EXECUTE, CallAction.SYNTHETIC


def words(step):
    return [
        (transition.decision, transition.phase_from, transition.phase_to)
        for transition in step.transitions
    ]


def actions(step):
    return [(verdict.action, verdict.call_id) for verdict in step.verdicts]


def test_an_off_guard_sees_nothing_and_changes_nothing():
    state = DuplicateCallId.start(Mode.OFF)
    history = HistorySeeded((HistoryCall(call()),))
    steps = session(state, [history, ONE, ONE, ONE, BatchProposed.of(call(), call(""))])
    assert all(step.state == state and not step.transitions for step in steps)
    assert steps[3].verdicts == (CallVerdict("a", EXECUTE, "a"),)
    assert steps[4].verdicts[1] == CallVerdict(None, EXECUTE, None)


def test_in_shadow_a_replay_executes_under_its_own_id_and_is_reported():
    steps = session(DuplicateCallId.start(Mode.SHADOW), [ONE] * 4)
    assert [actions(step) for step in steps] == [[(EXECUTE, "a")]] * 4
    assert [words(step) for step in steps] == [
        [(Decision.TRACKED, GuardPhase.IDLE, GuardPhase.TRACKING)],
        [(Decision.WOULD_WARN, GuardPhase.TRACKING, GuardPhase.WARNED)],
        [(Decision.WOULD_STOP, GuardPhase.WARNED, GuardPhase.LATCHED)],
        [],
    ]
    assert not any(step.is_breaker_open or step.loop_type for step in steps)


def test_in_shadow_the_second_call_of_an_id_in_a_response_executes_too():
    batch = BatchProposed.of(call(), call(command="pwd"), call(None))
    step = reduce(DuplicateCallId.start(Mode.SHADOW), batch)
    assert actions(step) == [(EXECUTE, "a"), (EXECUTE, "a"), (EXECUTE, None)]


def test_in_warn_each_replay_is_answered_and_the_breaker_only_reports():
    steps = session(DuplicateCallId.start(Mode.WARN), [ONE] * 4)
    assert [actions(step) for step in steps] == [
        [(EXECUTE, "a")],
        [(SYNTHETIC, "a__dup_2")],
        [(SYNTHETIC, "a__dup_3")],
        [(SYNTHETIC, "a__dup_4")],
    ]
    assert [words(step) for step in steps] == [
        [(Decision.TRACKED, GuardPhase.IDLE, GuardPhase.TRACKING)],
        [(Decision.WARNED, GuardPhase.TRACKING, GuardPhase.WARNED)],
        [(Decision.WOULD_STOP, GuardPhase.WARNED, GuardPhase.LATCHED)],
        [],
    ]
    assert {step.turn_outcome for step in steps} == {TurnOutcome.CONTINUE}
    assert not any(step.is_breaker_open or step.loop_type for step in steps)


def test_in_enforce_a_replay_is_answered_once_then_the_batch_is_dropped():
    steps = session(ENFORCE, [ONE, ONE, BatchProposed.of(call("b"), call()), ONE])
    assert [words(step) for step in steps] == [
        [(Decision.TRACKED, GuardPhase.IDLE, GuardPhase.TRACKING)],
        [(Decision.WARNED, GuardPhase.TRACKING, GuardPhase.WARNED)],
        [(Decision.STOPPED, GuardPhase.WARNED, GuardPhase.LATCHED)],
        [],
    ]
    stop = steps[2]
    assert actions(stop) == [(CallAction.BATCH_DROPPED, None)] * 2
    assert (stop.is_breaker_open, stop.trigger_id) == (True, "a")
    assert stop.loop_type is LoopType.GLOBAL_TOOL_CALL_DUPLICATE
    assert stop.turn_outcome is TurnOutcome.LOOP_DETECTED_ERROR
    assert stop.state == steps[1].state._replace(phase=GuardPhase.LATCHED)


def test_the_loop_is_reported_once_per_prompt_though_the_breaker_opens_again():
    *_, stop, again = session(ENFORCE, [ONE] * 4)
    assert again.is_breaker_open
    assert (again.loop_type, again.transitions) == (None, ())
    assert again.state == stop.state
    *_, next_stop = session(again.state, [PromptStarted(), ONE, ONE])
    assert next_stop.loop_type is LoopType.GLOBAL_TOOL_CALL_DUPLICATE
    assert words(next_stop) == [(Decision.STOPPED, GuardPhase.WARNED, GuardPhase.LATCHED)]


def test_a_disabled_enforcement_answers_and_only_reports_until_the_next_prompt():
    disabled = ENFORCE._replace(is_enforcement_disabled=True)
    steps = session(disabled, [ONE, ONE, ONE])
    assert actions(steps[2]) == [(SYNTHETIC, "a__dup_3")]
    assert steps[2].transitions == (
        Transition(
            guard="duplicate_call_id",
            route=Route.INTERACTIVE_FOREGROUND,
            mode=Mode.ENFORCE,
            phase_from=GuardPhase.WARNED,
            phase_to=GuardPhase.LATCHED,
            decision=Decision.WOULD_STOP,
            candidate_ordinal=1,
        ),
    )
    *_, stop = session(steps[2].state, [PromptStarted(), ONE, ONE])
    assert stop.is_breaker_open


@pytest.mark.parametrize(
    ("route", "outcome"),
    [
        pytest.param(route, TurnOutcome.END_TURN, id=route.value)
        for route in Route
        if route is not Route.INTERACTIVE_FOREGROUND
    ],
)
def test_where_nobody_watches_the_turn_ends_quietly(route, outcome):
    *_, stop = session(DuplicateCallId.start(Mode.ENFORCE, route=route), [ONE] * 3)
    assert (stop.turn_outcome, stop.transitions[0].route) == (outcome, route)


def test_each_answered_id_has_an_ordinal_that_its_stop_shares():
    pair = BatchProposed.of(call("a"), call("b"))
    steps = session(ENFORCE, [pair, pair, BatchProposed.of(call("b"))])
    ordinals = [[transition.candidate_ordinal for transition in step.transitions] for step in steps]
    assert ordinals == [[0], [1, 2], [2]]
    assert words(steps[1])[1] == (Decision.WARNED, GuardPhase.WARNED, GuardPhase.WARNED)


@pytest.mark.parametrize(
    ("mode", "decision", "ordinal"),
    [
        pytest.param(Mode.SHADOW, Decision.WOULD_STOP, 2, id="shadow"),
        pytest.param(Mode.WARN, Decision.WOULD_STOP, 2, id="warn"),
        pytest.param(Mode.ENFORCE, Decision.STOPPED, 1, id="enforce: nothing else was answered"),
    ],
)
def test_an_id_replayed_twice_in_a_batch_stops_at_once(mode, decision, ordinal):
    handled = session(DuplicateCallId.start(mode), [BatchProposed.of(call("a"), call("b"))])[-1]
    batch = BatchProposed(((call("b"), call("a")), (call("a"),)))
    step = reduce(handled.state, batch)
    assert words(step) == [(decision, GuardPhase.TRACKING, GuardPhase.LATCHED)]
    assert step.transitions[0].candidate_ordinal == ordinal
    assert step.is_breaker_open is (mode is Mode.ENFORCE)


def test_a_stop_without_an_answer_comes_after_those_answered():
    state = session(ENFORCE, [BatchProposed.of(call("a"), call("b")), BatchProposed.of(call("b"))])
    step = reduce(state[-1].state, BatchProposed(((call("a"),), (call("a"),))))
    assert (step.trigger_id, step.transitions[0].candidate_ordinal) == ("a", 2)


def test_the_first_replay_in_call_order_triggers():
    state = session(ENFORCE, [BatchProposed.of(call("a"), call("b"))] * 2)[-1].state
    assert reduce(state, BatchProposed.of(call("b"), call("a"))).trigger_id == "b"


def test_a_replay_and_a_fresh_call_of_one_id_do_not_trigger():
    state = session(ENFORCE, [ONE])[-1].state
    step = reduce(state, BatchProposed(((call(),), (call(command="pwd"),))))
    assert actions(step) == [(SYNTHETIC, "a__dup_2"), (EXECUTE, "a__dup_3")]


def test_a_replay_twice_in_one_response_is_one_replay_and_one_dropped_call():
    state = session(ENFORCE, [ONE])[-1].state
    step = reduce(state, BatchProposed.of(call(), call(), call("b")))
    assert actions(step) == [(SYNTHETIC, "a__dup_2"), (CallAction.DROP, None), (EXECUTE, "b")]


def test_a_call_dropped_within_its_response_stays_dropped_when_the_batch_is():
    state = session(ENFORCE, [ONE, ONE])[-1].state
    step = reduce(state, BatchProposed.of(call(), call()))
    assert [verdict.action for verdict in step.verdicts] == [
        CallAction.BATCH_DROPPED,
        CallAction.DROP,
    ]


def test_three_equal_unhandled_calls_over_three_responses_run_once():
    step = reduce(ENFORCE, BatchProposed(((call(),), (call(),), (call(),))))
    assert actions(step) == [(EXECUTE, "a"), (SYNTHETIC, "a__dup_2"), (SYNTHETIC, "a__dup_3")]
    assert words(step) == [
        (Decision.TRACKED, GuardPhase.IDLE, GuardPhase.TRACKING),
        (Decision.WARNED, GuardPhase.TRACKING, GuardPhase.WARNED),
    ]


def test_a_call_with_unreadable_arguments_is_never_a_replay_and_keeps_its_id():
    steps = session(ENFORCE, [BatchProposed.of(unreadable())] * 3 + [ONE, ONE])
    assert [actions(step) for step in steps] == [
        [(EXECUTE, "a")],
        [(EXECUTE, "a__dup_2")],
        [(EXECUTE, "a__dup_3")],
        [(EXECUTE, "a__dup_4")],
        [(EXECUTE, "a__dup_5")],
    ]


@pytest.mark.parametrize("missing", [None, "", "  "])
def test_a_call_without_an_id_is_named_and_never_answered(missing):
    steps = session(ENFORCE, [BatchProposed.of(call(missing), call(missing))] * 2)
    assert actions(steps[1]) == [(EXECUTE, "call_gen_3"), (EXECUTE, "call_gen_4")]
    assert steps[1].verdicts[0].raw_id is None
    assert (steps[1].state.phase, steps[1].transitions) == (GuardPhase.IDLE, ())


def test_a_dropped_batch_uses_up_no_name():
    *_, stop = session(ENFORCE, [ONE] * 3)
    step = reduce(stop.state, BatchProposed.of(call(command="pwd")))
    assert actions(step) == [(EXECUTE, "a__dup_3")]


def test_an_id_that_was_given_out_as_a_name_is_taken_when_the_provider_sends_it():
    state = session(ENFORCE, [ONE, BatchProposed.of(call(command="pwd"))])[-1].state
    step = reduce(state, BatchProposed.of(call("a__dup_2", "pwd")))
    assert actions(step) == [(EXECUTE, "a__dup_2__dup_2")]


def test_history_makes_answered_calls_handled_and_the_others_taken():
    history = HistorySeeded(
        (
            HistoryCall(call("open", "x"), is_answered=False),
            HistoryCall(call()),
            HistoryCall(call("a", "later")),
            HistoryCall(call(None)),
        )
    )
    seeded = reduce(ENFORCE, history)
    assert (seeded.transitions, seeded.state.phase) == ((), GuardPhase.TRACKING)
    step = reduce(seeded.state, BatchProposed.of(call(), call("open", "x")))
    assert actions(step) == [(SYNTHETIC, "a__dup_2"), (EXECUTE, "open__dup_2")]
    step = reduce(step.state, BatchProposed.of(call("open", "x")))
    assert actions(step) == [(SYNTHETIC, "open__dup_3")]


def test_history_of_unanswered_calls_alone_leaves_the_guard_idle():
    history = HistorySeeded((HistoryCall(call(), is_answered=False),))
    assert reduce(ENFORCE, history).state.phase is GuardPhase.IDLE


def test_a_call_answered_later_in_history_is_handled():
    entries = (HistoryCall(call(), is_answered=False), HistoryCall(call()))
    state = reduce(ENFORCE, HistorySeeded(entries)).state
    assert actions(reduce(state, ONE)) == [(SYNTHETIC, "a__dup_2")]


def test_seeding_in_the_middle_of_a_prompt_keeps_its_phase():
    warned = session(ENFORCE, [ONE, ONE])[-1].state
    seeded = reduce(warned, HistorySeeded((HistoryCall(call("b")),)))
    assert seeded.state.phase is GuardPhase.WARNED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], GuardPhase.IDLE, id="nothing handled"),
        pytest.param([ONE], GuardPhase.TRACKING, id="tracking"),
        pytest.param([ONE] * 2, GuardPhase.TRACKING, id="warned"),
        pytest.param([ONE] * 3, GuardPhase.TRACKING, id="latched"),
    ],
)
def test_a_new_prompt_starts_without_answers(before, after):
    state = ENFORCE if not before else session(ENFORCE, before)[-1].state
    step = reduce(state, PromptStarted())
    assert (step.state.phase, step.state.answered, step.transitions) == (after, {}, ())
    assert step.state.names == state.names


def test_a_prompt_may_bring_another_mode_and_route():
    state = reduce(ENFORCE, PromptStarted(Mode.WARN, Route.CRON)).state
    assert (state.mode, state.route) == (Mode.WARN, Route.CRON)
    state = reduce(state, PromptStarted()).state
    assert (state.mode, state.route) == (Mode.WARN, Route.CRON)


def test_suffix_and_prefix_are_settings():
    state = DuplicateCallId.start(Mode.ENFORCE, suffix="~", generated_prefix="g")
    steps = session(state, [ONE, BatchProposed.of(call(command="pwd"), call(None))])
    assert actions(steps[1]) == [(EXECUTE, "a~2"), (EXECUTE, "g1")]


@pytest.mark.parametrize("empty", ["", None, 7])
@pytest.mark.parametrize("name", ["suffix", "generated_prefix"])
def test_an_empty_suffix_or_prefix_is_refused(name, empty):
    with pytest.raises(ValueError, match=f"{name} is {empty!r}; give a text"):
        DuplicateCallId.start(Mode.ENFORCE, **{name: empty})


@pytest.mark.parametrize(
    ("event", "message"),
    [
        pytest.param(
            "text", "event is of type str; pass a HistorySeeded, PromptStarted", id="event"
        ),
        pytest.param(
            BatchProposed.of(ToolCall(7, "shell", None)),  # type: ignore[arg-type]  # the fault
            "call_id is of type int; pass the provider's text",
            id="an id that is no text",
        ),
        pytest.param(
            BatchProposed.of(ToolCall("a", "shell", "ab")),
            "fingerprint is not the text of 16 bytes in hex; make calls by ToolCall.of",
            id="a short fingerprint",
        ),
        pytest.param(
            BatchProposed.of(ToolCall("a", "shell", "secret")),
            "fingerprint is not the text of 16 bytes",
            id="a fingerprint that is no hex",
        ),
    ],
)
@pytest.mark.parametrize("mode", [Mode.ENFORCE])
def test_a_fault_of_the_host_is_named_without_its_data(mode, event, message):
    with pytest.raises(ValueError, match=message) as refused:
        reduce(DuplicateCallId.start(mode), event)
    assert "secret" not in str(refused.value)


def test_the_answer_to_a_replay_names_both_ways_to_mean_a_new_call():
    assert "under an id that has not been used" in DUPLICATE_CALL_ANSWER
    assert "arguments that differ" in DUPLICATE_CALL_ANSWER
    assert "not run" in DUPLICATE_CALL_ANSWER


def test_the_stop_names_the_replay_and_that_nothing_was_run():
    assert "already answered came again" in DUPLICATE_CALL_STOP
    assert "none of the calls beside it were run" in DUPLICATE_CALL_STOP
