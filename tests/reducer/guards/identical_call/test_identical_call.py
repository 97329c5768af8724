import pytest

from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    Budget,
    CallsProposed,
    Event,
    Failure,
    IdenticalCall,
    RunAction,
    RunStarted,
    SynthesisCause,
    Turn,
    TurnMode,
    TurnStarted,
    reduce,
)
from guardwave.reducer.guards.messages import BUDGET_NOTE, REPETITION_NOTE
from guardwave.reducer.guards.transition import FailureBucket, Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, Route
from tests.support.guards.calls import call, run_of, unreadable

ENFORCE = IdenticalCall.start(Mode.ENFORCE)
TURN, SETTLED = TurnStarted(), BatchSettled()
ONE = CallsProposed((call(),))
ROUND: list[Event] = [TURN, ONE, SETTLED]
NORMAL = Turn()
SYNTHESIS = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.REPETITION)
RESERVE = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.BUDGET)


def words(steps):
    return [
        (transition.decision, transition.phase_from, transition.phase_to)
        for step in steps
        for transition in step.transitions
    ]


def after(state, events):
    return run_of(state, events)[-1].state


IDLE, TRACKING, WARNED, LATCHED = GuardPhase
TWO_TRACKED = [(Decision.TRACKED, IDLE, TRACKING)] + [(Decision.TRACKED, TRACKING, TRACKING)] * 2


def test_an_off_guard_counts_nothing_and_lets_everything_run():
    state = IdenticalCall.start(Mode.OFF)
    steps = run_of(state, ROUND * 8)
    assert words(steps) == []
    assert {step.action for step in steps} == {RunAction.NONE, RunAction.DISPATCH}
    assert {step.turn for step in steps} == {NORMAL, None}
    assert steps[-1].state == state


def test_shadow_changes_no_turn_and_reports_what_it_would_have_done():
    steps = run_of(IdenticalCall.start(Mode.SHADOW), ROUND * 8)
    assert words(steps) == [
        *TWO_TRACKED,
        (Decision.WOULD_WARN, TRACKING, WARNED),
        (Decision.WOULD_STOP, WARNED, LATCHED),
    ]
    assert {step.turn for step in steps} == {NORMAL, None}
    assert {step.action for step in steps} == {RunAction.NONE, RunAction.DISPATCH}
    assert {step.loop_type for step in steps} == {None}
    assert steps[-1].state.max_count == 8


def test_warn_adds_the_note_leaves_the_tools_on_and_runs_the_batch_at_the_threshold():
    steps = run_of(IdenticalCall.start(Mode.WARN), ROUND * 8)
    assert words(steps) == [
        *TWO_TRACKED,
        (Decision.WARNED, TRACKING, WARNED),
        (Decision.WOULD_STOP, WARNED, LATCHED),
    ]
    turns = [step.turn for step in steps if step.turn is not None]
    assert [turn.note for turn in turns] == [None] * 4 + [REPETITION_NOTE] * 4
    assert {turn.mode for turn in turns} == {TurnMode.NORMAL}
    assert {step.action for step in steps} == {RunAction.NONE, RunAction.DISPATCH}


def test_enforce_asks_to_conclude_and_fails_the_run_that_goes_on():
    steps = run_of(ENFORCE, [*ROUND * 4, TURN, CallsProposed((call("b", "pwd"),))])
    assert words(steps) == [
        *TWO_TRACKED,
        (Decision.WARNED, TRACKING, WARNED),
        (Decision.STOPPED, WARNED, LATCHED),
    ]
    *_, synthesis, stop = steps
    assert synthesis.turn == SYNTHESIS
    assert (stop.action, stop.failure) == (RunAction.FAIL, Failure.TOOL_LOOP_DETECTED)
    assert stop.loop_type is LoopType.IDENTICAL_TOOL_CALL
    assert stop.state.tallies == synthesis.state.tallies
    assert stop.state.next_turn_mode is None


def test_a_stop_reports_the_streak_that_led_to_it():
    steps = run_of(ENFORCE, [*ROUND * 4, TURN, ONE])
    assert steps[-1].transitions == (
        Transition(
            guard="identical_call",
            route=Route.INTERACTIVE_FOREGROUND,
            mode=Mode.ENFORCE,
            phase_from=WARNED,
            phase_to=LATCHED,
            decision=Decision.STOPPED,
            failure_count=FailureBucket.SOME,
            candidate_ordinal=1,
        ),
    )


def test_a_disabled_enforcement_warns_and_only_reports_the_stop():
    steps = run_of(ENFORCE._replace(is_enforcement_disabled=True), ROUND * 6)
    assert words(steps)[-2:] == [
        (Decision.WARNED, TRACKING, WARNED),
        (Decision.WOULD_STOP, WARNED, LATCHED),
    ]
    assert RunAction.FAIL not in {step.action for step in steps}
    assert {transition.mode for step in steps for transition in step.transitions} == {Mode.ENFORCE}
    assert not reduce(steps[-1].state, RunStarted()).state.is_enforcement_disabled


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        pytest.param([4], RunAction.DISPATCH, id="four at once"),
        pytest.param([5], RunAction.FAIL, id="five at once"),
        pytest.param([3, 1], RunAction.DISPATCH, id="three and one"),
        pytest.param([3, 2], RunAction.FAIL, id="three and two"),
    ],
)
def test_the_batch_that_comes_to_the_threshold_fails_whole(counts, outcome):
    events: list[Event] = []
    for count in counts:
        events += [TURN, CallsProposed((call("x", "pwd"), *[call()] * count)), SETTLED]
    *_, proposed, _ = run_of(ENFORCE, events)
    assert proposed.action is outcome
    assert (proposed.state.pending is None) is (outcome is RunAction.FAIL)


def test_a_stop_in_a_normal_turn_comes_from_the_phase_before_and_counts_the_batch():
    step = reduce(ENFORCE, CallsProposed((call(),) * 5))
    assert words([step]) == [(Decision.STOPPED, IDLE, LATCHED)]
    assert step.transitions[0].failure_count is FailureBucket.MANY
    assert (step.loop_type, step.state.max_count) == (LoopType.IDENTICAL_TOOL_CALL, 5)


@pytest.mark.parametrize("surplus", [0, 1, 7])
def test_counting_ends_with_the_first_count_at_the_threshold(surplus):
    others = (call(command="pwd"),) * surplus
    step = run_of(ENFORCE, [TURN, CallsProposed((*(call(),) * (5 + surplus), *others))])[-1]
    assert (step.failure, step.state.max_count) == (Failure.TOOL_LOOP_DETECTED, 5)
    assert list(step.state.tallies.by_call.values()) == [step.state.tallies.leading]


def test_the_call_that_is_first_at_the_threshold_is_named_in_every_mode():
    first, second = call(command="ls"), call(command="pwd")
    batch = CallsProposed((first, second, second, first))
    for mode in (Mode.SHADOW, Mode.WARN, Mode.ENFORCE):
        state = IdenticalCall.start(mode, threshold=2)
        assert reduce(state, batch).transitions[0].candidate_ordinal == 2


def test_a_would_be_stop_names_the_call_that_came_to_the_threshold():
    state = after(IdenticalCall.start(Mode.SHADOW), [CallsProposed((call(),) * 4), SETTLED])
    step = reduce(state, CallsProposed((call("b", "pwd"), call("b", "pwd"), call())))
    assert words([step]) == [(Decision.WOULD_STOP, TRACKING, LATCHED)]
    assert step.transitions[0].candidate_ordinal == 1
    assert step.transitions[0].failure_count is FailureBucket.MANY


def test_with_a_threshold_of_two_one_call_is_enough_to_conclude():
    steps = run_of(IdenticalCall.start(Mode.ENFORCE, threshold=2), [*ROUND, TURN])
    assert words(steps) == [(Decision.WARNED, IDLE, WARNED)]
    assert steps[-1].turn == SYNTHESIS
    assert steps[-1].transitions[0].candidate_ordinal == 1


def test_each_repeated_call_has_a_streak_of_its_own():
    pair = CallsProposed((call(), call("b", "pwd")))
    state = after(IdenticalCall.start(Mode.WARN), [pair, SETTLED, pair, SETTLED])
    step = reduce(state, CallsProposed((call("b", "pwd"),)))
    assert [transition.candidate_ordinal for transition in step.transitions] == [2]
    assert step.transitions[0].failure_count is FailureBucket.SOME
    ordinals = {tally.times: tally.ordinal for tally in step.state.tallies.by_call.values()}
    assert ordinals == {2: 1, 3: 2}


def test_calls_that_do_not_repeat_report_nothing():
    state = after(ENFORCE, ROUND)
    step = reduce(state, CallsProposed((call("b", "pwd"),)))
    assert (step.transitions, step.state.phase) == ((), IDLE)


def test_a_warned_guard_stays_warned_while_another_call_repeats():
    state = after(IdenticalCall.start(Mode.WARN), [*ROUND * 4, TURN])
    pair = CallsProposed((call("b", "pwd"), call("c", "pwd")))
    assert words([reduce(state, pair)]) == [(Decision.TRACKED, WARNED, WARNED)]


def test_a_call_with_unreadable_arguments_is_never_counted():
    batch = CallsProposed((unreadable(),) * 6)
    step = reduce(ENFORCE, batch)
    assert (step.action, step.state.max_count, step.transitions) == (RunAction.DISPATCH, 0, ())
    settled = reduce(step.state, BatchSettled({"a": "p"}))
    assert settled.state.tallies == ENFORCE.tallies


@pytest.mark.parametrize("mode", Mode)
def test_the_budget_of_the_host_holds_in_every_mode(mode):
    steps = run_of(IdenticalCall.start(mode), [TurnStarted(Budget.RESERVE), ONE])
    assert steps[0].turn == RESERVE
    assert steps[0].turn.note == BUDGET_NOTE
    assert (steps[1].action, steps[1].failure) == (RunAction.FAIL, Failure.BUDGET_EXCEEDED)
    assert (words(steps), steps[1].loop_type, steps[1].state.phase) == ([], None, IDLE)


@pytest.mark.parametrize("mode", Mode)
def test_an_exhausted_budget_means_no_model_call(mode):
    step = reduce(IdenticalCall.start(mode), TurnStarted(Budget.EXHAUSTED))
    assert (step.action, step.turn) == (RunAction.FAIL, None)
    assert step.failure is Failure.BUDGET_EXCEEDED


def test_the_reserve_outranks_a_repetition_and_reports_nothing():
    state = after(ENFORCE, ROUND * 4)
    steps = run_of(state, [TurnStarted(Budget.RESERVE), ONE])
    assert (steps[0].turn, words(steps)) == (RESERVE, [])
    assert steps[1].failure is Failure.BUDGET_EXCEEDED


def test_a_retried_turn_stays_without_tools():
    state = after(ENFORCE, ROUND * 4)
    steps = run_of(state, [TURN, TURN, TurnStarted(Budget.RESERVE), TURN])
    assert [step.turn for step in steps] == [SYNTHESIS, SYNTHESIS, RESERVE, RESERVE]
    assert words(steps) == [(Decision.WARNED, TRACKING, WARNED)]


def test_the_reserve_of_one_turn_is_not_that_of_the_next():
    events: list[Event] = [TurnStarted(Budget.RESERVE), CallsProposed(), TURN]
    assert run_of(ENFORCE, events)[-1].turn == NORMAL


@pytest.mark.parametrize(
    "event", [TURN, ONE, SETTLED, CallsProposed(), TurnStarted(Budget.RESERVE)]
)
def test_a_failed_run_stays_failed_until_a_new_one(event):
    state = after(ENFORCE, [TURN, CallsProposed((call(),) * 5)])
    step = reduce(state, event)
    assert (step.action, step.failure) == (RunAction.FAIL, Failure.TOOL_LOOP_DETECTED)
    assert (step.state, step.transitions, step.loop_type) == (state, (), None)
    assert reduce(state, RunStarted()).state == ENFORCE


def test_a_final_answer_completes_the_run_and_a_further_turn_takes_it_up():
    steps = run_of(ENFORCE, [*ROUND, TURN, CallsProposed()])
    assert steps[-1].action is RunAction.COMPLETE
    assert steps[-1].state.next_turn_mode is None
    taken_up = reduce(steps[-1].state, TURN).state
    assert (taken_up.next_turn_mode, taken_up.max_count) == (TurnMode.NORMAL, 1)
    assert reduce(steps[-1].state, ONE).state.is_finished is False
    off = steps[-1].state._replace(mode=Mode.OFF)
    assert reduce(off, ONE).state.is_finished is False


def test_a_batch_that_waits_for_approval_owes_no_turn_until_it_is_settled():
    paused = after(ENFORCE, [TURN, CallsProposed((call(),) * 4)])
    assert paused.next_turn_mode is None
    assert reduce(paused, SETTLED).state.next_turn_mode is TurnMode.SYNTHESIS_ONLY


def test_a_turn_that_starts_before_its_batch_was_settled_has_no_evidence_of_it():
    state = after(ENFORCE, [ONE, BatchSettled({"a": "p"}), ONE, TURN, BatchSettled({"a": "q"})])
    assert (state.max_count, state.tallies.resets_used) == (2, 0)


def test_calls_of_a_turn_that_never_started_meet_the_threshold_alone():
    steps = run_of(ENFORCE, [ONE, SETTLED] * 5)
    assert [step.action for step in steps[::2]] == [RunAction.DISPATCH] * 4 + [RunAction.FAIL]


def test_a_new_run_keeps_the_settings_and_may_bring_another_mode_and_route():
    state = IdenticalCall.start(Mode.ENFORCE, threshold=3, max_evidence_resets=7)
    begun = reduce(after(state, ROUND), RunStarted(Mode.WARN, Route.CRON)).state
    assert begun == IdenticalCall.start(
        Mode.WARN, route=Route.CRON, threshold=3, max_evidence_resets=7
    )
    assert reduce(begun, RunStarted()).state == begun


@pytest.mark.parametrize(
    ("settings", "words_of_it"),
    [
        pytest.param({"threshold": 1}, "threshold is 1; give a whole number from 2", id="one"),
        pytest.param({"threshold": True}, "threshold is True", id="true"),
        pytest.param({"threshold": "5"}, "threshold is '5'", id="a text"),
        pytest.param({"max_evidence_resets": -1}, "max_evidence_resets is -1", id="minus one"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings, words_of_it):
    with pytest.raises(ValueError, match=words_of_it):
        IdenticalCall.start(Mode.ENFORCE, **settings)


def test_the_least_settings_are_taken():
    state = IdenticalCall.start(Mode.ENFORCE, threshold=2, max_evidence_resets=0)
    assert (state.threshold, state.max_evidence_resets) == (2, 0)


def test_a_fault_of_the_host_is_named_without_its_data():
    running = reduce(ENFORCE, ONE).state
    with pytest.raises(ValueError, match="one of evidence is of type bytes") as refused:
        reduce(running, BatchSettled({"a": b"secret"}))  # type: ignore[dict-item]  # the fault
    assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match=r"event is of type str; pass a RunStarted"):
        reduce(ENFORCE, "go")  # type: ignore[arg-type]  # the fault under test
    with pytest.raises(ValueError, match=r"budget is of type str; pass one of Budget.NONE"):
        reduce(ENFORCE, TurnStarted("plenty"))  # type: ignore[arg-type]  # the fault under test


@pytest.mark.parametrize("text", [REPETITION_NOTE, BUDGET_NOTE])
def test_a_note_asks_for_an_answer_and_claims_nothing_done(text):
    assert "best answer" in text
    assert "missing" in text
    assert "not finished" in text
    assert call().tool not in text


def test_only_the_note_of_a_repetition_mentions_a_repetition():
    assert "repeated" in REPETITION_NOTE
    assert "repeated" not in BUDGET_NOTE
    assert NORMAL.note is None
