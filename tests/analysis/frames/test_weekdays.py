"""Matched days: days before a wave with the weekdays of the wave, in one proportion."""

import dataclasses
import datetime as dt
from collections import Counter

import pytest

from guardwave.analysis.frames.baseline import Baseline, MatchedEvidence, matched_days
from guardwave.analysis.gate.verdict import evaluate
from guardwave.reducer.vocabulary import Metric
from tests.support.frames.periods import WARN_POLICY, WEEK_BEFORE, baseline_of, warn_wave
from tests.support.frames.samples import days, simulated_totals


def test_a_week_with_a_gap_is_compared_on_the_weekdays_that_both_sides_have():
    gap = tuple(
        dataclasses.replace(day, is_complete=place != 2, reason="an outage" if place == 2 else None)
        for place, day in enumerate(days(8))
    )
    evidence = warn_wave(days=gap)
    used = tuple(day.day for day in gap if day.is_complete)
    matched = matched_days(used, WEEK_BEFORE)
    assert matched is not None
    assert (len(matched.after), len(matched.before), matched.weekdays) == (6, 6, 6)
    whole = evidence.baseline
    part = simulated_totals(treated=600, control=0, seed=21).assign(cohort="warned")
    cut = MatchedEvidence(matched, part, None, Baseline(whole.owners, matched.before))

    for result in evaluate(dataclasses.replace(evidence, matched=cut), WARN_POLICY).metrics:
        assert result.reason is None
        assert (
            "before/after on 6 of 7 days and 6 of 7 before, each of 6 weekdays in one proportion"
            in result.sentence
        )
        assert result.figures.treated.trials == int(part["started"].sum()) or (
            result.figures.metric is Metric.COMPLETION
        )


DAY = dt.date(2026, 11, 16)


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        pytest.param(range(7), range(-7, 0), (7, 7), id="a week"),
        pytest.param(range(14), range(-7, 0), (14, 7), id="two weeks"),
        pytest.param([0, 1, 3, 4, 5, 6, 7], range(-7, 0), (6, 6), id="a day lost, another twice"),
        pytest.param(range(10), range(-7, 0), (7, 7), id="ten days are cut to a week"),
        pytest.param([*range(2), *range(3, 15)], range(-7, 0), (12, 6), id="two weeks, a day lost"),
        pytest.param(range(7), [-9, -8, -6, -5, -4, -3, -2], (6, 6), id="a day lost before"),
        pytest.param(range(4), range(-7, 0), None, id="four days"),
        pytest.param(range(7), [], None, id="no day before"),
    ],
)
def test_weekdays_are_matched_in_one_proportion(after, before, expected):
    days_after, days_before = (
        tuple(DAY + dt.timedelta(days=place) for place in places) for places in (after, before)
    )

    found = matched_days(days_after, days_before)

    assert (None if found is None else (len(found.after), len(found.before))) == expected
    if found is not None:
        counts = [Counter(day.weekday() for day in side) for side in found]
        times = len(found.after) // len(found.before)
        assert counts[0] == {weekday: times * count for weekday, count in counts[1].items()}


def test_a_baseline_of_other_days_than_the_matched_ones_is_refused():
    matched = matched_days(tuple(DAY + dt.timedelta(days=place) for place in range(6)), WEEK_BEFORE)
    assert matched is not None
    totals = simulated_totals(treated=9, control=0)

    with pytest.raises(ValueError, match="over 7 days and not over the 6 matched ones"):
        MatchedEvidence(matched, totals, None, baseline_of(totals))
