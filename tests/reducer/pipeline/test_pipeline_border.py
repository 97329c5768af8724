"""Pipeline border: the batches it refuses, and states that no event changes in place."""

from dataclasses import replace

import pytest

from guardwave.reducer.guards.side_effect import GUARD as SIDE_EFFECT
from guardwave.reducer.pipeline import BatchProposed, dump
from guardwave.reducer.vocabulary import Mode
from tests.support.guards.pipelines import READS, SENDS, Session, ask, only

SEND = ask("c1", "send", declaration=SENDS, to="ann")
PROPOSED = BatchProposed(((SEND,),), "r1", 1000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"request": " "}, "request is blank; name the request", id="a blank request"),
        pytest.param({"request": 7}, "request is of type int; pass", id="a request of no text"),
        pytest.param(
            {"now_ms": 1.5}, "now_ms is of type float; pass whole milli", id="a float time"
        ),
        pytest.param({"thread": 7}, "thread is of type int; pass a text", id="a thread of no text"),
        pytest.param(
            {"channel": "a\nb"}, "channel is not a text of 1 to 64", id="a line in a channel"
        ),
    ],
)
def test_a_malformed_batch_is_refused_by_its_field(change, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        replace(PROPOSED, **change)


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_no_event_changes_the_state_it_comes_to(mode):
    session = Session(only(SIDE_EFFECT, mode))
    history = [(session.state, dump(session.state))]
    for number in range(4):
        read = ask(f"r{number}", "read", declaration=READS, n=number)
        new = ask(f"n{number}", "send", declaration=SENDS, n=number)
        again = ask(f"a{number}", "send", declaration=SENDS, to="ann")
        step = session.propose(read, new, again)
        history.append((session.state, dump(session.state)))
        for disposition in step.dispositions:
            if disposition.question is not None:
                session.answer(disposition.key, is_approved=number != 2)
                history.append((session.state, dump(session.state)))
        session.settle(step.dispositions)
        history.append((session.state, dump(session.state)))
    assert [dump(state) for state, _ in history] == [before for _, before in history]
    assert len({repr(document) for _, document in history}) == len(history)
