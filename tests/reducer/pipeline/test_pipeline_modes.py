"""Pipeline modes: guards off the foreground, guards not named, and what is no event."""

import pytest

from guardwave.reducer.pipeline import (
    GUARDS,
    Pipeline,
    reduce,
)
from guardwave.reducer.vocabulary import Mode, Route
from tests.support.guards.pipelines import SENDS, Session, actions, ask, every, only

*_, REPEATED = GUARDS


@pytest.mark.parametrize("route", [route for route in Route if route != "interactive_foreground"])
def test_off_the_foreground_every_guard_is_off(route):
    session = Session(route=route)
    for _ in range(6):
        step = session.propose(ask("a", path="1"), ask("s", "send", declaration=SENDS, to="ann"))
        assert actions(step) == ["run", "run"]
        assert session.settle(step.dispositions, "timeout").stop is None
    assert session.transitions == []
    session.prompt(route=route)
    assert session.state.side_effect.mode is Mode.OFF


def test_a_guard_that_is_not_named_is_off():
    session = Session(only(REPEATED))
    session.round(ask("a", path="1"))
    session.round(ask("a", path="1"))
    assert actions(session.propose(ask("a", path="1"))) == ["run"]
    assert session.transitions == []


def test_a_guard_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="modes name 'read_loop', no guard of the pipeline"):
        Pipeline.start({"read_loop": Mode.WARN})


def test_something_that_is_no_event_is_refused():
    with pytest.raises(
        ValueError, match=r"event is of type str; pass one of guardwave\.guards\.pipel"
    ):
        reduce(Pipeline.start({}), "stop")  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW])
def test_calls_whose_ids_nobody_keeps_apart_have_keys_of_their_own(mode):
    session = Session(every(mode))
    keys = [
        call.key
        for _ in range(2)
        for call in session.propose(
            ask("read_0", n=1), ask(None, n=2), ask("read_0", n=3)
        ).dispositions
    ]
    assert keys == ["read_0#1", "call#2", "read_0#3", "read_0#4", "call#5", "read_0#6"]
