"""Known answers: the peers' figures of four reference datasets, and live on generated owners.

Beside test_cohorts (ratios, CR0, CR2, CR3, degrees of freedom, log ratios), test_rerandomisation
and test_latency (p values): the remaining numbers of the references.
"""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from guardwave.analysis.frames.owner_totals import Outcomes, checked_totals
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.inference import figures
from guardwave.analysis.inference.cohorts import CohortRatio, cohort_ratio, difference
from guardwave.analysis.inference.rerandomisation import DrawKey, Rerandomisation
from guardwave.analysis.report import MetricReason
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.support.frames.samples import (
    DATASETS,
    ENFORCE_MARGINS,
    NO_MINIMUM,
    PAIR,
    POLICY,
    REFERENCE_METRICS,
    compared,
    reference_totals,
    reference_values,
)

KEY = DrawKey("internal", "repeated_tool_failure", 1)
RATES = (Metric.COMPLETION, Metric.DISRUPTION)
AMOUNTS = (Metric.TOKENS, Metric.TURNS)


def pair_of(own: Outcomes) -> tuple[CohortRatio, CohortRatio]:
    treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
    reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
    assert treated is not None
    assert reference is not None
    return treated, reference


@pytest.fixture(params=DATASETS)
def dataset(request):
    return request.param


def peers_of(dataset: str, metric: Metric):
    return reference_values(dataset)["metrics"][REFERENCE_METRICS[metric]]


@pytest.mark.parametrize("metric", AMOUNTS, ids=str)
def test_fiellers_score_equals_the_peers(dataset, metric):
    expected = peers_of(dataset, metric)["fieller_score_at_margin"]

    score = figures.fieller_of(pair_of(compared(reference_totals(dataset), metric)), 1.10)

    assert score is not None
    assert score.score == pytest.approx(expected["statistic_num"], rel=1e-10)
    assert score.standard_error == pytest.approx(expected["se"], rel=1e-10)


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
def test_each_cohorts_own_standard_error_equals_the_peers(dataset, metric):
    expected = peers_of(dataset, metric)["se_arm_cr2[statsmodels WLS HC2]"]

    for name, ratio in zip(
        ("enforce", "warn"), pair_of(compared(reference_totals(dataset), metric)), strict=True
    ):
        variance = ratio.variance("CR2")
        assert variance is not None
        assert math.sqrt(variance) == pytest.approx(expected[name], rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("metric", RATES, ids=str)
def test_call_by_call_standard_errors_of_three_peers_equal_ours_by_owner(dataset, metric):
    errors = peers_of(dataset, metric)["se_diff"]
    pair = pair_of(compared(reference_totals(dataset), metric))
    errors_by_owner = figures.standard_errors_of(pair)

    assert errors_by_owner is not None
    assert errors_by_owner.cr0 == pytest.approx(
        errors["call_level_cr0[statsmodels OLS cluster, no correction]"], rel=1e-10
    )
    assert errors_by_owner.cr2 == pytest.approx(errors["call_level_cr2[R clubSandwich]"], rel=1e-10)
    assert errors_by_owner.cr3 == pytest.approx(
        errors["call_level_crv3_no_ssc[pyfixest]"], rel=1e-10
    )
    # Their CR1 has one factor over all owners and calls of both cohorts.
    owners = sum(ratio.owners for ratio in pair)
    calls = sum(ratio.trials for ratio in pair)
    factor = math.sqrt(owners / (owners - 1) * (calls - 1) / (calls - 2))
    for peer in ("call_level_cr1[statsmodels OLS cluster]", "call_level_crv1[pyfixest]"):
        assert errors_by_owner.cr0 * factor == pytest.approx(errors[peer], rel=1e-10)


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
def test_tea_tastings_plain_rows_follow_from_cr1_with_welchs_degrees_of_freedom(dataset, metric):
    expected = peers_of(dataset, metric)["tea_tasting"]["plain"]
    pair = pair_of(compared(reference_totals(dataset), metric))
    values = [1.0 - one.ratio if metric.is_higher_better else one.ratio for one in pair]
    variances = [one.variance("CR1") or 0.0 for one in pair]

    def interval(estimate: float, parts: list[float]) -> tuple[float, float, float]:
        variance = sum(parts)
        df = variance**2 / sum(
            part**2 / (one.owners - 1) for part, one in zip(parts, pair, strict=True)
        )
        error = math.sqrt(variance)
        half = float(stats.t.isf(0.05, df)) * error
        p = 2.0 * float(stats.t.sf(abs(estimate) / error, df))
        return estimate - half, estimate + half, p

    effect = values[0] - values[1]
    low, high, p = interval(effect, variances)
    assert expected["treatment"] == pytest.approx(values[0], rel=1e-10, abs=1e-12)
    assert expected["control"] == pytest.approx(values[1], rel=1e-10)
    assert expected["effect_size"] == pytest.approx(effect, rel=1e-9)
    assert expected["effect_size_ci_lower"] == pytest.approx(low, rel=1e-9)
    assert expected["effect_size_ci_upper"] == pytest.approx(high, rel=1e-9)
    assert expected["pvalue"] == pytest.approx(p, rel=1e-9)
    if values[0] > 0.0:
        parts = [one / value**2 for one, value in zip(variances, values, strict=True)]
        low, high, _ = interval(math.log(values[0] / values[1]), parts)
        assert expected["rel_effect_size_ci_lower"] == pytest.approx(math.expm1(low), rel=1e-9)
        assert expected["rel_effect_size_ci_upper"] == pytest.approx(math.expm1(high), rel=1e-9)


def test_six_treated_owners_without_a_disruption_are_not_within_even_without_minimum_data():
    """The textbook bound is far inside the margin there, at -0.011."""
    judge = Judge(PAIR, KEY, NO_MINIMUM, is_look_due=True)
    totals = checked_totals(reference_totals("dev-3-few-treated-zero-events"))

    result = judge.compare(totals, Metric.DISRUPTION, 0.005)

    assert result.figures.interval is not None
    assert result.figures.interval.high < 0.0
    assert result.verdict is Verdict.UNPROVEN
    assert result.figures.bound is not None
    assert result.figures.bound >= 0.005


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
def test_a_dominant_owner_is_unproven_for_lack_of_data(metric):
    judge = Judge(PAIR, KEY, POLICY, is_look_due=True)
    totals = checked_totals(reference_totals("dev-4-dominant-owner"))

    result = judge.compare(totals, metric, ENFORCE_MARGINS[metric])

    assert (result.verdict, result.reason) == (Verdict.UNPROVEN, MetricReason.MINIMUM_DATA)


def generated(seed: int, owners: int = 60, treated: int = 20) -> Outcomes:
    source = np.random.default_rng(seed)
    trials = np.maximum(1, source.lognormal(2.0, 1.0, owners)).astype(int)
    harm = source.binomial(trials, source.beta(1.0, 8.0, owners))
    names = tuple(f"o{place:04d}" for place in range(owners))
    is_treated = np.arange(owners) < treated
    return Outcomes(names, is_treated, harm.astype(float), trials.astype(float))


@pytest.mark.parametrize("seed", range(4))
def test_call_by_call_least_squares_clustered_by_owner_equals_cr0(seed):
    own = generated(seed)
    calls = own.trials.astype(int)
    owner = np.repeat(np.arange(len(calls)), calls)
    is_harm = np.concatenate(
        [np.arange(count) < harm for count, harm in zip(calls, own.harm, strict=True)]
    ).astype(float)
    design = np.column_stack([np.ones(len(owner)), own.is_treated[owner]])
    fit = sm.OLS(is_harm, design).fit(
        cov_type="cluster",
        cov_kwds={"groups": owner, "use_correction": False, "df_correction": False},
    )

    contrast = difference(*pair_of(own), "CR0")

    assert contrast is not None
    assert contrast.estimate == pytest.approx(fit.params[1], rel=1e-10)
    assert contrast.standard_error == pytest.approx(fit.bse[1], rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_margin_scipys_permutations_find_the_same_p(seed):
    own = generated(seed)

    def studentised(first: np.ndarray, second: np.ndarray) -> float:
        estimate, variance = 0.0, 0.0
        for sign, chosen in ((1.0, first), (-1.0, second)):
            places = chosen.astype(int)
            harm, trials = own.harm[places], own.trials[places]
            ratio = harm.sum() / trials.sum()
            estimate += sign * ratio
            residuals = harm - ratio * trials
            factor = len(places) / (len(places) - 1)
            variance += float((residuals**2).sum()) / float(trials.sum()) ** 2 * factor
        return estimate / math.sqrt(variance)

    places = np.arange(len(own.owners)).astype(float)
    peer = stats.permutation_test(
        (places[own.is_treated], places[~own.is_treated]),
        studentised,
        n_resamples=1999,
        alternative="less",
        rng=np.random.default_rng(seed),
    )
    trial = Rerandomisation.of(own, Metric.DISRUPTION, KEY)

    found = trial.test(0.0, trial.sets(1999))

    # Both are Monte-Carlo: five standard errors of their difference.
    tolerance = 5.0 * math.sqrt(2.0 * max(peer.pvalue * (1.0 - peer.pvalue), 1e-3) / 1999)
    assert trial.statistics(0.0, trial.sets(1999))[0] == pytest.approx(peer.statistic, rel=1e-9)
    assert found.p_harm == pytest.approx(peer.pvalue, abs=tolerance)
