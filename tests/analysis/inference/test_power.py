"""Power: a table of designs, simulations, and impossible plans."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from guardwave.analysis.inference.power import (
    Design,
    owner_variance,
    plan_metrics,
    power,
    treated_needed,
    variance_of_rate,
)
from guardwave.reducer.vocabulary import Cohort, Metric
from tests.support.frames.samples import ENFORCE_MARGINS, POLICY, simulated_totals

# Treated owners for 80 and 90 % at 5 % treated, from simulated owners with about 28 prompts each
# (30 where sizes are equal). Closed form and simulated variances differ by a few percent.
PLANNED = [
    pytest.param(0.05, 0.01, 0.05, 0.0, (255, 353), id="equal sizes"),
    pytest.param(0.05, 0.01, 0.05, 1.26, (453, 627), id="lognormal sizes"),
    pytest.param(0.05, 0.01, 0.05, 6.15, (1137, 1574), id="Zipf sizes"),
    pytest.param(0.05, 0.01, 0.15, 0.0, (553, 765), id="equal sizes, ICC 0.15"),
    pytest.param(0.05, 0.01, 0.15, 1.26, (1164, 1611), id="lognormal sizes, ICC 0.15"),
    pytest.param(0.05, 0.01, 0.15, 6.15, (3526, 4883), id="Zipf sizes, ICC 0.15"),
    pytest.param(0.1, 0.01, 0.3, 0.0, (1894, 2623), id="equal sizes, ICC 0.30"),
    pytest.param(0.1, 0.01, 0.3, 1.26, (4135, 5727), id="lognormal sizes, ICC 0.30"),
    pytest.param(0.1, 0.01, 0.3, 6.21, (12001, 16622), id="Zipf sizes, ICC 0.30"),
    pytest.param(0.02, 0.005, 0.05, 0.0, (411, 569), id="rare harm, equal sizes"),
    pytest.param(0.02, 0.005, 0.05, 1.23, (779, 1078), id="rare harm, lognormal sizes"),
    pytest.param(0.02, 0.005, 0.05, 6.19, (2194, 3039), id="rare harm, Zipf sizes"),
]


@pytest.mark.parametrize(("rate", "margin", "icc", "spread", "needed"), PLANNED)
def test_the_owners_needed_are_those_of_the_table(rate, margin, icc, spread, needed):
    prompts = 27.7 if spread else 30.0
    variance = variance_of_rate(rate, icc=icc, size_cv_squared=spread, prompts=prompts)
    for aim, table in zip((0.8, 0.9), needed, strict=True):
        found = treated_needed(variance, margin, alpha=0.05, power_aim=aim, share_bps=500)
        assert found == pytest.approx(table, rel=0.01 if not spread and rate > 0.02 else 0.09)


def test_the_owners_needed_are_the_least_that_reach_the_power():
    needed = treated_needed(0.004, 0.01, alpha=0.05, power_aim=0.8, share_bps=500)
    assert needed is not None
    enough, fewer = (
        power(Design(0.004, 0.01, treated, 19 * treated), alpha=0.05)
        for treated in (needed, needed - 1)
    )
    assert fewer < 0.8 <= enough


def test_power_is_that_of_simulated_t_tests():
    source = np.random.default_rng(11)
    treated = source.normal(0.0, 0.06, (20_000, 60))
    reference = source.normal(0.0, 0.06, (20_000, 600)).mean(axis=1)
    spread = treated.std(axis=1, ddof=1) * np.sqrt(1 / 60 + 1 / 600)
    passed = (treated.mean(axis=1) - reference + stats.t.ppf(0.95, 59) * spread < 0.02).mean()

    assert power(Design(0.0036, 0.02, 60, 600), alpha=0.05) == pytest.approx(passed, abs=0.012)


def test_a_guard_at_the_margin_passes_as_often_as_alpha():
    assert power(Design(0.004, 0.01, 200, 3800), alpha=0.05, harm=0.01) == pytest.approx(0.05)


def test_owners_that_do_not_vary_pass_exactly_when_harm_is_inside_the_margin():
    design = Design(0.0, 0.01, 2, 2)
    assert power(design, alpha=0.05) == 1.0
    assert power(design, alpha=0.05, harm=0.02) == 0.0


def test_the_variance_of_simulated_owners_is_the_closed_form():
    source = np.random.default_rng(3)
    rates = source.beta(0.05 * 19, 0.95 * 19, 40_000)
    harm = source.binomial(30, rates).astype(float)
    closed = variance_of_rate(0.05, icc=0.05, size_cv_squared=0.0, prompts=30.0)
    assert owner_variance(harm, np.full(40_000, 30.0)) == pytest.approx(closed, rel=0.03)


def test_no_roster_is_enough_for_a_margin_that_vanishes():
    assert treated_needed(0.5, 1e-7, alpha=0.05, power_aim=0.9, share_bps=500) is None


def test_a_plan_states_the_power_of_this_roster_and_the_owners_needed():
    totals = simulated_totals(treated=0, control=2_000)

    plans = plan_metrics(totals, ENFORCE_MARGINS, policy=POLICY, share_bps=500)

    assert [plan.metric for plan in plans] == list(ENFORCE_MARGINS)
    completion = plans[0]
    assert completion.power is not None
    assert completion.treated_needed is not None
    assert completion.information is not None
    assert completion.owners_needed == 20 * completion.treated_needed
    assert (completion.power < 0.95) is (completion.treated_needed > 100)


def test_beta_is_split_over_the_metrics_that_must_all_pass():
    totals = simulated_totals(treated=0, control=2_000)
    alone = plan_metrics(totals, {Metric.COMPLETION: 0.01}, policy=POLICY, share_bps=500)[
        0
    ].treated_needed
    of_four = plan_metrics(totals, ENFORCE_MARGINS, policy=POLICY, share_bps=500)[0].treated_needed
    stricter = dataclasses.replace(POLICY, planned_power=0.95)
    alone_at_95 = plan_metrics(totals, {Metric.COMPLETION: 0.01}, policy=stricter, share_bps=500)[
        0
    ].treated_needed

    assert alone is not None
    assert of_four is not None
    assert of_four > alone
    assert of_four == alone_at_95


def test_cuped_halves_the_owners_when_it_halves_the_variance():
    totals = simulated_totals(treated=0, control=2_000)
    without, adjusted = (
        plan_metrics(totals, ENFORCE_MARGINS, policy=POLICY, share_bps=500, variance_ratio=ratio)[
            0
        ].treated_needed
        for ratio in (1.0, 0.5)
    )
    assert without is not None
    assert adjusted == pytest.approx(without / 2, rel=0.05)


@pytest.mark.parametrize("owners", [0, 1, 30])
def test_a_roster_that_treats_nobody_has_no_power_rather_than_zero(owners):
    totals = simulated_totals(treated=0, control=owners)

    for plan in plan_metrics(totals, ENFORCE_MARGINS, policy=POLICY, share_bps=500):
        assert (plan.power, plan.information) == (None, None)


def test_the_cohort_an_owner_was_in_changes_no_plan():
    totals = simulated_totals(treated=100, control=1_900)
    mixed, alike = (
        plan_metrics(rows, ENFORCE_MARGINS, policy=POLICY, share_bps=500)
        for rows in (totals, totals.assign(cohort=Cohort.EVERYONE.value))
    )
    assert mixed == alike


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"share_bps": 0}, "share_bps is 0", id="no share"),
        pytest.param({"share_bps": 10_000}, "share_bps is 10000", id="everybody"),
        pytest.param({"variance_ratio": 0.0}, "variance_ratio is 0.0", id="no variance"),
    ],
)
def test_an_impossible_plan_is_refused_by_name(changes, words):
    arguments = {"policy": POLICY, "share_bps": 500, **changes}
    with pytest.raises(ValueError, match=words):
        plan_metrics(simulated_totals(treated=2, control=20), ENFORCE_MARGINS, **arguments)


@pytest.mark.parametrize(("treated", "reference"), [(1, 40), (0, 40), (2, 0)])
def test_power_needs_owners_on_both_sides(treated, reference):
    with pytest.raises(ValueError, match=f"{treated} treated and {reference} reference"):
        power(Design(0.01, 0.01, treated, reference), alpha=0.05)
