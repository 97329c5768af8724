"""Invalid parameters: three wrong calls of one tool in a row, in two batches, end the turn."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.repeated_failure import Observation
from guardwave.reducer.pipeline.invalid_params import (
    DEFAULT_LIMIT,
    InvalidParams,
    dump,
    interrupt,
    reduce,
    restore,
)
from guardwave.reducer.vocabulary import LoopType


def observe(tool, *, terminal="error", execution="not_started", error_type="invalid_tool_params"):
    return Observation(
        "c", tool, terminal_status=terminal, execution_status=execution, error_type=error_type
    )


def duplicate(tool):
    return Observation("c", tool, is_provider_duplicate=True)


INVALID = observe("read")


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
        pytest.param(
            [[INVALID, INVALID], [INVALID, observe("other")]], id="the rest is not looked at"
        ),
        pytest.param(
            [[INVALID, duplicate("other"), INVALID], [], [INVALID]],
            id="answers without a run and empty batches between",
        ),
        pytest.param([[observe("other"), INVALID], [INVALID, INVALID]], id="another tool's before"),
    ],
)
def test_the_third_in_a_row_stops(batches):
    state, reasons = after(*batches)
    assert reasons == [*[None] * (len(batches) - 1), LoopType.INVALID_TOOL_PARAMS]
    assert (state.is_latched, state.tool, state.count) == (True, "read", 3)
    assert (state.limit, state.batches) == (DEFAULT_LIMIT, 3 if len(batches[0]) == 1 else 2)


@pytest.mark.parametrize(
    ("batches", "count"),
    [
        pytest.param([[INVALID] * 7], 7, id="seven in one batch"),
        pytest.param([[INVALID], [INVALID]], 2, id="two batches of one"),
        pytest.param([[INVALID] * 3, []], 3, id="an empty batch is none"),
        pytest.param([[INVALID] * 3, [duplicate("read")]], 3, id="nor is one of duplicates"),
        pytest.param(
            [[INVALID], [observe("write"), *[INVALID] * 3]], 3, id="a row that begins anew"
        ),
    ],
)
def test_a_model_that_never_saw_an_error_is_not_stopped(batches, count):
    state, reasons = after(*batches)
    assert reasons == [None] * len(batches)
    assert (state.is_latched, state.count) == (False, count)


def test_a_row_of_more_than_the_limit_stops_with_the_first_call_of_the_second_batch():
    state, reasons = after([INVALID] * 4, [INVALID] * 4)
    assert reasons == [None, LoopType.INVALID_TOOL_PARAMS]
    assert (state.count, state.batches) == (5, 2)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_limit_is_the_hosts(limit):
    state, reasons = InvalidParams(limit), []
    for _ in range(max(limit, 2)):
        state, reason = reduce(state, [INVALID])
        reasons.append(reason)
    assert reasons == [*[None] * (max(limit, 2) - 1), LoopType.INVALID_TOOL_PARAMS]


def test_without_a_limit_nothing_is_counted():
    none = InvalidParams(None)
    for _ in range(9):
        assert reduce(none, [INVALID] * 3) == (none, None)
    assert restore(json.loads(json.dumps(dump(none)))) == none


@pytest.mark.parametrize("limit", [0, -1, True, 3.0, "3"])
def test_a_limit_that_allows_nothing_is_refused(limit):
    with pytest.raises(ValueError, match=r"limit is .*; give a whole number of calls from 1, or N"):
        InvalidParams(limit)


def test_input_of_a_person_ends_a_row_and_leaves_a_stop():
    state, _ = after([INVALID], [INVALID])
    assert interrupt(state) == InvalidParams()
    assert interrupt(InvalidParams(7, "read", 1, 1)) == InvalidParams(7)
    stopped, _ = reduce(state, [INVALID])
    assert interrupt(stopped) == stopped


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(
            observe("read", terminal="success", execution="success", error_type=None),
            id="a success",
        ),
        pytest.param(observe("write"), id="another tool's invalid call"),
        pytest.param(observe("read", error_type="timeout"), id="another reason not to start"),
        pytest.param(observe("read", execution="error"), id="one that did start"),
        pytest.param(observe("read", terminal="cancelled"), id="a cancelled one"),
        pytest.param(observe(None), id="one without a tool"),
        pytest.param(observe("  "), id="one with a blank tool"),
        pytest.param(observe("read", error_type=None), id="one without an error type"),
    ],
)
def test_anything_else_between_ends_the_row(between):
    state, reasons = after([INVALID, INVALID, between, INVALID, INVALID])
    assert reasons == [None]
    assert (state.tool, state.count) == ("read", 2)


def test_once_stopped_it_is_silent():
    state, _ = after([INVALID], [INVALID] * 2)
    assert reduce(state, [INVALID] * 3) == (state, None)
    assert reduce(state, [observe("read", terminal="success", execution="success")]) == (
        state,
        None,
    )


@given(
    st.lists(
        st.sampled_from(
            [INVALID, observe("write"), duplicate("read"), observe("x", error_type="y")]
        ),
        max_size=8,
    )
)
def test_its_state_survives_json_at_every_step(observations):
    state = InvalidParams()
    for observation in observations:
        state, _ = reduce(state, [observation])
        assert restore(json.loads(json.dumps(dump(state)))) == state


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"tool": None}, "tool must be null with a count of 0", id="no tool"),
        pytest.param({"count": 0}, "tool must be null with a count of 0", id="no count"),
        pytest.param({"count": True}, "count must be a whole number", id="count as truth"),
        pytest.param({"batches": 0}, "batches must be from 1 to count", id="no batch"),
        pytest.param({"batches": 3}, "batches must be from 1 to count", id="too many batches"),
        pytest.param(
            {"tool": None, "count": 0}, "batches must be from 1 to count, and 0", id="no row"
        ),
        pytest.param({"limit": 0}, "limit must be a whole number from 1, or null", id="no limit"),
        pytest.param({"limit": "3"}, "limit must be a whole number", id="a limit as text"),
        pytest.param({"is_latched": 1}, "is_latched must be true or false", id="a number"),
        pytest.param({"guard": "identical_call"}, "guard is 'identical_call'", id="another's"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_its_field(changed, message):
    with pytest.raises(ValueError, match=message):
        restore({**dump(InvalidParams(3, "read", 2, 2)), **changed})


def test_a_snapshot_of_the_future_starts_anew_under_the_given_limit():
    newer = {**dump(InvalidParams(5, "read", 2, 1)), "schema": 2}
    assert restore(newer) == InvalidParams()
    assert restore(newer, limit=7) == InvalidParams(7)
    assert restore(newer, limit=None) == InvalidParams(None)


def test_the_limit_is_three_by_default():
    assert InvalidParams() == InvalidParams(DEFAULT_LIMIT) == InvalidParams(3)
