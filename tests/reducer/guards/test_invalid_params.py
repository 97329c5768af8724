"""Three calls in a row of one tool with invalid parameters end the turn, and nothing less."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducer.guards.invalid_params import InvalidParams, dump, reduce, restore
from reducer.guards.repeated_failure import Observation
from reducer.vocabulary import LoopType


def seen(tool, *, terminal="error", execution="not_started", error_type="invalid_tool_params"):
    return Observation(
        "c", tool, terminal_status=terminal, execution_status=execution, error_type=error_type
    )


def duplicate(tool):
    return Observation("c", tool, is_provider_duplicate=True)


INVALID = seen("read")


def after(*batches):
    """Return the reasons that each batch gave, and the last state."""
    state, reasons = InvalidParams(), []
    for batch in batches:
        state, reason = reduce(state, batch)
        reasons.append(reason)
    return state, reasons


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([[INVALID], [INVALID], [INVALID]], id="one each in three batches"),
        pytest.param([[INVALID] * 3], id="three in one batch"),
        pytest.param(
            [[INVALID, INVALID], [INVALID, seen("other")]], id="the rest is not looked at"
        ),
        pytest.param(
            [[INVALID, duplicate("other"), INVALID], [], [INVALID]],
            id="answers without a run and empty batches between",
        ),
        pytest.param([[seen("other"), INVALID, INVALID, INVALID]], id="another tool's before"),
    ],
)
def test_the_third_in_a_row_stops(batches):
    state, reasons = after(*batches)
    assert reasons == [*[None] * (len(batches) - 1), LoopType.INVALID_TOOL_PARAMS]
    assert (state.is_latched, state.tool, state.count) == (True, "read", 3)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(
            seen("read", terminal="success", execution="success", error_type=None), id="a success"
        ),
        pytest.param(seen("write"), id="another tool's invalid call"),
        pytest.param(seen("read", error_type="timeout"), id="another reason not to start"),
        pytest.param(seen("read", execution="error"), id="one that did start"),
        pytest.param(seen("read", terminal="cancelled"), id="a cancelled one"),
        pytest.param(seen(None), id="one without a tool"),
        pytest.param(seen("  "), id="one with a blank tool"),
        pytest.param(seen("read", error_type=None), id="one without an error type"),
    ],
)
def test_anything_else_between_ends_the_row(between):
    state, reasons = after([INVALID, INVALID, between, INVALID, INVALID])
    assert reasons == [None]
    assert (state.tool, state.count) == ("read", 2)


def test_once_stopped_it_is_silent():
    state, _ = after([INVALID] * 3)
    assert reduce(state, [INVALID] * 3) == (state, None)
    assert reduce(state, [seen("read", terminal="success", execution="success")]) == (state, None)


@given(
    st.lists(
        st.sampled_from([INVALID, seen("write"), duplicate("read"), seen("x", error_type="y")]),
        max_size=8,
    )
)
def test_its_state_survives_json_at_every_step(observations):
    state = InvalidParams()
    for each in observations:
        state, _ = reduce(state, [each])
        assert restore(json.loads(json.dumps(dump(state)))) == state


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"tool": None}, "tool must be null with a count of 0", id="no tool"),
        pytest.param({"count": 0}, "tool must be null with a count of 0", id="no count"),
        pytest.param({"count": True}, "count must be a whole number", id="count as truth"),
        pytest.param({"guard": "identical_call"}, "guard is 'identical_call'", id="another's"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_its_field(changed, message):
    with pytest.raises(ValueError, match=message):
        restore({**dump(InvalidParams("read", 2)), **changed})


def test_a_snapshot_of_the_future_begins_anew():
    assert restore({**dump(InvalidParams("read", 2)), "schema": 2}) == InvalidParams()
