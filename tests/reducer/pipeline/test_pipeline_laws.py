"""Pipeline laws: any session and its snapshots."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave.reducer.guards import repeated_failure
from guardwave.reducer.guards.repeated_failure import SettledBatch
from guardwave.reducer.guards.side_effect import Action, Ladder
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.pipeline import GUARDS, Limits, Pipeline, dump, restore
from guardwave.reducer.vocabulary import Decision, LoopType, Mode
from tests.support.guards.pipelines import SENDS, Session, ask, every, observe_end, only

*_, REPEATED = GUARDS
# A whole session for each example: half as many as usual.
A_FEW = settings(max_examples=50)

BATCHES = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                lambda call_id, tool, at: ask(
                    call_id,
                    tool,
                    declaration=SENDS if tool == "send" else ask("x").declaration,
                    n=at,
                ),
                st.sampled_from(["a", "b", "c", None]),
                st.sampled_from(["read", "send"]),
                st.integers(0, 2),
            ),
            max_size=3,
        ),
        st.sampled_from(["success", "timeout", "invalid"]),
    ),
    max_size=6,
)


@A_FEW
@given(BATCHES)
def test_shadow_decides_no_call_otherwise_than_off(batches):
    shadow, off = Session(every(Mode.SHADOW)), Session(every(Mode.OFF))
    for calls, outcome in batches:
        assert shadow.turn().turn == off.turn().turn
        mine, other = shadow.propose(*calls), off.propose(*calls)
        assert [disposition._replace(key="") for disposition in mine.dispositions] == [
            call._replace(key="") for call in other.dispositions
        ]
        assert mine.stop == other.stop
        if mine.stop is not None:
            break
        settled, without = (
            shadow.settle(mine.dispositions, outcome),
            off.settle(other.dispositions, outcome),
        )
        assert (settled.stop, settled.reminder) == (without.stop, without.reminder)
    assert off.transitions == []
    assert {transition.decision for transition in shadow.transitions} <= {
        Decision.TRACKED,
        Decision.RESET,
        Decision.WOULD_WARN,
        Decision.WOULD_STOP,
        Decision.WOULD_SUSPEND,
    }


@A_FEW
@given(BATCHES, st.sampled_from(list(Mode)))
def test_a_session_that_is_stored_and_read_between_any_two_events_goes_on_alike(batches, mode):
    stored, kept = Session(every(mode)), Session(every(mode))

    def both(name, *arguments):
        stored.state = restore(json.loads(json.dumps(dump(stored.state))))
        assert stored.state == kept.state
        first, second = getattr(stored, name)(*arguments), getattr(kept, name)(*arguments)
        assert first == second
        return first

    for calls, outcome in batches:
        both("turn")
        step = both("propose", *calls)
        if step.stop is not None:
            both("prompt", every(mode))
            continue
        for disposition in step.dispositions:
            if disposition.action == "ask":
                both("answer_no", disposition.key)
        both("settle", step.dispositions, outcome)


@A_FEW
@given(BATCHES)
def test_the_repeated_failure_guard_decides_in_the_pipeline_as_it_does_alone(batches):
    session = Session(only(REPEATED, Mode.WARN))
    alone = repeated_failure.RepeatedFailure.start(Mode.WARN)
    reported: list[Transition] = []
    for calls, outcome in batches:
        step = session.propose(*calls)
        observations = tuple(observe_end(disposition, outcome) for disposition in step.dispositions)
        batch = SettledBatch(observations, is_complete=True, is_input_reliable=True)
        if session.settle(step.dispositions, outcome).stop is not None:
            break
        alone, transitions, _ = repeated_failure.reduce(alone, batch)
        reported += transitions
    assert [
        transition for transition in session.transitions if transition.guard == REPEATED
    ] == reported


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"running": ["a"]}, "running must be a list of a key", id="running"),
        pytest.param({"is_blocked": 0}, "is_blocked must be true or false", id="blocked"),
        pytest.param({"stopped_by": "boredom"}, "stopped_by must be", id="stopped by nothing"),
        pytest.param({"last_key": -1}, "last_key must be a whole number", id="last key"),
        pytest.param({"repeated": None}, "repeated must be an object", id="a missing guard"),
        pytest.param({"guard": "x"}, "guard is 'x'", id="another's"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_its_field(changed, message):
    with pytest.raises(ValueError, match=message):
        restore({**dump(Pipeline.start(every(Mode.ENFORCE))), **changed})


def stop_by(loop):
    """Return a session that this protection has stopped."""
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK), total_calls=20))
    send = {"declaration": SENDS, "to": "ann"}
    rounds = {
        LoopType.GLOBAL_TOOL_CALL_DUPLICATE: [([ask("a", n=1)], "success")] * 3,
        LoopType.INVALID_TOOL_PARAMS: [
            ([ask(f"i{row}{at}", n=f"{row}{at}") for at in range(2)], "invalid") for row in range(2)
        ],
        LoopType.IDENTICAL_TOOL_CALL: [([ask(f"c{at}", n=1) for at in range(5)], "success")],
        LoopType.SIDE_EFFECT_DUPLICATE: [
            ([ask(f"s{at}", "send", **send)], "success") for at in range(2)
        ],
        LoopType.REPEATED_TOOL_EXECUTION_FAILURE: [
            ([ask(f"f{row}{at}", n=f"{row}{at}") for at in range(4)], "timeout") for row in range(3)
        ],
        LoopType.TOTAL_TOOL_CALLS: [([ask(f"t{at}", n=at) for at in range(21)], "success")],
    }
    for calls, outcome in rounds[loop]:
        assert session.state.stopped_by is None
        session.round(*calls, outcome=outcome)
    return session


@pytest.mark.parametrize("loop", list(LoopType))
def test_a_stopped_session_can_be_stored_and_goes_on_with_the_next_prompt(loop):
    session = stop_by(loop)
    assert session.state.stopped_by is loop
    session.state = restore(json.loads(json.dumps(dump(session.state))))
    assert session.state.stopped_by is loop
    assert session.turn().stop.loop is loop
    session.prompt()
    assert session.turn().stop is None
    assert session.round(ask("new", n=100)).stop is None
    assert session.state.total.count == 1
