"""Published figures agree with the test: with CUPED, at edges, without a spread, and rounded."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis import sentences
from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.histograms import OwnerHistograms
from guardwave.analysis.frames.owner_totals import COUNTS, checked_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference.figures import NO_TRIALS
from guardwave.analysis.inference.rerandomisation import DrawKey
from guardwave.analysis.report import Figures, MetricReason, MetricResult
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.support.frames.durations import SEVEN_DAYS, lognormal_durations
from tests.support.frames.samples import NO_MINIMUM, PAIR, POLICY, simulated_totals

KEY = DrawKey("internal", "repeated_tool_failure", 1)


def judged(totals, metric, margin, *, policy=NO_MINIMUM, **given) -> MetricResult:
    judge = Judge(PAIR, KEY, policy, is_look_due=True)
    return judge.compare(checked_totals(totals), metric, margin, **given)


def predictive_baseline(totals, seed=11, durations=None) -> Baseline:
    """Return a week before that predicts the wave in part."""
    source = np.random.default_rng(seed)
    before = totals[["owner", *COUNTS]].assign(is_comparable=True)
    before["completed"] = source.binomial(before["completed"], 0.97)
    before["disrupted"] = source.binomial(before["disrupted"], 0.8)
    before["tokens"] = (before["tokens"] * source.uniform(0.9, 1.1, len(before))).astype(int)
    before["turns"] = (before["turns"] * source.uniform(0.9, 1.1, len(before))).astype(int)
    return Baseline(before, SEVEN_DAYS, durations)


@pytest.mark.parametrize(
    ("metric", "margin"),
    [
        pytest.param(Metric.COMPLETION, 0.01, id="a rate where higher is better"),
        pytest.param(Metric.DISRUPTION, 0.005, id="a rate"),
        pytest.param(Metric.TOKENS, 1.02, id="an amount"),
        pytest.param(Metric.LATENCY_P95, 1.10, id="latency"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_with_cuped_the_shown_interval_is_the_adjusted_one_and_agrees_with_the_verdict(
    metric, margin, seed
):
    totals = simulated_totals(treated=120, control=600, seed=seed)
    durations = lognormal_durations(totals, scale=7, seed=seed)
    before = predictive_baseline(
        totals, durations=lognormal_durations(totals, scale=7, seed=seed + 9)
    )

    result = judged(totals, metric, margin, durations=durations, baseline=before)
    plain = judged(totals, metric, margin, durations=durations).figures
    figures = result.figures

    assert figures.cuped is not None
    interval, bound = figures.cuped.interval, figures.cuped.cr2_bound
    assert interval is not None
    assert bound is not None
    assert figures.shown_interval == interval
    assert figures.interval == plain.interval
    assert bound in (interval.low, interval.high)
    assert interval.method == "CR2 t, CUPED"
    assert "by the 7 days before" in result.sentence
    assert "of the variance" not in result.sentence
    if result.verdict is Verdict.WITHIN:
        assert figures.margin is not None
        harmful = -1.0 if metric.is_higher_better else 1.0
        assert harmful * bound < harmful * figures.margin


def test_days_that_predict_everything_leave_no_spread_and_are_not_used():
    totals = simulated_totals(treated=60, control=600)
    before = totals[["owner", *COUNTS]].assign(is_comparable=True)

    figures = judged(totals, Metric.TOKENS, 1.1, baseline=Baseline(before, SEVEN_DAYS)).figures

    assert figures.cuped is None
    assert figures.without_cuped is not None
    assert "no spread to compare by" in figures.without_cuped
    assert figures.bound == judged(totals, Metric.TOKENS, 1.1).figures.bound


@pytest.mark.parametrize(
    ("metric", "margin"),
    [
        pytest.param(Metric.COMPLETION, 0.05, id="a rate"),
        pytest.param(Metric.TOKENS, 1.1, id="an amount of 4000 / 30 a prompt"),
        pytest.param(Metric.TURNS, 1.1, id="an amount of 99 / 30 a prompt"),
    ],
)
def test_owners_equal_up_to_rounding_are_unproven_and_have_no_interval(metric, margin):
    sizes = 1 + np.arange(240) % 7
    alike = simulated_totals(treated=60, control=180).assign(
        started=30 * sizes,
        cancelled=0,
        completed=27 * sizes,
        disrupted=sizes,
        tokens=4000 * sizes,
        turns=99 * sizes,
    )

    result = judged(alike, metric, margin)

    assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.NO_SPREAD)
    assert result.figures.interval is None
    assert result.figures.bound is None
    assert "no owner differs from another" in result.sentence


def test_one_owner_with_all_but_a_rounding_of_the_prompts_is_too_little_data():
    totals = simulated_totals(treated=60, control=600)
    totals.loc[totals.index[0], ["started", "completed", "tokens", "turns"]] = 2**53 - 1
    totals["cancelled"] = 0

    for metric, margin in ((Metric.COMPLETION, 0.01), (Metric.TOKENS, 1.1)):
        result = judged(totals, metric, margin)

        assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.MINIMUM_DATA)
        assert "one owner with all prompts in enforced (two needed)" in result.sentence
        assert result.figures.interval is None


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("times", [0.9, 1.0, 1.05, 1.2])
def test_a_latency_margin_on_an_edge_is_above_the_bound_exactly_when_within(steps, times):
    totals = simulated_totals(treated=120, control=600)
    margin = 2.0 ** (steps / 8)
    durations = lognormal_durations(totals, scale=3, treated_times=times)

    result = judged(totals, Metric.LATENCY_P95, margin, durations=durations)

    assert result.figures.tested_margin == pytest.approx(margin)
    assert result.figures.bound is not None
    assert (result.figures.bound < margin) is (result.verdict is Verdict.WITHIN)


@pytest.mark.parametrize(("seed", "scale"), list(itertools.product(range(4), (3, 5))), ids=str)
def test_the_interval_of_latency_holds_its_estimate(seed, scale):
    totals = simulated_totals(treated=400, control=60, seed=seed)
    durations = lognormal_durations(totals, scale=scale, seed=seed)

    figures = judged(totals, Metric.LATENCY_P95, 1.2, durations=durations).figures

    assert figures.interval is not None
    assert figures.estimate is not None
    assert figures.interval.low <= figures.estimate <= figures.interval.high


def one_duration_each(totals, buckets, scale):
    return OwnerHistograms.of(
        pd.DataFrame({"owner": totals["owner"], "bucket": buckets, "count": 1}), scale
    )


@pytest.mark.parametrize(
    ("bucket", "scale", "words"),
    [
        pytest.param(0, -10, "no upper edge", id="one bucket for all above 1 ms"),
        pytest.param(-1_020_000, 10, "", id="far below a nanosecond"),
    ],
)
def test_durations_at_the_ends_of_a_float_give_finite_numbers_only(bucket, scale, words):
    totals = simulated_totals(treated=40, control=60)
    if scale == -10:
        fine = one_duration_each(totals, 80, 3)
        durations = fine.at_scale(scale)
    else:
        durations = one_duration_each(totals, bucket + np.arange(100) % 3, scale)

    result = judged(totals, Metric.LATENCY_P95, 1.1, durations=durations, policy=POLICY)

    assert result.verdict in (Verdict.NO_DATA, Verdict.UNPROVEN)
    assert words in result.sentence
    assert "nan" not in result.sentence
    assert "inf" not in result.sentence


@pytest.mark.parametrize(
    ("bucket", "scale"),
    [
        pytest.param(0, -10, id="up to 2^1024 ms"),
        pytest.param(8192, 3, id="beyond 2^1000 ms"),
        pytest.param(-9000, 3, id="below 2^-1000 ms"),
    ],
)
def test_a_bucket_without_an_edge_in_milliseconds_is_refused_by_row_and_value(bucket, scale):
    frame = pd.DataFrame({"owner": ["a", "b"], "bucket": [-1, bucket], "count": [1, 1]})

    with pytest.raises(ValueError, match=f"column 'bucket', row 1: {bucket} is no bucket of a"):
        OwnerHistograms.of(frame, scale)


def test_the_finest_buckets_over_a_wide_range_are_merged_and_judged():
    totals = simulated_totals(treated=120, control=600)
    fine = lognormal_durations(totals, scale=20)
    merged = lognormal_durations(totals, scale=7)

    judged_fine = judged(totals, Metric.LATENCY_P95, 1.1, durations=fine)
    judged_merged = judged(totals, Metric.LATENCY_P95, 1.1, durations=merged)

    assert judged_fine.verdict is judged_merged.verdict
    assert judged_fine.figures.cut is not None
    assert judged_fine.figures.cut.scale is not None
    assert 7 < judged_fine.figures.cut.scale < 20


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.LATENCY_P95], ids=str)
@pytest.mark.parametrize("margin", [1e300, 1000.5, float("inf")])
def test_a_ratio_beyond_a_thousand_is_no_margin(metric, margin):
    totals = simulated_totals(treated=40, control=60)

    with pytest.raises(ValueError, match=f"the margin of {metric} is .*at most 1000"):
        judged(totals, metric, margin)


@pytest.mark.parametrize(
    ("metric", "bound", "margin", "words"),
    [
        pytest.param(Metric.DISRUPTION, 0.000301, 0.005, "+0.04 pp", id="away from zero"),
        pytest.param(Metric.DISRUPTION, -0.00003, 0.005, "-0.003 pp", id="a gain is not nothing"),
        pytest.param(Metric.DISRUPTION, 0.00496, 0.005, "+0.496 pp", id="near the margin"),
        pytest.param(Metric.COMPLETION, -0.00011, -0.01, "-0.02 pp", id="a fall"),
        pytest.param(Metric.COMPLETION, 0.00004, -0.01, "+0.004 pp", id="a rise is not nothing"),
        pytest.param(Metric.TOKENS, 1.04001, 1.1, "1.041 times", id="a ratio"),
        pytest.param(Metric.TOKENS, 0.99993, 1.1, "0.99993 times", id="a ratio below one"),
        pytest.param(Metric.TOKENS, 1.1049, 1.105, "1.1049 times", id="a margin of three places"),
        pytest.param(Metric.DISRUPTION, 0.0, 0.005, "0.00 pp", id="nothing"),
    ],
)
def test_a_bound_is_rounded_towards_harm_and_only_zero_is_shown_as_zero(
    metric, bound, margin, words
):
    figures = Figures(metric, NO_TRIALS, NO_TRIALS, bound=bound, margin=margin)

    assert sentences.bound(figures) == words


def test_a_harm_that_only_the_test_shows_is_stated_without_the_interval():
    totals = simulated_totals(treated=200, control=1800, harm=0.04)
    figures = judged(totals, Metric.COMPLETION, 0.01).figures
    assert figures.interval is not None
    wide = dataclasses.replace(figures, interval=dataclasses.replace(figures.interval, high=0.0))

    assert "% interval " in sentences.shown_beyond(figures)
    assert sentences.shown_beyond(wide) == (
        "by random sets of owners shown to be worse than the margin of -1.00 pp"
    )
