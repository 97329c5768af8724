"""Harm alarms: known widths, the rate of false alarms over many looks, and their conditions."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.gate.alarms import (
    AnyTimeLooks,
    ScheduledLooks,
    harm_alarms,
    mixture_multiplier,
)
from guardwave.reducer.rollout.policy import Alarms
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.samples import ENFORCE_MARGINS, NO_MINIMUM, PAIR, POLICY, simulated_totals

DAILY = ScheduledLooks(7)


def alarms_of(totals, *, policy=POLICY, looks=DAILY, margins=ENFORCE_MARGINS):
    return {
        alarm.metric: alarm
        for alarm in harm_alarms(totals, PAIR, margins, policy=policy, looks=looks)
    }


@pytest.mark.parametrize(
    ("information", "alpha", "multiplier"),
    [
        pytest.param(1.0, 0.05, 2.78, id="at the planned information"),
        pytest.param(1.0, 0.01, 3.36, id="at the planned information, alpha 0.01"),
        pytest.param(0.14, 0.05, 3.38, id="on the first day"),
    ],
)
def test_the_width_is_the_known_one(information, alpha, multiplier):
    assert mixture_multiplier(information, 1.0, alpha) == pytest.approx(multiplier, abs=0.006)


@pytest.mark.parametrize("information", [0.5, 1.0, 2.0, 4.0])
def test_the_width_is_flat_around_the_planned_information(information):
    flat = mixture_multiplier(information, 1.0, 0.05) / mixture_multiplier(1.0, 1.0, 0.05)
    assert 0.99 < flat < 1.035


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(1e-4, 0.4))
def test_the_width_depends_on_information_relative_to_the_planned_and_exceeds_a_single_look(
    information, planned, alpha
):
    width = mixture_multiplier(information, planned, alpha)
    assert width == pytest.approx(mixture_multiplier(information / planned, 1.0, alpha))
    assert width > math.sqrt(2.0) * math.sqrt(math.log(1.0 / (2.0 * alpha)))


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_a_hundred_looks_at_no_harm_cross_the_bound_at_most_alpha_of_the_time(alpha):
    """Increments are independent, which is the least favourable case: real owners persist."""
    source = np.random.default_rng(20261120)
    information = np.linspace(0.02, 4.0, 100)
    steps = source.standard_normal((4_000, 100)) * np.sqrt(np.diff(information, prepend=0.0))
    scores = steps.cumsum(axis=1) / np.sqrt(information)
    widths = np.array([mixture_multiplier(units, 1.0, alpha) for units in information])
    crossed = (scores > widths).any(axis=1).mean()

    single_look = (scores > 1.6449).any(axis=1).mean()
    assert crossed <= alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / 4_000)
    assert single_look > 0.2


def test_simulated_waves_without_harm_raise_no_alarm_on_any_of_their_days():
    source = np.random.default_rng(7)
    raised = 0
    for wave in range(25):
        owners = simulated_totals(treated=60, control=240, seed=wave)
        grown = owners.assign(**dict.fromkeys(owners.columns[2:], 0))
        for _ in range(7):
            day = simulated_totals(treated=60, control=240, seed=int(source.integers(10**9)))
            counts = list(owners.columns[2:])
            grown[counts] += day[counts]
            raised += any(alarm.is_raised for alarm in alarms_of(grown).values())
    assert raised == 0


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param(DAILY, id="daily"),
        pytest.param(AnyTimeLooks(dict.fromkeys(Metric, 1e5)), id="at any time"),
    ],
)
def test_harm_beyond_the_margin_raises_an_alarm_that_names_the_numbers(looks):
    harmed = simulated_totals(treated=200, control=1800, harm=0.06)

    found = alarms_of(harmed, looks=looks)

    completion = found[Metric.COMPLETION]
    assert completion.is_raised
    assert completion.bound is not None
    assert completion.bound < 0.0
    assert completion.sentence.startswith("Alarm about completion: -")
    assert "beyond the margin of -1.00 pp" in completion.sentence
    assert [metric for metric, alarm in found.items() if alarm.is_raised] == [Metric.COMPLETION]


def test_harm_that_is_shown_but_inside_the_margin_raises_none():
    harmed = simulated_totals(treated=3_000, control=9_000, harm=0.006)

    completion = alarms_of(harmed)[Metric.COMPLETION]

    assert completion.bound is not None
    assert completion.bound < 0.0
    assert not completion.is_raised
    assert completion.sentence == (
        "No alarm about completion: harm is shown, and its estimate is inside the margin."
    )


def test_without_the_minimum_data_even_plain_harm_raises_none():
    harmed = simulated_totals(treated=12, control=400, harm=0.3)

    assert alarms_of(harmed, policy=NO_MINIMUM)[Metric.COMPLETION].is_raised
    few = alarms_of(harmed)[Metric.COMPLETION]
    assert not few.is_raised
    assert "12 owners with data in enforced (30 needed)" in few.sentence


@pytest.mark.parametrize("treated", [0, 1])
def test_with_no_two_treated_owners_there_is_no_alarm_and_no_bound(treated):
    totals = simulated_totals(treated=treated, control=400)

    for alarm in alarms_of(totals, policy=NO_MINIMUM).values():
        assert (alarm.is_raised, alarm.bound) == (False, None)
        assert "not enough owners with data in both cohorts" in alarm.sentence


def test_a_metric_without_planned_information_has_no_bound_at_any_time():
    found = alarms_of(
        simulated_totals(treated=60, control=600), looks=AnyTimeLooks({Metric.TOKENS: 100.0})
    )

    assert found[Metric.TOKENS].bound is not None
    assert found[Metric.TURNS].bound is None


def test_owners_that_do_not_differ_show_nothing():
    same = simulated_totals(treated=60, control=600).assign(tokens=0, disrupted=0)

    found = alarms_of(same, policy=NO_MINIMUM)

    assert (found[Metric.DISRUPTION].bound, found[Metric.TOKENS].bound) == (None, None)


def test_a_smaller_alpha_asks_for_more():
    harmed = simulated_totals(treated=200, control=1800, harm=0.03)
    strict = dataclasses.replace(POLICY, alarms=Alarms(alpha=0.001, lowers_enforce=True))

    loose, tight = (alarms_of(harmed, policy=policy)[Metric.TOKENS] for policy in (POLICY, strict))

    assert loose.bound is not None
    assert tight.bound is not None
    assert tight.bound < loose.bound


def test_latency_has_no_alarm():
    margins = {Metric.LATENCY_P95: 1.10, Metric.TURNS: 1.10}
    assert set(alarms_of(simulated_totals(treated=60, control=60), margins=margins)) == {
        Metric.TURNS
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(lambda: ScheduledLooks(0), "looks is 0", id="no look"),
        pytest.param(
            lambda: AnyTimeLooks({Metric.TOKENS: 0.0}), "tokens is 0.0", id="nothing planned"
        ),
        pytest.param(
            lambda: AnyTimeLooks({Metric.TOKENS: math.nan}), "tokens is nan", id="NaN planned"
        ),
        pytest.param(lambda: mixture_multiplier(0.0, 1.0, 0.05), "information is 0", id="none"),
        pytest.param(lambda: mixture_multiplier(1.0, 1.0, 0.5), "alpha is 0.5", id="alpha"),
    ],
)
def test_impossible_looks_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
