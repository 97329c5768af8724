"""Latency p95: the peers' cuts and p values, testable margins, and its sentences."""

import math

import numpy as np
import pytest

from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.histograms import ExplicitHistograms, OwnerHistograms
from guardwave.analysis.frames.owner_totals import checked_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference.cohorts import Contrast, difference
from guardwave.analysis.inference.latency.shift import Cut, LatencyTest, latency_test
from guardwave.analysis.inference.metric_test import ratios
from guardwave.analysis.inference.rerandomisation import DrawKey, Draws, Rerandomisation
from guardwave.analysis.report import MetricReason, MetricResult
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.support.frames.durations import (
    SEVEN_DAYS,
    identical_baseline,
    lognormal_durations,
    reference_durations,
)
from tests.support.frames.samples import (
    DATASETS,
    NO_MINIMUM,
    PAIR,
    POLICY,
    compared,
    reference_totals,
    reference_values,
    simulated_totals,
)

KEY = DrawKey("internal", "repeated_tool_failure", 1)
MARGIN = 1.10


@pytest.fixture(params=DATASETS)
def dataset(request):
    return request.param


@pytest.fixture
def latency(dataset) -> LatencyTest:
    own = compared(reference_totals(dataset), Metric.TURNS)
    return latency_test(own, reference_durations(dataset), None)


@pytest.fixture
def peers(dataset):
    return reference_values(dataset)["latency_p95"]


def contrast_at(latency: LatencyTest, cut: Cut) -> Contrast:
    treated, control = ratios(latency.outcomes_at(cut))
    assert treated is not None
    assert control is not None
    contrast = difference(treated, control)
    assert contrast is not None
    return contrast


def test_percentiles_of_both_cohorts_equal_the_peers(latency, peers):
    treated, reference = latency.percentile_edges()

    assert treated == pytest.approx(peers["p95_upper_edge_ms"]["enforce"], rel=1e-10)
    assert reference == pytest.approx(peers["p95_upper_edge_ms"]["warn"], rel=1e-10)


def test_the_pooled_cut_and_its_contrast_equal_the_peers(latency, peers):
    steps = latency.steps_within(MARGIN)
    assert steps == peers["shift_buckets_for_margin_1.10"]
    cut = latency.cut(steps)
    contrast = contrast_at(latency, cut)
    peer = peers["pooled_cut"]

    assert cut.treated == peer["bucket"]
    assert cut.ratio == pytest.approx(peers["tested_margin"], rel=1e-12)
    assert contrast.estimate == pytest.approx(peer["contrast"], rel=1e-10)
    assert contrast.standard_error == pytest.approx(peer["se_cr2[statsmodels WLS HC2]"], rel=1e-10)


def test_shares_above_a_shifted_cut_of_the_reference_equal_the_peers(latency, peers):
    """The peers' other contrast cuts at the reference's own percentile."""
    steps = peers["shift_buckets_for_margin_1.10"]
    reference = math.log2(peers["p95_upper_edge_ms"]["warn"]) * 8 - 1
    bucket = round(reference)
    cut = latency.cut(steps)._replace(treated=bucket + steps, reference=bucket)
    treated, control = ratios(latency.outcomes_at(cut))
    assert treated is not None
    assert control is not None
    expected = peers["control_cut"]

    assert control.ratio == pytest.approx(expected["slow_fraction"]["warn"], rel=1e-10)
    assert treated.ratio == pytest.approx(
        expected["slow_fraction"]["enforce_beyond_cut_plus_shift"], rel=1e-10
    )
    contrast = contrast_at(latency, cut)
    assert contrast.estimate == pytest.approx(expected["contrast"], rel=1e-10)
    assert contrast.standard_error == pytest.approx(
        expected["se_cr2[statsmodels WLS HC2]"], rel=1e-10
    )


def test_p_at_the_margin_agrees_with_an_independent_plain_loop(latency, peers):
    expected = peers["pooled_cut"]["rerandomisation_p_harm_at_margin"]
    trial = Rerandomisation(latency, Draws(KEY))

    found = trial.test(latency.steps_within(MARGIN), trial.sets(POLICY.permutations))

    p = expected["p"]
    tolerance = 4.0 * math.sqrt(expected["mc_se"] ** 2 + p * (1.0 - p) / POLICY.permutations)
    assert found.p_harm == pytest.approx(p, abs=tolerance)


def judged(
    totals,
    durations,
    *,
    margin: float | None = MARGIN,
    policy=NO_MINIMUM,
    baseline: Baseline | None = None,
) -> MetricResult:
    judge = Judge(PAIR, KEY, policy, is_look_due=True)
    checked = checked_totals(totals)
    return judge.compare(
        checked, Metric.LATENCY_P95, margin, durations=durations, baseline=baseline
    )


@pytest.fixture(scope="module")
def totals():
    return simulated_totals(treated=120, control=600)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        pytest.param(0.9, Verdict.WITHIN, id="faster"),
        pytest.param(1.0, Verdict.WITHIN, id="alike"),
        pytest.param(1.5, Verdict.BEYOND, id="half as long again"),
    ],
)
def test_owners_of_known_durations_get_the_verdict_they_should(totals, times, verdict):
    result = judged(totals, lognormal_durations(totals, scale=7, treated_times=times))
    figures = result.figures

    assert result.verdict is verdict
    assert figures.interval is not None
    assert figures.interval.low < times < figures.interval.high
    assert figures.bound is not None
    assert figures.bound > times
    assert figures.tested_margin == pytest.approx(2.0 ** (17 / 128))
    assert "margin tested at the bucket's edge 1.096 times" in result.sentence


@pytest.mark.parametrize("scale", [3, 5, 7])
@pytest.mark.parametrize("times", [0.95, 1.0, 1.03, 1.06, 1.1, 1.2])
def test_the_bound_is_at_most_the_tested_margin_exactly_when_the_verdict_is_within(
    totals, scale, times
):
    result = judged(totals, lognormal_durations(totals, scale=scale, treated_times=times))
    figures = result.figures

    assert figures.bound is not None
    assert figures.tested_margin is not None
    is_inside = figures.bound <= figures.tested_margin * (1.0 + 1e-12)
    assert is_inside is (result.verdict is Verdict.WITHIN)


def test_coarse_buckets_are_named_in_the_sentence(totals):
    coarse = judged(totals, lognormal_durations(totals, scale=4))
    fine = judged(totals, lognormal_durations(totals, scale=5))

    assert "coarse buckets of scale 4, and scale 5 or finer is asked for" in coarse.sentence
    assert "coarse" not in fine.sentence


def test_buckets_wider_than_the_margin_are_no_data(totals):
    result = judged(totals, lognormal_durations(totals, scale=2))

    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.BUCKETS_TOO_WIDE)
    assert "at most 1.1 times apart" in result.sentence


def test_without_a_margin_latency_is_shown_and_not_judged(totals):
    result = judged(totals, lognormal_durations(totals, scale=7), margin=None)

    assert (result.verdict, result.figures.tested_margin) == (None, None)
    assert result.figures.interval is not None
    assert result.sentence.startswith("For information: latency p95 ")


def test_a_cohort_without_a_duration_is_no_data(totals):
    durations = lognormal_durations(totals[totals["cohort"] == "control"], scale=7)

    result = judged(totals, durations)

    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.EMPTY_COHORT)
    assert result.sentence == "No data: latency p95 has no duration from enforced."


def test_too_few_slow_prompts_are_too_little_data():
    few = simulated_totals(treated=2, control=3)

    result = judged(few, lognormal_durations(few, scale=7), policy=POLICY)

    assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.MINIMUM_DATA)
    assert "slow prompts to expect in enforced (10 needed)" in result.sentence
    assert result.figures.bound is None


def explicit(totals, bounds, **changes) -> ExplicitHistograms:
    fine = lognormal_durations(totals, scale=10, **changes)
    edges = [fine.upper_edge(int(bucket)) for bucket in fine.buckets]
    columns = np.searchsorted(bounds, edges)
    counts = np.zeros((len(fine.owners), len(bounds) + 1), dtype=np.int64)
    np.add.at(counts, (fine.places, columns), fine.counts)
    return ExplicitHistograms(fine.owners, tuple(bounds), counts)


def test_explicit_buckets_that_are_close_enough_test_the_nearest_margin(totals):
    bounds = [float(1000.0 * 1.04**place) for place in range(120)]

    result = judged(totals, explicit(totals, bounds))

    assert result.verdict is Verdict.WITHIN
    assert result.figures.tested_margin == pytest.approx(1.04**2)
    assert result.figures.cut is not None
    assert result.figures.cut.scale is None
    assert result.figures.cut.treated_ms in bounds


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param([5, 10, 25, 50, 75, 100, 250, 500, 1000, 2500, 10000, 1e5], id="OTel-like"),
        pytest.param([5000.0], id="one bound"),
        pytest.param([1.0, 1.05, 1.1], id="all in the last bucket"),
    ],
)
def test_explicit_buckets_too_wide_at_the_percentile_are_no_data(totals, bounds):
    result = judged(totals, explicit(totals, [float(bound) for bound in bounds]))

    assert (result.verdict, result.reason) == (Verdict.NO_DATA, MetricReason.BUCKETS_TOO_WIDE)


def test_the_cut_is_where_a_plain_count_of_pooled_durations_puts_it(totals):
    latency = latency_test(
        compared(totals, Metric.TURNS), lognormal_durations(totals, scale=3), None
    )
    own, is_treated = latency.histograms, latency.outcomes.is_treated
    for steps in (-30, -2, 0, 1, 5, 40):
        shifted = own.buckets + np.where(is_treated[own.places], 0, steps)
        pooled = np.sort(np.repeat(shifted, own.counts))
        place = -(-len(pooled) * 19 // 20) - 1
        cut = latency.cut(steps)
        assert cut.treated == pooled[place]
        slow = np.bincount(own.places, own.counts * (shifted > cut.treated))
        assert (latency.slow(cut) == slow).all()


def with_durations(totals, durations: OwnerHistograms | None) -> Baseline:
    return Baseline(identical_baseline(totals).owners, SEVEN_DAYS, durations)


@pytest.mark.parametrize("before", [5, 7, 9])
def test_durations_of_the_days_before_reduce_noise_at_any_scale(totals, before):
    durations = lognormal_durations(totals, scale=7)
    same = lognormal_durations(totals, scale=before)

    cuped = judged(totals, durations, baseline=with_durations(totals, same)).figures.cuped

    assert cuped is not None
    assert cuped.variance_ratio < 0.3
    assert (cuped.owners_with_baseline, cuped.owners_new, cuped.days) == (720, 0, 7)


def test_a_baseline_without_durations_is_not_used_and_the_reason_is_reported(totals):
    durations = lognormal_durations(totals, scale=7)

    figures = judged(totals, durations, baseline=with_durations(totals, None)).figures

    assert figures.cuped is None
    assert figures.without_cuped == "no durations of the days before the wave are known"
    assert figures.p_harm_at_margin == judged(totals, durations).figures.p_harm_at_margin
