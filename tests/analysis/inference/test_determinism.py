"""Determinism: the same evidence gives the same figures, bit for bit, in any layout."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS, checked_totals, owner_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference import random_sets
from guardwave.analysis.inference.random_sets import draw_sets, sums_over
from guardwave.analysis.inference.rerandomisation import DrawKey, Draws
from guardwave.analysis.report import Interval, MetricReason, MetricResult
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.support.frames.durations import SEVEN_DAYS, identical_baseline, lognormal_durations
from tests.support.frames.samples import NO_MINIMUM, PAIR, POLICY, simulated_totals

KEY = DrawKey("internal", "repeated_tool_failure", 1)
MARGINS = {
    Metric.COMPLETION: 0.01,
    Metric.DISRUPTION: 0.005,
    Metric.LATENCY_P95: 1.10,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
}


def long(histograms: OwnerHistograms) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "owner": np.array(histograms.owners, dtype=object)[histograms.places],
            "bucket": histograms.buckets,
            "count": histograms.counts,
        }
    )


def judged(totals, durations, baseline) -> list[MetricResult]:
    judge = Judge(PAIR, KEY, POLICY, is_look_due=True)
    return [
        judge.compare(totals, metric, margin, durations=durations, baseline=baseline)
        for metric, margin in MARGINS.items()
    ]


@pytest.fixture(scope="module")
def evidence():
    totals = simulated_totals(treated=60, control=400)
    durations = lognormal_durations(totals, scale=7)
    owners = identical_baseline(totals).owners
    return totals, durations, Baseline(owners, SEVEN_DAYS, durations)


@pytest.fixture(scope="module")
def results(evidence):
    totals, durations, baseline = evidence
    return judged(checked_totals(totals), durations, baseline)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_and_split_over_days_change_no_bit_of_any_metric(evidence, results, seed):
    totals, durations, baseline = evidence
    source = np.random.default_rng(seed)
    first = totals.assign(**{name: source.integers(0, totals[name] + 1) for name in COUNTS})
    second = totals.assign(**{name: totals[name] - first[name] for name in COUNTS})
    split = pd.concat([first.assign(day=1), second.assign(day=2)])
    rows = long(durations)
    part = source.integers(0, rows["count"] + 1)
    rows = pd.concat([rows.assign(count=part), rows.assign(count=rows["count"] - part)])

    again = judged(
        owner_totals(split.sample(frac=1.0, random_state=seed)),
        OwnerHistograms.of(rows.sample(frac=1.0, random_state=seed), 7),
        Baseline(
            baseline.owners.sample(frac=1.0, random_state=seed), SEVEN_DAYS, baseline.durations
        ),
    )

    assert again == results


def test_metrics_judged_alone_or_in_another_order_have_the_same_results(evidence, results):
    totals, durations, baseline = evidence
    checked = checked_totals(totals)
    for expected, (metric, margin) in reversed(list(zip(results, MARGINS.items(), strict=True))):
        judge = Judge(PAIR, KEY, POLICY, is_look_due=True)
        found = judge.compare(checked, metric, margin, durations=durations, baseline=baseline)
        assert found == expected


@pytest.mark.parametrize("chunk", [1, 70, 1_000, 10**9])
def test_sums_have_the_same_bits_in_any_chunks(monkeypatch, chunk):
    is_member = np.arange(70) % 9 == 0
    columns = np.random.default_rng(3).lognormal(10.0, 4.0, (70, 5))
    whole = sums_over(draw_sets(is_member, seed=8, count=500), columns)

    monkeypatch.setattr(random_sets, "CHUNK_LABELS", chunk)
    monkeypatch.setattr(random_sets, "KEPT_BYTES", 0)
    sets = draw_sets(is_member, seed=8, count=500)

    assert (sums_over(sets, columns) == whole).all()
    # Nothing was kept: the second walk draws again, and finds one column alone as before.
    assert (sums_over(sets, columns[:, 2:3]) == whole[:, 2:3]).all()


def test_metrics_over_the_same_owners_share_one_set_of_draws():
    draws = Draws(KEY)
    is_treated = np.arange(40) < 4

    first = draws.of(is_treated, 99)

    assert draws.of(is_treated.copy(), 99) is first
    assert draws.of(np.arange(40) < 5, 99) is not first


@pytest.mark.parametrize("metric", [Metric.COMPLETION, Metric.DISRUPTION], ids=str)
def test_owners_without_any_spread_have_an_estimate_and_no_interval_of_no_width(metric):
    totals = simulated_totals(treated=30, control=300).assign(disrupted=0, cancelled=0)
    totals["completed"] = totals["started"]
    judge = Judge(PAIR, KEY, NO_MINIMUM, is_look_due=True)

    result = judge.compare(checked_totals(totals), metric, MARGINS[metric])
    figures = result.figures

    assert figures.estimate == 0.0
    assert (figures.interval, figures.standard_error, figures.standard_errors) == (None, None, None)
    assert figures.bound is None
    assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.NO_SPREAD)
    assert "no owner differs from another" in result.sentence


@pytest.mark.parametrize("metric", MARGINS, ids=str)
def test_one_owner_in_a_cohort_is_unproven_without_a_bound(metric):
    totals = simulated_totals(treated=1, control=50)
    judge = Judge(PAIR, KEY, NO_MINIMUM, is_look_due=True)

    result = judge.compare(
        checked_totals(totals),
        metric,
        MARGINS[metric],
        durations=lognormal_durations(totals, scale=7),
    )

    assert result.verdict is Verdict.UNPROVEN
    assert (result.figures.bound, result.figures.interval) == (None, None)


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        pytest.param(Metric.TOKENS, "tokens", id="tokens"),
        pytest.param(Metric.TURNS, "turns", id="turns"),
    ],
)
def test_a_cohort_without_an_amount_has_no_ratio(metric, column):
    totals = simulated_totals(treated=30, control=300)
    totals.loc[totals["cohort"] == "control", column] = 0

    result = Judge(PAIR, KEY, POLICY, is_look_due=True).compare(
        checked_totals(totals), metric, MARGINS[metric]
    )

    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.ZERO_RATIO)


def test_every_number_of_every_metric_is_finite(results):
    for result in results:
        figures = dataclasses.asdict(result.figures)
        numbers = [figures]
        while numbers:
            for value in numbers.pop().values():
                if isinstance(value, dict):
                    numbers.append(value)
                assert not isinstance(value, float) or np.isfinite(value)
        assert isinstance(result.figures.interval, Interval)
        assert result.figures.interval.low < result.figures.interval.high
