"""What the pipeline refuses of its host, and that no event changes the state it comes to."""

import re
from dataclasses import replace

import pytest

from reducer.guards.pipeline import (
    BatchProposed,
    BatchSettled,
    Pipeline,
    Proposal,
    dump,
    reduce,
)
from reducer.guards.repeated_failure import Observation, SettledBatch
from reducer.guards.side_effect import GUARD as SIDE_EFFECT
from reducer.guards.side_effect import FirstUse
from reducer.vocabulary import Mode
from tests.reducer.guards.pipelines import READS, SENDS, Session, ask, only

SEND = ask("c1", "send", declaration=SENDS, to="ann")
PROPOSED = BatchProposed(((SEND,),), "r1", 1000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"request": " "}, "request is ' '; name the request", id="a blank request"),
        pytest.param({"now_ms": 1.5}, "now_ms is 1.5; pass whole milliseconds", id="a float time"),
        pytest.param({"thread": 7}, "thread is a int; pass a text", id="a thread that is no text"),
        pytest.param(
            {"channel": "a\nb"}, "channel is no text of 1 to 64", id="a line in a channel"
        ),
    ],
)
def test_a_malformed_batch_is_refused_by_its_field(change, words):
    state = Pipeline.start(only(SIDE_EFFECT))
    with pytest.raises(ValueError, match=re.escape(words)):
        reduce(state, replace(PROPOSED, **change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"xid": 7}, "xid is a int; pass a text", id="an identity that is no text"),
        pytest.param(
            {"first_use": FirstUse("c0", "r0", 1)},
            "first_use is given without the xid it was read under",
            id="a use without its identity",
        ),
    ],
)
def test_a_malformed_proposal_is_refused_by_its_field(change, words):
    event = BatchProposed(((Proposal(SEND.call, SENDS, **change),),), "r1", 1000)
    with pytest.raises(ValueError, match=re.escape(words)):
        reduce(Pipeline.start(only(SIDE_EFFECT)), event)


def test_a_batch_that_settles_at_no_time_is_refused():
    running = reduce(Pipeline.start(only(SIDE_EFFECT)), PROPOSED)
    done = Observation(
        running.fates[0].key, "send", terminal_status="success", execution_status="success"
    )
    batch = SettledBatch((done,), is_complete=True, is_input_reliable=True)
    with pytest.raises(ValueError, match=r"now_ms is 2000\.5; pass whole milliseconds"):
        reduce(running.state, BatchSettled(batch, 2000.5))  # type: ignore[arg-type]  # as a host in plain Python may


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_no_event_changes_the_state_it_comes_to(mode):
    session = Session(only(SIDE_EFFECT, mode))
    seen = [(session.state, dump(session.state))]
    for number in range(4):
        read = ask(f"r{number}", "read", declaration=READS, n=number)
        new = ask(f"n{number}", "send", declaration=SENDS, n=number)
        again = ask(f"a{number}", "send", declaration=SENDS, to="ann")
        step = session.propose(read, new, again)
        seen.append((session.state, dump(session.state)))
        for fate in step.fates:
            if fate.question is not None:
                session.answer(fate.key, is_approved=number != 2)
                seen.append((session.state, dump(session.state)))
        session.settle(step.fates)
        seen.append((session.state, dump(session.state)))
    assert [dump(state) for state, _ in seen] == [before for _, before in seen]
    assert len({repr(document) for _, document in seen}) == len(seen)
