"""Histograms: the layout of durations by owner, their merges and their checks."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.histograms import (
    ExplicitHistograms,
    OwnerHistograms,
    merge_histograms,
)

ROWS = [("b", 5, 2), ("a", -3, 1), ("b", 4, 1), ("b", 5, 3), ("a", 7, 0)]


def frame(rows=ROWS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["owner", "bucket", "count"])


def listed(histograms: OwnerHistograms) -> dict[str, dict[int, int]]:
    return {
        owner: {
            int(histograms.buckets[place]): int(histograms.counts[place])
            for place in range(histograms.starts[row], histograms.starts[row + 1])
        }
        for row, owner in enumerate(histograms.owners)
    }


def test_rows_are_summed_by_owner_and_bucket_whatever_their_order():
    found = OwnerHistograms.of(frame(), 7)

    assert listed(found) == {"a": {-3: 1}, "b": {4: 1, 5: 5}}
    assert listed(OwnerHistograms.of(frame(ROWS[::-1]), 7)) == listed(found)
    assert found.totals.tolist() == [1, 6]


def test_a_frame_without_rows_is_a_histogram_of_nobody():
    found = OwnerHistograms.of(frame([]), 7)

    assert (found.owners, found.totals.tolist()) == ((), [])


def test_an_owner_of_empty_buckets_alone_has_no_duration():
    found = OwnerHistograms.of(frame([("a", 1, 0), ("b", 1, 2), ("c", 1, 0)]), 7)

    assert listed(found) == {"a": {}, "b": {1: 2}, "c": {}}
    assert found.totals.tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        pytest.param("owner", "", "column 'owner', row 1: '' is no owner", id="unnamed owner"),
        pytest.param("bucket", 1.5, "column 'bucket', row 1: 1.5 is no bucket", id="half a bucket"),
        pytest.param("bucket", np.nan, "column 'bucket', row 1: nan is no", id="unknown bucket"),
        pytest.param("bucket", 2.0**31, "column 'bucket', row 1: .* is no", id="beyond any scale"),
        pytest.param("count", -1, "column 'count', row 1: -1 is no count", id="negative"),
        pytest.param("count", np.inf, "column 'count', row 1: inf is no count", id="infinite"),
        pytest.param("count", "many", "column 'count', row 1: 'many' is no count", id="a word"),
    ],
)
def test_a_bad_cell_is_refused_by_column_row_and_value(column, value, message):
    rows = frame().astype(object)
    rows.loc[1, column] = value

    with pytest.raises(ValueError, match=message):
        OwnerHistograms.of(rows, 7)


@pytest.mark.parametrize("column", ["owner", "bucket", "count"])
def test_a_missing_column_is_named(column):
    with pytest.raises(ValueError, match=f"lacks the column '{column}'"):
        OwnerHistograms.of(frame().drop(columns=column), 7)


@pytest.mark.parametrize("scale", [-11, 21])
def test_a_scale_that_the_data_model_lacks_is_refused(scale):
    with pytest.raises(ValueError, match=f"scale {scale} is none of -10 to 20"):
        OwnerHistograms.of(frame(), scale)


durations = st.lists(st.floats(0.01, 1e7), min_size=1, max_size=60)


def bucket_of(duration: float, scale: int) -> int:
    """Bucket b holds (g^b, g^(b + 1)]: by its edges, and not by the code under test."""
    guess = int(np.floor(np.log2(duration) * 2.0**scale))
    for bucket in (guess - 1, guess, guess + 1):
        if 2.0 ** (bucket * 2.0**-scale) < duration <= 2.0 ** ((bucket + 1) * 2.0**-scale):
            return bucket
    raise AssertionError(duration)


@given(durations, st.integers(0, 7), st.integers(0, 7))
def test_a_coarser_scale_counts_as_if_it_had_been_recorded(values, scale, coarser_by):
    def recorded(at: int) -> OwnerHistograms:
        return OwnerHistograms.of(frame([("a", bucket_of(one, at), 1) for one in values]), at)

    coarse = recorded(scale + coarser_by).at_scale(scale)

    assert coarse.scale == scale
    assert listed(coarse) == listed(recorded(scale))


def test_a_finer_scale_is_refused():
    with pytest.raises(ValueError, match="can be merged and never split"):
        OwnerHistograms.of(frame(), 3).at_scale(4)


def test_mixed_scales_are_merged_at_the_coarsest():
    fine = OwnerHistograms.of(frame([("b", 5, 2), ("c", -3, 1)]), 4)
    coarse = OwnerHistograms.of(frame([("b", 2, 3), ("a", 1, 1)]), 3)

    found = merge_histograms([fine, coarse])

    assert (found.scale, listed(found)) == (3, {"a": {1: 1}, "b": {2: 5}, "c": {-2: 1}})
    assert listed(merge_histograms([coarse, fine])) == listed(found)
    assert merge_histograms([fine]) is fine
    with pytest.raises(ValueError, match="no histograms to merge"):
        merge_histograms([])


def test_edges_are_powers_of_the_growth():
    histograms = OwnerHistograms.of(frame(), 3)

    assert histograms.growth == pytest.approx(2.0 ** (1 / 8))
    assert histograms.upper_edge(110) == pytest.approx(15024.1942438654)


def test_owners_of_a_block_are_summed():
    found = OwnerHistograms.of(frame(), 7).by_block({"a": "t", "b": "t"})

    assert listed(found) == {"t": {-3: 1, 4: 1, 5: 5}}
    with pytest.raises(ValueError, match="owner 'b' has no block"):
        OwnerHistograms.of(frame(), 7).by_block({"a": "t"})


@pytest.mark.parametrize(
    ("owners", "bounds", "counts", "message"),
    [
        pytest.param(("a",), (), [[1]], "give at least one", id="no bound"),
        pytest.param(("a",), (2.0, 1.0), [[1, 1, 1]], "must be finite and rise", id="falling"),
        pytest.param(("a",), (1.0, np.inf), [[1, 1, 1]], "must be finite", id="infinite bound"),
        pytest.param(("b", "a"), (1.0,), [[1, 1], [1, 1]], "must be sorted", id="unsorted owners"),
        pytest.param(("a", "a"), (1.0,), [[1, 1], [1, 1]], "each once", id="owner there twice"),
        pytest.param(("a",), (1.0,), [[1]], r"\(1, 2\) is needed", id="a column short"),
        pytest.param(("a",), (1.0,), [[1, -2]], "row 0, column 1: -2 is no count", id="negative"),
    ],
)
def test_explicit_buckets_that_contradict_themselves_are_refused(owners, bounds, counts, message):
    with pytest.raises(ValueError, match=message):
        ExplicitHistograms(owners, bounds, np.array(counts))
