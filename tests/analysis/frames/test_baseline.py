"""Baseline: the checks of its frame, and the owners that count as new."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.baseline import COMPARABLE, Baseline
from guardwave.analysis.frames.owner_totals import COUNTS, by_block, checked_totals
from guardwave.analysis.inference.covariate import Covariates, covariates_of
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.samples import simulated_totals

DAYS = tuple(dt.date(2026, 11, 1) + dt.timedelta(days=place) for place in range(7))
ROWS = [
    ["b", 10, 2, 6, 1, 500, 30, True],
    ["a", 4, 0, 3, 0, 100, 10, True],
    ["c", 8, 0, 8, 0, 900, 20, False],
]


def owners(rows=ROWS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["owner", *COUNTS, COMPARABLE])


def test_owners_without_a_comparable_row_count_as_new():
    found = covariates_of(Baseline(owners(), DAYS), Metric.COMPLETION, ("a", "b", "c", "d"))

    assert isinstance(found, Covariates)
    assert found.harm.tolist() == [1.0, 2.0, 0.0, 0.0]
    assert found.trials.tolist() == [4.0, 8.0, 0.0, 0.0]
    assert (found.owners_with_baseline, found.days) == (2, 7)


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        pytest.param(None, "no comparable days before the wave are known", id="none"),
        pytest.param(Baseline(owners(), DAYS[:6]), "only 6 of 7 complete days", id="a day short"),
        pytest.param(Baseline(owners(ROWS[2:]), DAYS), "comparable mode", id="another mode"),
        pytest.param(Baseline(owners([]), DAYS), "comparable mode", id="nobody"),
    ],
)
def test_the_reason_why_there_is_no_cuped_is_a_sentence(baseline, words):
    found = covariates_of(baseline, Metric.TURNS, ("a", "b", "c"))

    assert isinstance(found, str)
    assert words in found


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        pytest.param(COMPARABLE, None, "row 1: None is no flag", id="unknown mode"),
        pytest.param(COMPARABLE, "yes", "row 1: 'yes' is no flag", id="a word for a flag"),
        pytest.param("tokens", np.nan, "column 'tokens', row 1: nan is no count", id="unknown"),
        pytest.param("started", -1, "column 'started', row 1: -1 is no count", id="negative"),
        pytest.param("completed", 9, "row 1: 9 .* exceed the prompts started", id="too many ends"),
        pytest.param("owner", "b", "'b' is there twice", id="owner there twice"),
    ],
)
def test_a_bad_cell_is_refused_by_column_row_and_value(column, value, message):
    frame = owners().astype(object)
    frame.loc[1, column] = value

    with pytest.raises(ValueError, match=message):
        Baseline(frame, DAYS)


def test_days_out_of_order_are_refused():
    with pytest.raises(ValueError, match="in order, each once"):
        Baseline(owners(), (DAYS[1], DAYS[0]))


def test_blocks_are_summed_and_one_incomparable_owner_makes_its_block_new():
    found = Baseline(owners(), DAYS).by_block({"a": "t", "b": "t", "c": "u"})

    assert found.owners.to_numpy().tolist() == [
        ["t", 14, 2, 9, 1, 600, 40, True],
        ["u", 8, 0, 8, 0, 900, 20, False],
    ]


def test_totals_of_owners_who_share_limits_are_summed_to_the_block_they_share():
    totals = simulated_totals(treated=4, control=8)
    blocks = {owner: f"tenant-{place // 2}" for place, owner in enumerate(totals["owner"])}

    summed = by_block(checked_totals(totals), blocks)

    assert summed["cohort"].tolist() == ["enforced"] * 2 + ["control"] * 4
    assert summed["tokens"].iloc[0] == totals["tokens"].iloc[:2].sum()


def test_a_block_of_two_cohorts_is_refused():
    totals = checked_totals(simulated_totals(treated=1, control=1))
    first, second = totals["owner"]

    with pytest.raises(ValueError, match="block 't' has owners in two cohorts"):
        by_block(totals, {first: "t", second: "t"})
    with pytest.raises(ValueError, match=f"owner '{second}' has no block"):
        by_block(totals, {first: "t"})
