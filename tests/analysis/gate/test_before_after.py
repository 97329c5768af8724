"""Before/after: a warn wave without holdback, whose owners are compared with themselves."""

import dataclasses

import numpy as np
import pytest

from guardwave.analysis.frames.evidence import comparison_of
from guardwave.analysis.gate.verdict import evaluate
from guardwave.analysis.inference.cohorts import Paired, paired_contrast, two_sided_p
from guardwave.analysis.report import Comparison, MetricReason
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict
from tests.support.frames.periods import (
    WARN_POLICY,
    WEEK_BEFORE,
    baseline_of,
    durations_of,
    warn_wave,
)
from tests.support.frames.samples import POLICY, days, simulated_totals, wave


def test_without_holdback_the_gate_compares_before_and_after_and_says_so():
    evaluation = evaluate(warn_wave(), WARN_POLICY)

    assert evaluation.comparison is Comparison.BEFORE_AFTER
    assert evaluation.verdict is Verdict.WITHIN
    assert evaluation.sentence.startswith("Within every margin: disruption at worst ")
    assert evaluation.sentence.endswith(
        "Nobody was held back, so this compares before and after: any change of the period can "
        "fool it, no level is claimed, and a promotion on it needs a written reason."
    )
    for result in evaluation.metrics:
        assert result.sentence.startswith("Within: before/after, ")
        assert result.figures.interval is not None
        assert result.figures.interval.method == "paired owner t"
        assert result.figures.permutations == 0
        assert result.figures.reference.owners == 600


@pytest.mark.parametrize(
    ("rostered", "comparison"),
    [
        pytest.param({Cohort.WARNED: 9, Cohort.HOLDBACK: 0}, Comparison.BEFORE_AFTER, id="none"),
        pytest.param({Cohort.WARNED: 9, Cohort.HOLDBACK: 1}, Comparison.CONCURRENT, id="one"),
        pytest.param({}, Comparison.CONCURRENT, id="a roster that nobody reported"),
    ],
)
def test_only_a_roster_without_holdback_is_compared_with_before(rostered, comparison):
    assert comparison_of(warn_wave(owners=9, rostered=rostered)) is comparison


def test_an_enforce_wave_is_never_compared_with_before():
    lone = simulated_totals(treated=50, control=0)
    assert comparison_of(wave(lone)) is Comparison.CONCURRENT


def test_a_period_that_got_worse_is_beyond():
    before = simulated_totals(treated=600, control=0, seed=8)
    fewer = before.assign(tokens=(before["tokens"] * 0.8).round())

    evaluation = evaluate(warn_wave(baseline=baseline_of(fewer)), WARN_POLICY)

    tokens = next(metric for metric in evaluation.metrics if metric.figures.metric is Metric.TOKENS)
    assert (tokens.verdict, tokens.reason) == (Verdict.BEYOND, MetricReason.BEYOND_MARGIN)
    assert evaluation.verdict is Verdict.BEYOND


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        pytest.param({"baseline": None}, MetricReason.NO_BASELINE, "no week before", id="none"),
        pytest.param(
            {"days": days(7, incomplete=2)},
            None,
            "before/after",
            id="seven days have all weekdays wherever they start",
        ),
        pytest.param(
            {"days": days(14), "declared_days": 14},
            None,
            "before/after, ",
            id="two weeks have each weekday twice",
        ),
        pytest.param(
            {"days": days(8), "declared_days": 8},
            MetricReason.NO_BASELINE,
            "the evidence was not given by day",
            id="eight days against seven, of which nobody knows which owner did what on which",
        ),
        pytest.param(
            {"days": days(8), "declared_days": 8, "days_before": WEEK_BEFORE[:4]},
            MetricReason.NO_BASELINE,
            "fewer than 5 weekdays in common",
            id="four days before",
        ),
        pytest.param(
            {"days": days(3)}, MetricReason.DWELL, "judged only when", id="too early to judge"
        ),
    ],
)
def test_before_and_after_need_the_same_weekdays(changes, reason, words):
    for result in evaluate(warn_wave(**changes), WARN_POLICY).metrics:
        assert result.reason is reason
        assert words in result.sentence


@pytest.mark.parametrize("times", [0.97, 1.0, 1.04, 1.09, 1.2])
@pytest.mark.parametrize("scale", [3, 4, 7])
def test_the_interval_of_latency_before_and_after_holds_its_estimate(times, scale):
    policy = dataclasses.replace(POLICY, margins={Gate.WARN: {Metric.LATENCY_P95: 1.2}})
    evidence = warn_wave(owners=200)
    before = simulated_totals(treated=200, control=0, seed=8)
    timed = dataclasses.replace(
        evidence,
        durations=durations_of(evidence.owners, times=times, scale=scale),
        baseline=baseline_of(before, durations=durations_of(before, seed=4, scale=scale)),
    )

    (latency,) = evaluate(timed, policy).metrics

    figures = latency.figures
    assert figures.interval is not None
    assert figures.estimate is not None
    assert figures.interval.low <= figures.estimate <= figures.interval.high
    assert figures.interval.low < figures.interval.high
    if latency.verdict is Verdict.WITHIN:
        assert figures.bound is not None
        assert figures.margin is not None
        assert figures.bound < figures.margin


def test_few_owners_are_too_little_data_before_and_after():
    for result in evaluate(warn_wave(owners=20), WARN_POLICY).metrics:
        assert result.verdict is Verdict.UNPROVEN
        assert result.reason is MetricReason.MINIMUM_DATA
        assert "20 owners with data in warned (30 needed)" in result.sentence
        assert result.figures.bound is None


def test_owners_without_a_day_before_are_not_compared():
    before = simulated_totals(treated=600, control=0, seed=8)
    half = baseline_of(before.head(300))

    result = evaluate(warn_wave(baseline=half), WARN_POLICY).metrics[0]

    assert (result.figures.treated.owners, result.figures.reference.owners) == (300, 300)
    nobody = baseline_of(before.assign(owner=before["owner"] + "-x"))
    assert evaluate(warn_wave(baseline=nobody), WARN_POLICY).metrics[0].reason is (
        MetricReason.EMPTY_COHORT
    )


def test_owners_who_are_all_alike_have_no_bound():
    alike = simulated_totals(treated=100, control=0).assign(
        cohort="warned", started=60, cancelled=0, completed=60, disrupted=0, tokens=60, turns=60
    )
    evidence = dataclasses.replace(warn_wave(owners=100), owners=alike, baseline=baseline_of(alike))

    for result in evaluate(evidence, WARN_POLICY).metrics:
        assert (result.figures.interval, result.figures.bound) == (None, None)
        assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.NO_SPREAD)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        pytest.param(1.0, Verdict.WITHIN, id="as slow as before"),
        pytest.param(1.3, Verdict.BEYOND, id="slower by 30 %"),
    ],
)
def test_latency_is_compared_before_and_after_at_one_pooled_cut(times, verdict):
    policy = dataclasses.replace(POLICY, margins={Gate.WARN: {Metric.LATENCY_P95: 1.10}})
    evidence = warn_wave()
    before = simulated_totals(treated=600, control=0, seed=8)
    timed = dataclasses.replace(
        evidence,
        durations=durations_of(evidence.owners, times=times),
        baseline=baseline_of(before, durations=durations_of(before, seed=4)),
    )

    (latency,) = evaluate(timed, policy).metrics

    figures = latency.figures
    assert latency.verdict is verdict
    assert figures.estimate == pytest.approx(times, rel=0.05)
    assert figures.tested_margin == pytest.approx(1.0964, abs=1e-4)
    assert figures.interval is not None
    assert figures.interval.low < times < figures.interval.high
    assert (figures.bound is not None) is (verdict is Verdict.WITHIN)


def test_latency_without_durations_of_both_periods_is_no_data():
    policy = dataclasses.replace(POLICY, margins={Gate.WARN: {Metric.LATENCY_P95: 1.10}})

    (latency,) = evaluate(warn_wave(), policy).metrics

    assert (latency.verdict, latency.reason) == (Verdict.NO_DATA, MetricReason.NO_DURATIONS)


def test_the_paired_contrast_is_the_t_test_of_paired_differences_for_equal_owners():
    source = np.random.default_rng(5)
    after, before = source.poisson(20.0, 200).astype(float), source.poisson(20.0, 200).astype(float)
    trials = np.full(200, 100.0)

    contrast = paired_contrast(Paired(after, trials, before, trials), is_log=False)

    apart = (after - before) / 100.0
    assert contrast is not None
    assert contrast.estimate == pytest.approx(apart.mean())
    assert contrast.standard_error == pytest.approx(apart.std(ddof=1) / np.sqrt(200))
    assert contrast.degrees_of_freedom == pytest.approx(199, rel=0.01)


def test_the_paired_p_value_is_uniform_when_nothing_changed():
    source = np.random.default_rng(20261120)
    found = []
    for _ in range(1_000):
        sizes = source.integers(20, 80, 60)
        rates = source.beta(1.0, 15.0, 60)
        harm = [source.binomial(sizes, rates).astype(float) for _ in range(2)]
        own = Paired(harm[0], sizes.astype(float), harm[1], sizes.astype(float))
        contrast = paired_contrast(own, is_log=False)
        assert contrast is not None
        found.append(two_sided_p(contrast))
    assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.025)
    assert np.mean(np.array(found) < 0.5) == pytest.approx(0.5, abs=0.06)
