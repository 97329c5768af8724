"""Identical-call snapshots: their fields, and the errors for a damaged one."""

import json
import re

import pytest

from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    CallsProposed,
    Failure,
    IdenticalCall,
    SynthesisCause,
    Turn,
    TurnMode,
    TurnStarted,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.guards.identical_call.state import PendingCall, Tally, evidence_digest
from guardwave.reducer.vocabulary import Mode, Route
from tests.support.guards.calls import call, run_of, unreadable

LS, PWD = str(call(command="ls").fingerprint), str(call(command="pwd").fingerprint)
START = IdenticalCall.start(Mode.WARN, route=Route.CRON, threshold=3, max_evidence_resets=7)
RUNNING = run_of(
    START,
    [
        CallsProposed((call("x"), call("y", "pwd"))),
        BatchSettled({"x": "p", "y": "p"}),
        CallsProposed((call("x"), call("y", "pwd"))),
        BatchSettled({"x": "q", "y": "p"}),
        TurnStarted(),
        CallsProposed((call(None), unreadable("u"))),
    ],
)[-1].state
DOCUMENT = {
    "guard": "identical_call",
    "schema": 1,
    "mode": "warn",
    "route": "cron",
    "threshold": 3,
    "max_evidence_resets": 7,
    "tallies": {
        LS: [2, evidence_digest("q"), 3],
        PWD: [2, evidence_digest("p"), 2],
    },
    "leader": PWD,
    "resets_used": 1,
    "last_ordinal": 3,
    "turn_mode": None,
    "turn_cause": None,
    "pending": [[None, LS], ["u", None]],
    "failure": None,
    "is_finished": False,
    "phase": "warned",
    "is_enforcement_disabled": False,
}


def test_a_dump_holds_the_whole_state():
    assert dump(RUNNING) == DOCUMENT


def test_a_dump_is_read_back_as_it_was_written():
    found = restore(json.loads(json.dumps(DOCUMENT)))
    assert found == RUNNING
    assert found.tallies.by_call[PWD] == Tally(2, evidence_digest("p"), 2)
    assert found.pending == (PendingCall(None, LS), PendingCall("u", None))


@pytest.mark.parametrize("cause", [None, *SynthesisCause])
@pytest.mark.parametrize("mode", TurnMode)
def test_an_open_turn_is_read_back_with_its_cause(mode, cause):
    state = START._replace(turn=Turn(mode, cause))
    assert restore(json.loads(json.dumps(dump(state)))) == state


def test_a_restored_run_sees_that_evidence_is_the_same_as_before():
    state = run_of(restore(DOCUMENT), [CallsProposed((call("x"),)), BatchSettled({"x": "q"})])
    assert state[-1].state.tallies.resets_used == 1
    other = run_of(restore(DOCUMENT), [CallsProposed((call("x"),)), BatchSettled({"x": "r"})])
    assert other[-1].state.tallies.resets_used == 2


def test_a_batch_that_was_running_settles_after_it_was_restored():
    state = reduce(START, CallsProposed((call("x"),))).state
    settled = reduce(restore(dump(state)), BatchSettled({"x": "p"})).state
    assert settled.tallies.by_call[LS].evidence == evidence_digest("p")
    assert settled.pending is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param(
            {"tallies": {LS: 7}},
            "tallies must be lists of a count, an evidence digest and an ordinal",
            id="a tally",
        ),
        pytest.param(
            {"tallies": {LS: [-1, None, 0]}},
            "tallies must be a whole number from 0",
            id="a count",
        ),
        pytest.param(
            {"tallies": {LS: [1, None, -1]}},
            "ordinal must be a whole number from 0",
            id="an ordinal",
        ),
        pytest.param(
            {"pending": ["a"]}, "pending must be pairs of a call id and a fingerprint", id="a pair"
        ),
        pytest.param(
            {"pending": [["a", "z"]]}, "pending must be calls that were counted", id="an uncounted"
        ),
        pytest.param(
            {"leader": LS + "0"}, "leader must be the call with the highest count", id="l"
        ),
        pytest.param({"threshold": 1}, "threshold must be a whole number from 2", id="threshold"),
    ],
)
def test_a_damaged_snapshot_is_refused_in_these_words(changed, words):
    whole = f"the snapshot of identical_call is damaged: {words}; start the guard anew"
    with pytest.raises(ValueError, match=f"^{re.escape(whole)}$"):
        restore({**DOCUMENT, **changed})


@pytest.mark.parametrize("failure", Failure)
def test_a_failed_run_is_dumped_and_read_back_with_its_failure(failure):
    state = START._replace(failure=failure)
    assert dump(state)["failure"] == failure.value
    assert restore(dump(state)) == state


@pytest.mark.parametrize(
    ("tallies", "leader"),
    [
        pytest.param({LS: [1, None, 0]}, None, id="counts without a leader"),
        pytest.param({"": [1, None, 0]}, None, id="a count of a call without a fingerprint"),
        pytest.param({LS: [1, None, 0], PWD: [2, None, 1]}, LS, id="another count is higher"),
        pytest.param({}, LS, id="a leader without counts"),
    ],
)
def test_a_leader_that_does_not_lead_is_refused(tallies, leader):
    damaged = {**DOCUMENT, "pending": None, "tallies": tallies, "leader": leader}
    with pytest.raises(ValueError, match="leader must be the call with the highest count"):
        restore(damaged)


@pytest.mark.parametrize("leader", [LS, PWD])
def test_either_of_two_calls_with_one_count_may_lead(leader):
    assert restore({**DOCUMENT, "leader": leader}).tallies.leader == leader


def test_the_least_threshold_is_read_back():
    state = IdenticalCall.start(Mode.ENFORCE, threshold=2, max_evidence_resets=0)
    assert restore(dump(state)) == state


@pytest.mark.parametrize("mode", TurnMode)
def test_an_open_turn_is_dumped_with_its_mode_and_cause(mode):
    found = dump(START._replace(turn=Turn(mode, SynthesisCause.BUDGET), is_finished=True))
    assert (found["turn_mode"], found["turn_cause"]) == (mode.value, "budget")
    assert (found["is_finished"], found["pending"], found["leader"]) == (True, None, None)
