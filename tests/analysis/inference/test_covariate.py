"""Covariate: CUPED against an independent regression, its level and gain, and its limits."""

import dataclasses

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from guardwave.analysis.frames.owner_totals import Outcomes, checked_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference import injection
from guardwave.analysis.inference.covariate import Adjustment, Covariates, covariates_of
from guardwave.analysis.inference.injection import ScaledAmount
from guardwave.analysis.inference.rerandomisation import DrawKey, Rerandomisation
from guardwave.analysis.report import MetricResult
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.support.frames.durations import identical_baseline, reference_baseline
from tests.support.frames.samples import (
    DATASETS,
    NO_MINIMUM,
    PAIR,
    POLICY,
    REFERENCE_METRICS,
    compared,
    reference_totals,
    simulated_totals,
)

KEY = DrawKey("internal", "repeated_tool_failure", 1)
# The chance of a false alarm of the level check below.
FALSE_ALARM = 1e-4


def known(dataset: str, metric: Metric) -> tuple[Outcomes, Covariates]:
    own = compared(reference_totals(dataset), metric)
    covariates = covariates_of(reference_baseline(dataset), metric, own.owners)
    assert isinstance(covariates, Covariates)
    return own, covariates


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
@pytest.mark.parametrize("dataset", DATASETS)
def test_residuals_are_those_of_least_squares_by_statsmodels(dataset, metric):
    own, before = known(dataset, metric)
    rate = before.harm.sum() / before.trials.sum()
    design = np.column_stack(
        [
            np.ones(len(own.owners)),
            before.harm - rate * before.trials,
            before.trials == 0,
            before.trials,
        ]
    )
    harm = own.harm - own.harm.sum() / own.trials.sum() * own.trials

    found = Adjustment.of(before).residuals(harm)

    scale = np.abs(harm).max()
    assert found == pytest.approx(sm.OLS(harm, design).fit().resid, abs=1e-10 * scale)


def test_the_statistic_is_a_welch_t_of_the_residuals():
    own, before = known("dev-2-zipf-harm", Metric.DISRUPTION)
    adjustment = Adjustment.of(before)
    trial = Rerandomisation.of(own, Metric.DISRUPTION, KEY, adjustment=adjustment)

    observed = trial.statistics(0.0, trial.sets(9))[0]

    residuals = adjustment.residuals(own.harm - own.harm.sum() / own.trials.sum() * own.trials)
    welch = stats.ttest_ind(residuals[own.is_treated], residuals[~own.is_treated], equal_var=False)
    assert observed == pytest.approx(welch.statistic, rel=1e-9)


@pytest.mark.parametrize("has_cuped", [False, True])
def test_sums_by_cohort_give_the_statistics_of_injected_amounts(has_cuped):
    """One pass serves every margin of an amount: against a plain pass for each margin."""
    own, before = known("dev-1-lognormal-aa", Metric.TOKENS)
    adjustment = Adjustment.of(before) if has_cuped else None
    trial = Rerandomisation.of(own, Metric.TOKENS, KEY, adjustment=adjustment)
    sets = trial.sets(50)
    for margin in (-0.3, 0.0, 0.0953, 1.0):
        harm = injection.with_ratio_margin(own, margin)
        injected = ScaledAmount(own._replace(harm=harm), adjustment)

        found = trial.statistics(margin, sets)

        assert found == pytest.approx(injected.statistics(0.0, sets), rel=1e-8, abs=1e-9)


def test_a_baseline_without_new_information_leaves_the_other_regressors():
    every = Covariates(np.full(6, 2.0), np.full(6, 4.0), days=7)

    assert len(Adjustment.of(every).basis) == 1


def waves_at_the_margin(waves: int):
    """Yield rates of owners who differ, treated worse by the margin, with their baseline."""
    source = np.random.default_rng(20_261_121)
    owners, treated, rate, margin = 200, 10, 0.06, 0.01
    names = tuple(f"o{place:04d}" for place in range(owners))
    for wave in range(waves):
        trials = np.maximum(1, source.lognormal(2.5, 1.0, (2, owners))).astype(int)
        trials[0, source.random(owners) < 0.1] = 0
        own_rates = source.beta(rate * 9.0, (1.0 - rate) * 9.0, owners)
        is_treated = np.zeros(owners, dtype=bool)
        is_treated[source.choice(owners, treated, replace=False)] = True
        with_harm = own_rates + (1.0 - own_rates) * margin / (1.0 - rate)
        harm = source.binomial(trials[1], np.where(is_treated, with_harm, own_rates))
        before = source.binomial(trials[0], own_rates)
        yield (
            wave,
            Outcomes(names, is_treated, harm.astype(float), trials[1].astype(float)),
            Covariates(before.astype(float), trials[0].astype(float), days=7),
        )


def test_a_guard_exactly_at_the_margin_passes_in_five_percent_of_waves_with_cuped():
    waves, passed, called_beyond = 800, 0, 0
    for wave, own, before in waves_at_the_margin(waves):
        trial = Rerandomisation.of(
            own,
            Metric.DISRUPTION,
            DrawKey("internal", "guard", wave),
            adjustment=Adjustment.of(before),
        )
        found = trial.test(0.01, trial.sets(399))
        passed += found.p_harm <= POLICY.alpha
        called_beyond += found.p_safe <= POLICY.alpha

    highest = stats.binom.isf(FALSE_ALARM, waves, POLICY.alpha)
    assert passed <= highest
    assert called_beyond <= highest


def judged(totals, metric: Metric, margin: float, baseline) -> MetricResult:
    judge = Judge(PAIR, KEY, NO_MINIMUM, is_look_due=True)
    return judge.compare(checked_totals(totals), metric, margin, baseline=baseline)


@pytest.mark.parametrize(
    ("metric", "margin"),
    [
        pytest.param(Metric.COMPLETION, 0.01, id="a rate where higher is better"),
        pytest.param(Metric.DISRUPTION, 0.005, id="a rate"),
        pytest.param(Metric.TOKENS, 1.02, id="an amount"),
    ],
)
def test_a_baseline_that_predicts_the_wave_narrows_the_bound(metric, margin):
    totals = simulated_totals(treated=60, control=600)

    # Told but for one owner in ten, who is new: otherwise nothing would be left to compare.
    known = totals.iloc[[place for place in range(len(totals)) if place % 10]]

    without = judged(totals, metric, margin, None).figures
    with_baseline = judged(totals, metric, margin, identical_baseline(known)).figures

    cuped = with_baseline.cuped
    assert cuped is not None
    assert cuped.variance_ratio < 0.6
    assert without.cuped is None
    assert without.without_cuped == "no comparable days before the wave are known"
    # What is reported of the cohorts stays; what the test can exclude does not.
    assert (with_baseline.estimate, with_baseline.interval) == (without.estimate, without.interval)
    assert with_baseline.bound is not None
    assert without.bound is not None
    assert without.estimate is not None
    assert abs(with_baseline.bound - cuped.estimate) < abs(without.bound - without.estimate)


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
@pytest.mark.parametrize("dataset", DATASETS)
def test_the_bound_with_cuped_is_inside_the_margin_exactly_when_the_verdict_is_within(
    dataset, metric
):
    margins = {Metric.COMPLETION: 0.04, Metric.DISRUPTION: 0.03}
    margin = margins.get(metric, 1.3)

    result = judged(reference_totals(dataset), metric, margin, reference_baseline(dataset))
    figures = result.figures

    assert figures.bound is not None
    assert figures.margin is not None
    is_inside = (
        figures.bound > figures.margin
        if metric.is_higher_better
        else figures.bound < figures.margin
    )
    assert is_inside is (result.verdict is Verdict.WITHIN)


def test_a_short_baseline_is_not_used_and_the_reason_is_reported():
    totals = simulated_totals(treated=60, control=600)

    result = judged(totals, Metric.TURNS, 1.1, identical_baseline(totals, days=6))

    assert result.figures.cuped is None
    assert result.figures.without_cuped is not None
    assert result.figures.without_cuped.startswith("only 6 of 7 complete days")
    plain = judged(totals, Metric.TURNS, 1.1, None)
    assert dataclasses.replace(result.figures, without_cuped=None) == dataclasses.replace(
        plain.figures, without_cuped=None
    )
