"""Column checks: cells that are counts, and errors that name the place of another."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.column_checks import counts_of, refuse_cells, require_columns

NO_COUNT = "is no count; it must be a whole number from 0 to below 2\\^53"


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([7, 0], id="whole numbers"),
        pytest.param([7.0, 0.0], id="floats"),
        pytest.param(["7", " 0 "], id="text"),
        pytest.param([Decimal(7), np.int8(0)], id="decimals and numpy's own"),
        pytest.param(pd.array([7, 0], dtype="Int64"), id="pandas' nullable"),
        pytest.param(pd.Categorical([7, 0]), id="categories"),
        pytest.param(np.array([7, 0], dtype=np.uint64), id="unsigned"),
    ],
)
def test_a_count_may_be_written_in_any_type(written):
    assert counts_of(pd.DataFrame({"turns": written}), "turns").tolist() == [7, 0]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([1, True], id="a flag among numbers"),
        pytest.param([True, False], id="flags"),
        pytest.param([0, 1 + 2j], id="complex"),
        pytest.param([0, np.timedelta64(1, "s")], id="numpy's durations"),
        pytest.param([0, dt.timedelta(1)], id="a duration"),
        pytest.param(pd.to_timedelta([0, 1], unit="s"), id="durations"),
        pytest.param(pd.to_datetime(["2026-11-24"] * 2), id="timestamps"),
        pytest.param([0, dt.date(2026, 11, 24)], id="a date"),
        pytest.param([0, [1]], id="a list"),
        pytest.param([0, 2**53], id="2^53 itself"),
        pytest.param([0, 2**80], id="far beyond"),
        pytest.param(pd.array([0, None], dtype="Int64"), id="missing"),
        pytest.param(["0", "0x1F"], id="hexadecimal"),
    ],
)
def test_a_cell_that_is_no_count_is_refused_with_the_remedy(written):
    frame = pd.DataFrame({"turns": pd.Series(written)})
    with pytest.raises(ValueError, match=rf"column 'turns', row \d: .* {NO_COUNT}"):
        counts_of(frame, "turns")


@given(st.integers(0, 2**53 - 1))
def test_every_whole_number_below_the_limit_is_kept_exactly(count):
    frame = pd.DataFrame({"turns": pd.Series([count, str(count)], dtype=object)})
    assert counts_of(frame, "turns").tolist() == [count, count]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        pytest.param([5, 6], "row 6: -1", id="numbers"),
        pytest.param(["a", "b"], "row b: -1", id="names"),
        pytest.param([0, 0], r"row 0 \(at place 1\): -1", id="each twice, as concat leaves them"),
    ],
)
def test_a_row_is_named_so_that_the_caller_finds_it(index, words):
    with pytest.raises(ValueError, match=words):
        counts_of(pd.DataFrame({"turns": [3, -1]}, index=index), "turns")


def test_a_long_value_is_shown_in_part():
    frame = pd.DataFrame({"owner": ["x" * 1000]})
    with pytest.raises(ValueError, match=r"'x{79}\.\.\. is too long$"):
        refuse_cells(frame, np.array([True]), "owner", why="is too long")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        pytest.param(
            pd.DataFrame({"owner": ["a"]}),
            "lacks the columns 'day', 'turns'; it needs owner, day, turns",
            id="all that lack are named",
        ),
        pytest.param(
            pd.DataFrame({"owner": ["a"], "day": ["2026-11-24"], "turns": [1]}).set_index(
                ["owner", "day"]
            ),
            r"lacks the columns 'owner', 'day'; 'owner' and 'day' are in the index, call reset_ind",
            id="in the index",
        ),
        pytest.param(
            pd.DataFrame([[1, 2, 3, 4]], columns=["owner", "day", "turns", "day"]),
            "column 'day' is there twice, at places 1 and 3; keep one",
            id="twice",
        ),
        pytest.param(
            pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("turns", "sum")])),
            r"columns have 2 levels, such as \('turns', 'sum'\); give each one name",
            id="several levels",
        ),
    ],
)
def test_columns_that_are_not_plain_are_refused_with_the_remedy(frame, words):
    with pytest.raises(ValueError, match=words):
        require_columns(frame, ("owner", "day", "turns"))
