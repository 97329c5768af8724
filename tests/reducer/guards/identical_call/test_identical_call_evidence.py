from hashlib import blake2b

import pytest

from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    CallsProposed,
    Event,
    IdenticalCall,
    TurnStarted,
    reduce,
)
from guardwave.reducer.guards.identical_call.state import evidence_digest
from guardwave.reducer.guards.transition import FailureBucket, Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode, ResetReason, Route
from tests.support.guards.calls import call, run_of

ENFORCE = IdenticalCall.start(Mode.ENFORCE)
TURN, SETTLED = TurnStarted(), BatchSettled()
ONE = CallsProposed((call(),))
ROUND: list[Event] = [TURN, ONE, SETTLED]


def words(steps):
    return [
        (transition.decision, transition.phase_from, transition.phase_to)
        for step in steps
        for transition in step.transitions
    ]


def after(state, events):
    return run_of(state, events)[-1].state


IDLE, TRACKING, WARNED, LATCHED = GuardPhase


def test_new_evidence_restarts_the_count_and_is_reported_with_what_was_before():
    events = [ONE, BatchSettled({"a": "p"}), ONE, BatchSettled({"a": "p"}), ONE]
    state = after(ENFORCE, events)
    step = reduce(state, BatchSettled({"a": "q"}))
    assert (step.state.max_count, step.state.tallies.resets_used) == (1, 1)
    assert step.transitions == (
        Transition(
            guard="identical_call",
            route=Route.INTERACTIVE_FOREGROUND,
            mode=Mode.ENFORCE,
            phase_from=TRACKING,
            phase_to=IDLE,
            decision=Decision.RESET,
            reset_reason=ResetReason.SUCCESS,
            failure_count=FailureBucket.SOME,
            candidate_ordinal=1,
        ),
    )
    again = reduce(reduce(step.state, ONE).state, SETTLED)
    assert again.state.tallies.leading.ordinal == 2


@pytest.mark.parametrize(
    ("times", "phase"),
    [
        pytest.param(1, IDLE, id="no other call repeats"),
        pytest.param(2, TRACKING, id="another call repeats"),
        pytest.param(4, WARNED, id="another call is one short of the threshold"),
    ],
)
def test_after_a_restart_the_phase_is_that_of_the_other_calls(times, phase):
    others = CallsProposed((call("b", "pwd"),) * times)
    watched = [TURN, ONE, BatchSettled({"a": "p"}), TURN, ONE]
    state = after(IdenticalCall.start(Mode.WARN), [others, SETTLED, *watched])
    step = reduce(state, BatchSettled({"a": "q"}))
    before = WARNED if phase is WARNED else TRACKING
    assert words([step]) == [(Decision.RESET, before, phase)]
    assert (step.state.phase, step.state.max_count) == (phase, times)


@pytest.mark.parametrize(
    ("first", "second", "resets"),
    [
        pytest.param({"a": "p"}, {"a": "q"}, 1, id="new evidence"),
        pytest.param({"a": "p"}, {"a": "p"}, 0, id="the same evidence"),
        pytest.param({}, {"a": "q"}, 0, id="first evidence is only kept"),
        pytest.param({"a": "p"}, {"b": "q"}, 0, id="evidence of another call"),
        pytest.param({"a": "p"}, {"a": ""}, 0, id="an empty key is none"),
        pytest.param({"a": "p"}, {"a": None}, 0, id="no key is none"),
    ],
)
def test_evidence_restarts_a_count_only_when_it_is_unlike_the_one_before(first, second, resets):
    state = after(ENFORCE, [ONE, BatchSettled(first), ONE, BatchSettled(second)])
    assert state.tallies.resets_used == resets
    assert state.max_count == 2 - resets


def test_a_count_of_one_is_not_restarted_and_uses_up_no_restart():
    batch = CallsProposed((call("a"), call("b"), call("c")))
    state = after(ENFORCE, [batch, BatchSettled({"a": "p", "b": "q", "c": "r"})])
    assert (state.max_count, state.tallies.resets_used) == (1, 1)
    again = after(state, [ONE, BatchSettled({"a": "r"})])
    assert (again.max_count, again.tallies.resets_used) == (2, 1)


def test_two_equal_calls_of_a_batch_may_bring_two_pieces_of_evidence():
    batch = CallsProposed((call("a"), call("b")))
    step = reduce(reduce(ENFORCE, batch).state, BatchSettled({"a": "p", "b": "q"}))
    assert (step.state.max_count, step.state.tallies.resets_used) == (1, 1)


def test_a_call_without_an_id_has_no_evidence():
    batch = CallsProposed((call(None), call(None)))
    step = reduce(reduce(ENFORCE, batch).state, BatchSettled({"a": "p"}))
    assert step.state.tallies.leading.evidence is None


def test_restarts_are_capped_for_the_whole_run():
    state = IdenticalCall.start(Mode.ENFORCE, max_evidence_resets=1)
    pair = CallsProposed((call("a"), call("b", "pwd")))
    events = [pair, BatchSettled({"a": "1", "b": "1"}), pair, BatchSettled({"a": "2", "b": "2"})]
    state = after(state, events)
    assert (state.tallies.resets_used, state.max_count) == (1, 2)


def test_a_restart_under_a_latched_guard_is_silent():
    state = after(
        IdenticalCall.start(Mode.SHADOW), [*ROUND * 5, ONE, BatchSettled({"a": "p"}), ONE]
    )
    step = reduce(state, BatchSettled({"a": "q"}))
    assert (step.state.max_count, step.transitions, step.state.phase) == (1, (), LATCHED)


def test_a_streak_after_a_restart_has_a_number_of_its_own():
    rounds = [event for key in "pqq" for event in (TURN, ONE, BatchSettled({"a": key}))]
    steps = run_of(IdenticalCall.start(Mode.SHADOW, threshold=3), [*rounds, TURN])
    assert words(steps) == [
        (Decision.TRACKED, IDLE, TRACKING),
        (Decision.RESET, TRACKING, IDLE),
        (Decision.TRACKED, IDLE, TRACKING),
        (Decision.WOULD_WARN, TRACKING, WARNED),
    ]
    assert [transition.candidate_ordinal for step in steps for transition in step.transitions] == [
        1,
        1,
        2,
        2,
    ]


def test_new_evidence_after_a_restart_restarts_again_and_each_restart_is_counted():
    rounds = [event for key in "pqr" for event in (ONE, BatchSettled({"a": key}))]
    state = after(ENFORCE, rounds)
    assert (state.max_count, state.tallies.resets_used) == (1, 2)


def test_evidence_filed_under_no_id_belongs_to_no_call():
    state = after(ENFORCE, [CallsProposed((call(None),))])
    step = reduce(state, BatchSettled({None: "p"}))  # type: ignore[dict-item]  # a host's error
    assert step.state.tallies.leading.evidence is None


@pytest.mark.parametrize("more", [pytest.param("ls", id="ls"), pytest.param("pwd", id="pwd")])
def test_after_a_restart_the_call_with_the_highest_count_leads(more):
    less = "pwd" if more == "ls" else "ls"
    others = CallsProposed((call("m", more), call("m", more), call("l", less)))
    restarted = [CallsProposed((call("z", "date"),) * 2), BatchSettled({"z": "p"})]
    again = [CallsProposed((call("z", "date"),)), BatchSettled({"z": "q"})]
    state = after(IdenticalCall.start(Mode.WARN, threshold=9), [others, *restarted, *again])
    assert state.tallies.leader == call(command=more).fingerprint
    assert state.max_count == 2


def test_an_evidence_key_of_any_text_becomes_a_digest_of_128_bits():
    assert evidence_digest("page") == blake2b(b"page", digest_size=16).hexdigest()
    # Half of a surrogate pair, as a tool that cuts texts may leave it.
    assert len(evidence_digest("\ud83d")) == 32
