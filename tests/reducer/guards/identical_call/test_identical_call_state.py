"""Identical-call state: the records of a run after each kind of step."""

import pytest

from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    Budget,
    CallsProposed,
    Event,
    Failure,
    IdenticalCall,
    RunAction,
    SynthesisCause,
    Turn,
    TurnMode,
    TurnStarted,
    reduce,
)
from guardwave.reducer.guards.identical_call.state import PendingCall, Tallies
from guardwave.reducer.vocabulary import GuardPhase, Mode
from tests.support.guards.calls import call, run_of, unreadable

ONE = CallsProposed((call(),))
PENDING = (PendingCall("old", None),)
SYNTHESIS = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.REPETITION)


def busy(mode=Mode.ENFORCE, turn=None, **settings):
    """Return a run with a turn that is open and a batch that has not settled."""
    return IdenticalCall.start(mode, **settings)._replace(turn=turn or Turn(), pending=PENDING)


@pytest.mark.parametrize(
    ("state", "event", "failure"),
    [
        pytest.param(
            busy(), TurnStarted(Budget.EXHAUSTED), Failure.BUDGET_EXCEEDED, id="the budget is used"
        ),
        pytest.param(
            busy(turn=Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.BUDGET)),
            ONE,
            Failure.BUDGET_EXCEEDED,
            id="a tool in the reserve",
        ),
        pytest.param(busy(turn=SYNTHESIS), ONE, Failure.TOOL_LOOP_DETECTED, id="a tool after all"),
        pytest.param(
            busy(threshold=2),
            CallsProposed((call(), call())),
            Failure.TOOL_LOOP_DETECTED,
            id="the threshold",
        ),
    ],
)
def test_a_failed_run_has_no_turn_open_and_nothing_running(state, event, failure):
    step = reduce(state, event)
    assert (step.action, step.failure, step.state.failure) == (RunAction.FAIL, failure, failure)
    assert (step.state.turn, step.state.pending) == (None, None)
    is_loop = failure is Failure.TOOL_LOOP_DETECTED
    assert step.state.phase is (GuardPhase.LATCHED if is_loop else GuardPhase.IDLE)


def test_a_final_answer_finishes_the_run_and_a_turn_takes_it_up_again():
    done = reduce(busy(), CallsProposed()).state
    assert (done.turn, done.pending, done.is_finished) == (None, None, True)
    again = reduce(done._replace(pending=PENDING), TurnStarted()).state
    assert (again.turn, again.pending) == (Turn(), None)
    assert again.is_finished is False


@pytest.mark.parametrize("mode", Mode)
def test_a_batch_that_runs_is_pending_under_its_ids(mode):
    state = busy(mode)._replace(is_finished=True)
    after = reduce(state, CallsProposed((call("x"), unreadable("u"), call(None)))).state
    counted = None if mode is Mode.OFF else call().fingerprint
    assert after.pending == (
        PendingCall("x", counted),
        PendingCall("u", None),
        PendingCall(None, counted),
    )
    assert after.turn is None
    assert after.is_finished is False
    assert reduce(after, BatchSettled()).state.pending is None


@pytest.mark.parametrize(
    ("threshold", "ordinals"),
    [
        pytest.param(2, [1, 1], id="one short of the limit is the first call"),
        pytest.param(3, [0, 1], id="the second call"),
        pytest.param(9, [0, 1], id="the second call, far from the limit"),
    ],
)
def test_a_streak_is_numbered_when_it_begins(threshold, ordinals):
    start = IdenticalCall.start(Mode.WARN, threshold=threshold)
    steps = run_of(start, [ONE, ONE])
    assert [step.state.tallies.leading.ordinal for step in steps] == ordinals


def test_of_two_calls_with_one_count_the_first_leads_and_is_reported():
    pair = CallsProposed((call("a", "ls"), call("b", "pwd")))
    steps = run_of(IdenticalCall.start(Mode.WARN), [pair, pair])
    assert {step.state.tallies.leader for step in steps} == {call(command="ls").fingerprint}
    assert [transition.candidate_ordinal for transition in steps[-1].transitions] == [1]


def test_a_run_fails_at_five_equal_calls_and_restarts_counts_32_times_at_most():
    start = IdenticalCall.start(Mode.WARN)
    assert (start.threshold, start.max_evidence_resets) == (5, 32)
    assert start.tallies == Tallies({}, None, 0, 0)


@pytest.mark.parametrize(
    ("mode", "times", "turn"),
    [
        pytest.param(Mode.ENFORCE, 1, TurnMode.NORMAL, id="nothing repeats enough"),
        pytest.param(Mode.ENFORCE, 2, TurnMode.SYNTHESIS_ONLY, id="one short of the limit"),
        pytest.param(Mode.WARN, 2, TurnMode.NORMAL, id="warn keeps the tools on"),
        pytest.param(Mode.SHADOW, 2, TurnMode.NORMAL, id="shadow changes nothing"),
    ],
)
def test_the_next_turn_is_known_before_it_starts(mode, times, turn):
    rounds: list[Event] = [TurnStarted(), ONE, BatchSettled()] * times
    state = run_of(IdenticalCall.start(mode, threshold=3), rounds)[-1].state
    assert state.next_turn_mode is turn
    assert reduce(state, TurnStarted()).state.next_turn_mode is turn
    assert reduce(state, ONE).state.next_turn_mode is None
