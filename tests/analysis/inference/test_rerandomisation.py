"""Rerandomisation: the peers' p values, the level of the test, its bound, and its invariances."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from guardwave.analysis.frames.owner_totals import Outcomes
from guardwave.analysis.inference import injection
from guardwave.analysis.inference.cohorts import cohort_ratio, difference
from guardwave.analysis.inference.random_sets import draw_sets, sums_over
from guardwave.analysis.inference.rerandomisation import DrawKey, MarginTest, Rerandomisation
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.samples import (
    DATASETS,
    ENFORCE_MARGINS,
    POLICY,
    REFERENCE_METRICS,
    compared,
    reference_totals,
    reference_values,
    simulated_totals,
)

KEY = DrawKey("internal", "repeated_tool_failure", 1)
# The chance of a false alarm of each level check below.
FALSE_ALARM = 1e-4


def harm_margin(metric: Metric) -> float:
    margin = ENFORCE_MARGINS[metric]
    return math.log(margin) if metric.is_ratio else margin


def swapped(own: Outcomes) -> Outcomes:
    return own._replace(is_treated=~own.is_treated)


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
@pytest.mark.parametrize("dataset", DATASETS)
def test_p_at_the_margin_agrees_with_an_independent_plain_loop(dataset, metric):
    own = compared(reference_totals(dataset), metric)
    peer = reference_values(dataset)["metrics"][REFERENCE_METRICS[metric]]
    expected = peer["rerandomisation_p_harm_at_margin"]
    trial = Rerandomisation.of(own, metric, KEY)

    found = trial.test(harm_margin(metric), trial.sets(POLICY.permutations))

    p = expected["p"]
    tolerance = 4.0 * math.sqrt(
        expected["sd_between_injections"] ** 2
        + expected["mc_se_of_mean"] ** 2
        + p * (1.0 - p) / POLICY.permutations
    )
    assert found.p_harm == pytest.approx(p, abs=tolerance)
    assert found.permutations == POLICY.permutations


def one_wave_at_the_margin(
    source: np.random.Generator, *, owners: int, treated: int, rate: float, margin: float
) -> Outcomes:
    """Return uneven owners with their own rates, the treated worse by exactly the margin."""
    trials = np.maximum(1, source.lognormal(2.5, 1.0, owners)).astype(int)
    own_rates = source.beta(rate * 9.0, (1.0 - rate) * 9.0, owners)
    is_treated = np.zeros(owners, dtype=bool)
    is_treated[source.choice(owners, treated, replace=False)] = True
    with_harm = own_rates + (1.0 - own_rates) * margin / (1.0 - rate)
    harm = source.binomial(trials, np.where(is_treated, with_harm, own_rates))
    names = tuple(f"o{place:04d}" for place in range(owners))
    return Outcomes(names, is_treated, harm.astype(float), trials.astype(float))


@pytest.mark.parametrize(
    ("owners", "treated", "rate", "margin", "is_interval_fooled"),
    [
        pytest.param(40, 2, 0.02, 0.005, False, id="2 of 40 owners, rare harm"),
        pytest.param(200, 10, 0.02, 0.005, True, id="10 of 200 owners, rare harm"),
        pytest.param(200, 10, 0.06, 0.01, True, id="10 of 200 owners"),
        pytest.param(60, 40, 0.06, 0.01, False, id="40 of 60 owners, the larger part treated"),
    ],
)
def test_a_guard_exactly_at_the_margin_is_judged_wrongly_in_five_percent_of_waves(
    owners, treated, rate, margin, is_interval_fooled
):
    """The textbook interval passes far more of the same waves, which is why it only reports."""
    source = np.random.default_rng(20_261_120)
    waves, passed, called_beyond, inside_interval = 1000, 0, 0, 0
    for wave in range(waves):
        own = one_wave_at_the_margin(
            source, owners=owners, treated=treated, rate=rate, margin=margin
        )
        trial = Rerandomisation.of(own, Metric.DISRUPTION, DrawKey("internal", "guard", wave))
        found = trial.test(margin, trial.sets(399))
        passed += found.p_harm <= POLICY.alpha
        called_beyond += found.p_safe <= POLICY.alpha
        treated_ratio = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
        reference_ratio = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
        assert treated_ratio is not None
        assert reference_ratio is not None
        contrast = difference(treated_ratio, reference_ratio)
        inside_interval += contrast is not None and contrast.upper(0.95) < margin

    highest = stats.binom.isf(FALSE_ALARM, waves, POLICY.alpha)
    assert passed <= highest
    assert called_beyond <= highest
    assert bool(inside_interval > highest) is is_interval_fooled


@pytest.mark.parametrize("metric", REFERENCE_METRICS, ids=str)
@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("margin_share", [0.2, 1.0, 4.0])
def test_the_bound_is_inside_the_margin_exactly_when_the_test_passes_there(
    dataset, metric, margin_share
):
    own = compared(reference_totals(dataset), metric)
    margin = margin_share * harm_margin(metric)
    policy = dataclasses.replace(POLICY, refined_permutations=9_999)
    trial = Rerandomisation.of(own, metric, KEY)
    decision = trial.decide(margin, policy)

    bound = trial.bound(margin, decision, policy=policy, resolution=1e-4)

    assert bound is not None
    assert (bound < margin) is (decision.p_harm <= policy.alpha)


def test_the_bound_does_not_depend_on_the_margin_it_is_asked_beside():
    own = compared(simulated_totals(treated=60, control=300), Metric.COMPLETION)
    trial = Rerandomisation.of(own, Metric.COMPLETION, KEY)
    bounds = []
    for margin in (0.002, 0.05):
        decision = trial.decide(margin, POLICY)
        bounds.append(trial.bound(margin, decision, policy=POLICY, resolution=1e-5))

    assert bounds[0] == pytest.approx(bounds[1], abs=5e-4)


def test_a_rate_that_cannot_pass_is_bounded_by_every_trial_being_harmful():
    """With one of 3 owners treated no p is below 1 in 3."""
    own = Outcomes(
        ("a", "b", "c"), np.array([True, False, False]), np.array([1.0, 0, 1]), np.full(3, 4.0)
    )
    trial = Rerandomisation.of(own, Metric.DISRUPTION, KEY)
    decision = trial.decide(0.005, POLICY)

    assert decision.p_harm > 0.3
    assert trial.bound(0.005, decision, policy=POLICY, resolution=1e-3) == 1.0 - 0.125


def test_a_ratio_that_cannot_pass_has_no_bound():
    own = Outcomes(
        ("a", "b", "c"), np.array([True, False, False]), np.array([9.0, 8, 7]), np.full(3, 4.0)
    )
    trial = Rerandomisation.of(own, Metric.TOKENS, KEY)

    decision = trial.decide(0.1, POLICY)

    assert trial.bound(0.1, decision, policy=POLICY, resolution=1e-2) is None


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_reference_without_or_with_only_harm_can_be_tested(rate):
    harm = np.full(6, 4.0 * rate)
    own = Outcomes(tuple("abcdef"), np.arange(6) < 2, harm, np.full(6, 4.0))
    trial = Rerandomisation.of(own, Metric.DISRUPTION, KEY)

    decision = trial.decide(0.2, POLICY)

    bound = trial.bound(0.2, decision, policy=POLICY, resolution=1e-3)
    assert decision.p_harm > POLICY.alpha
    assert bound is not None
    assert bound > 0.0


def test_p_near_alpha_is_refined_with_many_more_permutations():
    own = compared(reference_totals("dev-3-few-treated-zero-events"), Metric.DISRUPTION)
    trial = Rerandomisation.of(own, Metric.DISRUPTION, KEY)

    assert trial.decide(0.005, POLICY).permutations == POLICY.refined_permutations
    unrefined = dataclasses.replace(POLICY, refined_permutations=POLICY.permutations)
    assert trial.decide(0.005, unrefined).permutations == POLICY.permutations


def test_a_wave_always_gets_the_same_sets_and_another_wave_others():
    own = compared(reference_totals("dev-1-lognormal-aa"), Metric.TURNS)

    def test_of(key: DrawKey) -> MarginTest:
        trial = Rerandomisation.of(own, Metric.TURNS, key)
        return trial.test(0.1, trial.sets(POLICY.permutations))

    assert test_of(KEY) == test_of(DrawKey(*KEY))
    seeds = {
        KEY.seed,
        KEY._replace(wave=2).seed,
        KEY._replace(guard="identical_call").seed,
        KEY._replace(environment="public-cloud").seed,
        DrawKey("internal1", "", 1).seed,
        DrawKey("internal", "1", 1).seed,
    }
    assert len(seeds) == 6


def test_swapping_the_cohorts_of_a_ratio_swaps_the_two_tails():
    """The random sets have the size of the smaller cohort, treated or not."""
    own = compared(reference_totals("dev-2-zipf-harm"), Metric.TURNS)
    trial = Rerandomisation.of(own, Metric.TURNS, KEY)
    mirror = Rerandomisation.of(swapped(own), Metric.TURNS, KEY)

    there, back = (side.test(0.0, side.sets(999)) for side in (trial, mirror))

    assert trial.is_treated_drawn
    assert not mirror.is_treated_drawn
    assert (there.p_harm, there.p_safe) == (back.p_safe, back.p_harm)


def test_random_sets_are_disjoint_within_a_shuffle_and_as_large_as_the_observed_one():
    is_member = np.arange(23) % 4 == 0
    size = int(is_member.sum())
    sets = sums_over(draw_sets(is_member, seed=5, count=9), np.eye(23))

    assert len(sets) == 1 + 9
    assert (sets[0] == is_member).all()
    assert {row.sum() for row in sets} == {size}
    blocks = 23 // size
    assert np.sum(sets[1 : 1 + blocks], axis=0).max() <= 1.0


def test_more_random_sets_only_add_to_the_first_ones():
    is_member = np.arange(50) < 6
    columns = np.arange(50.0)[:, np.newaxis]

    few = sums_over(draw_sets(is_member, seed=5, count=30), columns)
    many = sums_over(draw_sets(is_member, seed=5, count=300), columns)

    assert (many[: len(few)] == few).all()


def test_an_injected_rate_never_falls_when_the_margin_grows_and_stays_possible():
    own = compared(reference_totals("dev-1-lognormal-aa"), Metric.COMPLETION)
    draws = injection.uniforms(own.owners, Metric.COMPLETION, wave=1)
    before = np.zeros(len(own.owners))
    for margin in np.linspace(-0.06, 0.95, 40):
        injected = injection.with_rate_margin(own, float(margin), draws)
        assert (injected[own.is_treated] == own.harm[own.is_treated]).all()
        assert (injected <= own.trials).all()
        assert (injected[~own.is_treated] >= before[~own.is_treated]).all()
        before = injected


def test_a_margin_of_zero_injects_nothing():
    own = compared(reference_totals("dev-1-lognormal-aa"), Metric.DISRUPTION)
    draws = injection.uniforms(own.owners, Metric.DISRUPTION, wave=1)

    assert (injection.with_rate_margin(own, 0.0, draws) == own.harm).all()
    assert (injection.with_ratio_margin(own, 0.0) == own.harm).all()


def test_an_owners_uniform_depends_on_wave_metric_and_owner_alone():
    there = injection.uniforms(("a", "b"), Metric.COMPLETION, wave=1)
    back = injection.uniforms(("b", "a"), Metric.COMPLETION, wave=1)

    assert there.tolist() == back[::-1].tolist()
    assert ((there > 0.0) & (there < 1.0)).all()
    others = [
        injection.uniforms(("a",), Metric.COMPLETION, wave=2)[0],
        injection.uniforms(("a",), Metric.DISRUPTION, wave=1)[0],
    ]
    assert len({*there, *others}) == 4
    many = injection.uniforms(tuple(map(str, range(4000))), Metric.COMPLETION, wave=1)
    assert stats.kstest(many, "uniform").pvalue > FALSE_ALARM
