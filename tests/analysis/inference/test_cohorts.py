"""Cohorts: known answers of independent peers, and statsmodels live on generated owners."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.owner_totals import Outcomes
from guardwave.analysis.inference.cohorts import (
    CohortRatio,
    Contrast,
    Correction,
    cohort_ratio,
    difference,
    log_ratio,
)
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.samples import (
    DATASETS,
    REFERENCE_METRICS,
    compared,
    reference_totals,
    reference_values,
)

METRICS = list(REFERENCE_METRICS)
# Ours, and what weighted least squares over owners calls it.
CORRECTIONS: dict[Correction, str] = {"CR0": "HC0", "CR2": "HC2", "CR3": "HC3"}


def ratios(own: Outcomes) -> tuple[CohortRatio, CohortRatio]:
    treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
    reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
    assert treated is not None
    assert reference is not None
    return treated, reference


@pytest.fixture(params=DATASETS)
def dataset(request):
    return request.param


@pytest.fixture(params=METRICS, ids=str)
def metric(request):
    return request.param


@pytest.fixture
def own(dataset, metric) -> Outcomes:
    return compared(reference_totals(dataset), metric)


@pytest.fixture
def peers(dataset, metric):
    return reference_values(dataset)["metrics"][REFERENCE_METRICS[metric]]


def test_ratios_and_difference_equal_the_peers(own, peers, metric):
    treated, reference = (
        1.0 - ratio.ratio if metric is Metric.COMPLETION else ratio.ratio for ratio in ratios(own)
    )

    assert treated == pytest.approx(peers["ratio"]["enforce"], rel=1e-10, abs=0)
    assert reference == pytest.approx(peers["ratio"]["warn"], rel=1e-10, abs=0)
    assert treated - reference == pytest.approx(peers["difference"], rel=1e-10, abs=0)


@pytest.mark.parametrize(
    ("correction", "peer"),
    [
        ("CR0", "cr0[statsmodels WLS HC0]"),
        ("CR2", "cr2[statsmodels WLS HC2]"),
        ("CR3", "cr3_unscaled[statsmodels WLS HC3]"),
    ],
)
def test_standard_errors_equal_the_peers(own, peers, correction, peer):
    contrast = difference(*ratios(own), correction=correction)

    assert contrast is not None
    assert contrast.standard_error == pytest.approx(peers["se_diff"][peer], rel=1e-10, abs=0)


@pytest.mark.parametrize("metric", [Metric.COMPLETION, Metric.DISRUPTION], indirect=True)
def test_degrees_of_freedom_and_bound_equal_clubsandwich(own, peers, metric):
    """The references print 12 digits, so both agree to 1e-10, better than 1e-8."""
    contrast = difference(*ratios(own))
    sign = -1.0 if metric is Metric.COMPLETION else 1.0

    assert contrast is not None
    df = peers["satterthwaite_df_cr2[R clubSandwich call level]"]
    assert contrast.degrees_of_freedom == pytest.approx(df, rel=1e-10, abs=0)
    bound = peers["one_sided_t_bound_cr2[scipy t, clubSandwich se+df]"]
    assert sign * contrast.upper(0.95) == pytest.approx(bound, rel=1e-9, abs=0)


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.TURNS], indirect=True)
def test_the_log_ratio_equals_the_peers(own, peers):
    contrast = log_ratio(*ratios(own))

    assert contrast is not None
    assert contrast.estimate == pytest.approx(peers["log_ratio"]["estimate"], rel=1e-10, abs=0)
    assert contrast.standard_error == pytest.approx(peers["log_ratio"]["se_cr2"], rel=1e-10, abs=0)


def test_effective_owners_and_the_largest_share_equal_the_peers(dataset):
    values = reference_values(dataset)
    for name, ratio in zip(
        ("enforce", "warn"),
        ratios(compared(reference_totals(dataset), Metric.TURNS)),
        strict=True,
    ):
        assert ratio.owners == values["owners"][name]
        assert ratio.trials == values["prompts"][name]
        assert ratio.effective_owners == pytest.approx(values["n_eff"][name], rel=1e-10)
        assert ratio.largest_owner_share == pytest.approx(
            values["max_owner_share"][name], rel=1e-10
        )


def test_cr1_is_cr0_with_the_factor_of_its_owners(own):
    for ratio in ratios(own):
        cr0, cr1 = ratio.variance("CR0"), ratio.variance("CR1")
        assert cr0 is not None
        assert cr1 == pytest.approx(cr0 * ratio.owners / (ratio.owners - 1), rel=1e-15)


owner_counts = st.tuples(st.integers(1, 500), st.integers(0, 100_000))
cohort_counts = st.lists(owner_counts, min_size=2, max_size=40)


@given(treated=cohort_counts, reference=cohort_counts)
def test_standard_errors_equal_weighted_least_squares_by_statsmodels(treated, reference):
    trials, harm = np.array(treated + reference, dtype=float).T
    is_treated = np.arange(len(trials)) < len(treated)
    fit = sm.WLS(
        harm / trials, np.column_stack([np.ones(len(trials)), is_treated]), weights=trials
    ).fit()
    owners = tuple(str(place) for place in range(len(trials)))
    pair = ratios(Outcomes(owners, is_treated, harm, trials))
    scale = max(abs(fit.params).max(), 1e-300)

    for correction, peer in CORRECTIONS.items():
        contrast = difference(*pair, correction=correction)
        assert contrast is not None
        assert contrast.estimate == pytest.approx(fit.params[1], rel=1e-9, abs=1e-9 * scale)
        expected = getattr(fit, f"{peer}_se")[1]
        assert contrast.standard_error == pytest.approx(expected, rel=1e-7, abs=1e-7 * scale)


def test_the_degrees_of_freedom_of_equal_owners_are_those_of_welch_with_equal_weights():
    """With n equal owners, 1 / (n h^2 + A^2 - B) is n - 1 of the ordinary t interval."""
    ratio = cohort_ratio(np.arange(12.0), np.full(12, 5.0))

    assert ratio is not None
    assert ratio.degrees_of_freedom == pytest.approx(11.0)


def test_one_owner_has_a_ratio_and_no_interval():
    lone = cohort_ratio(np.array([1.0]), np.array([4.0]))
    many = cohort_ratio(np.array([1.0, 2.0]), np.array([4.0, 4.0]))

    assert lone is not None
    assert many is not None
    assert lone.ratio == 0.25
    assert lone.variance("CR2") is None
    assert lone.degrees_of_freedom is None
    assert difference(lone, many) is None


def test_no_owner_has_no_ratio():
    assert cohort_ratio(np.array([]), np.array([])) is None


def test_the_lower_bound_mirrors_the_upper_one():
    contrast = Contrast(estimate=1.0, standard_error=2.0, degrees_of_freedom=9.0)

    assert contrast.upper(0.95) - 1.0 == pytest.approx(1.0 - contrast.upper(0.05))
    assert contrast.upper(0.95) == pytest.approx(1.0 + 2.0 * 1.8331129326536335)
    assert math.isclose(contrast.upper(0.5), 1.0)
