"""Placebo planner: its rates are those of the gate, and its sentence warns of a weak wave."""

import dataclasses
import datetime as dt
import math

import numpy as np
import pytest

from guardwave.analysis.frames.baseline import Baseline
from guardwave.analysis.frames.owner_totals import COUNTS
from guardwave.analysis.inference.power import plan_metrics
from guardwave.analysis.planning.placebo import Placebos, QuietDays, plan_by_placebo
from guardwave.reducer.rollout.policy import MinimumData
from guardwave.reducer.vocabulary import Gate, Metric
from tests.support.frames.periods import durations_of
from tests.support.frames.samples import ENFORCE_MARGINS, POLICY, simulated_totals

QUICK = dataclasses.replace(POLICY, permutations=199, minimum_data=MinimumData(2, 1.0, 1.0, 0.0))


@pytest.fixture(scope="module")
def owners():
    return simulated_totals(treated=0, control=400)


def planned(owners, *, share=1000, waves=40, policy=QUICK, gate=Gate.ENFORCE, **quiet):
    (plan,) = plan_by_placebo(
        [QuietDays(owners, 7, **quiet)], [share], Placebos(gate, policy, waves=waves, seed=3)
    )
    return plan


def test_harm_at_the_margin_passes_about_as_often_as_alpha(owners):
    plan = planned(owners, waves=200)

    error = math.sqrt(0.05 * 0.95 / 200)
    assert [rates.metric for rates in plan.metrics] == list(ENFORCE_MARGINS)
    for rates in plan.metrics:
        # Four metrics, three and a half errors: a seed that fails shows that the level is broken.
        assert rates.false_promotion <= 0.05 + 3.5 * error
        assert rates.power >= rates.false_promotion


def test_the_power_is_near_that_of_the_closed_form(owners):
    policy = dataclasses.replace(QUICK, margins={Gate.ENFORCE: {Metric.COMPLETION: 0.01}})

    (rates,) = planned(owners, waves=250, policy=policy).metrics

    (closed,) = plan_metrics(owners, {Metric.COMPLETION: 0.01}, policy=policy, share_bps=1000)
    assert closed.power is not None
    assert rates.power == pytest.approx(closed.power, abs=0.12)


def test_the_same_seed_gives_the_same_plan(owners):
    assert planned(owners, waves=10) == planned(owners, waves=10)


def test_a_weak_plan_warns_that_the_wave_will_prove_nothing(owners):
    plan = planned(owners, waves=10, policy=POLICY)

    assert plan.power is not None
    assert plan.power < 0.5
    assert plan.is_weak
    assert plan.treated == 40
    assert plan.sentence.startswith(
        f"A harmless guard would pass {100 * plan.power:.0f} % (give or take "
    )
    assert "of waves with 40 of 400 owners treated for 7 days; " in plan.sentence
    assert plan.sentence.endswith("will most likely prove nothing: treat more owners.")


def test_more_treated_owners_prove_more(owners):
    few, many = plan_by_placebo(
        [QuietDays(owners, 7)], [300, 4000], Placebos(Gate.ENFORCE, QUICK, waves=40)
    )
    assert (few.treated, many.treated) == (12, 160)
    assert few.power is not None
    assert many.power is not None
    assert few.power < many.power


def test_every_share_is_planned_on_every_period(owners):
    plans = plan_by_placebo(
        [QuietDays(owners, 7), QuietDays(owners.head(200), 14)],
        [500, 1000],
        Placebos(Gate.ENFORCE, QUICK, waves=2),
    )
    found = [(plan.owners, plan.days, plan.share_bps) for plan in plans]
    assert found == [(400, 7, 500), (400, 7, 1000), (200, 14, 500), (200, 14, 1000)]


def test_latency_is_planned_where_durations_are_known(owners):
    margins = {Metric.TURNS: 1.10, Metric.LATENCY_P95: 1.10}
    policy = dataclasses.replace(QUICK, margins={Gate.ENFORCE: margins})

    without = planned(owners, waves=2, policy=policy)
    timed = planned(owners, waves=40, policy=policy, durations=durations_of(owners), share=3000)

    assert [rates.metric for rates in without.metrics] == [Metric.TURNS]
    latency = timed.metrics[1]
    assert latency.metric is Metric.LATENCY_P95
    assert latency.false_promotion <= 0.2 < latency.power


def test_days_before_that_predict_the_wave_raise_the_power(owners):
    days = tuple(dt.date(2026, 11, 2) + dt.timedelta(days=place) for place in range(7))
    # Alike and not the same: days that foretell everything leave no spread to test with.
    less = np.minimum(owners["completed"], np.arange(len(owners)) % 3)
    earlier = owners.assign(completed=owners["completed"] - less, is_comparable=True)
    before = Baseline(earlier[["owner", *COUNTS, "is_comparable"]], days)
    policy = dataclasses.replace(QUICK, margins={Gate.ENFORCE: {Metric.COMPLETION: 0.01}})

    without, adjusted = (
        planned(owners, policy=policy, baseline=baseline, share=500).power
        for baseline in (None, before)
    )

    assert without is not None
    assert adjusted is not None
    assert adjusted > without


@pytest.mark.parametrize("count", [0, 9])
def test_a_roster_that_treats_nobody_has_no_power_rather_than_zero(owners, count):
    plan = planned(owners.head(count), waves=5)

    assert (plan.power, plan.metrics, plan.treated) == (None, (), 0)
    assert plan.is_weak
    assert plan.sentence == f"10 % of {count} owners treats nobody."


def test_the_warn_gate_is_planned_by_its_own_metrics(owners):
    metrics = planned(owners, waves=2, gate=Gate.WARN).metrics
    assert [rates.metric for rates in metrics] == [Metric.DISRUPTION, Metric.CANCELLATION]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(lambda: Placebos(Gate.SHADOW, QUICK), "compares no cohorts", id="shadow"),
        pytest.param(lambda: Placebos(Gate.WARN, QUICK, waves=0), "waves is 0", id="no wave"),
        pytest.param(
            lambda: plan_by_placebo([], [0], Placebos(Gate.WARN, QUICK)), "share is 0", id="none"
        ),
        pytest.param(
            lambda: plan_by_placebo([], [5001], Placebos(Gate.WARN, QUICK)),
            "share is 5001",
            id="more than half",
        ),
    ],
)
def test_impossible_plans_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
