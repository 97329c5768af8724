"""Total calls: the limit of tool calls in one prompt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.pipeline.total_calls import DEFAULT_LIMIT, TotalCalls, dump, reduce, restore
from guardwave.reducer.vocabulary import LoopType


@pytest.mark.parametrize(
    ("batches", "reasons", "count"),
    [
        pytest.param([3, 2], [None, None], 5, id="the limit itself is allowed"),
        pytest.param([5, 1], [None, LoopType.TOTAL_TOOL_CALLS], 5, id="one more stops"),
        pytest.param([6], [LoopType.TOTAL_TOOL_CALLS], 0, id="too many at once run none"),
        pytest.param([0, 0], [None, None], 0, id="no calls cost nothing"),
        pytest.param([6, 1], [LoopType.TOTAL_TOOL_CALLS, None], 0, id="a stop is reported once"),
    ],
)
def test_calls_up_to_the_limit_run(batches, reasons, count):
    state, found = TotalCalls(limit=5), []
    for proposed in batches:
        state, reason = reduce(state, proposed)
        found.append(reason)
    assert (found, state.count, state.limit) == (reasons, count, 5)
    assert state.is_latched is (LoopType.TOTAL_TOOL_CALLS in reasons)


def test_the_default_is_a_hundred():
    assert TotalCalls() == TotalCalls(DEFAULT_LIMIT) == TotalCalls(100)


@pytest.mark.parametrize("limit", [0, -1, True, 2.0, "5"])
def test_a_limit_that_allows_nothing_is_refused(limit):
    with pytest.raises(ValueError, match=r"limit is .*; give a whole number of calls from 1, or N"):
        TotalCalls(limit)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(TotalCalls(1, 0), id="the lowest limit"),
        pytest.param(TotalCalls(5, 3), id="some calls"),
        pytest.param(TotalCalls(5, 5, is_latched=True), id="stopped"),
    ],
)
def test_a_dump_is_read_back_as_it_was_written(state):
    found = restore(json.loads(json.dumps(dump(state))))
    assert found == state
    assert type(found.count) is int


@given(st.integers(1, 9), st.lists(st.integers(0, 4), max_size=6))
def test_its_state_survives_json_at_every_step(limit, batches):
    state = TotalCalls(limit)
    for proposed in batches:
        state, _ = reduce(state, proposed)
        assert restore(json.loads(json.dumps(dump(state)))) == state


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"limit": 0}, "limit must be a whole number from 1, or null", id="no limit"),
        pytest.param({"limit": "5"}, "limit must be a whole number", id="a limit as text"),
        pytest.param({"count": 6}, "count must be no more than limit", id="beyond the limit"),
        pytest.param({"is_latched": 1}, "is_latched must be true or false", id="a number"),
        pytest.param({"guard": "x"}, "guard is 'x'", id="another's"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_its_field(changed, message):
    with pytest.raises(ValueError, match=message):
        restore({**dump(TotalCalls(5, 5)), **changed})


def test_a_snapshot_of_the_future_starts_anew_under_the_given_limit():
    newer = {**dump(TotalCalls(5, 5)), "schema": 2}
    assert restore(newer) == TotalCalls()
    assert restore(newer, limit=7) == TotalCalls(7)


def test_without_a_limit_every_batch_runs_and_calls_are_still_counted():
    state = TotalCalls(None)
    for _ in range(3):
        state, reason = reduce(state, 1000)
        assert reason is None
    assert state == TotalCalls(None, 3000)
    assert restore(json.loads(json.dumps(dump(state)))) == state
