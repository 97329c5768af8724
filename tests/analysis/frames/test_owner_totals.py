import datetime as dt

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.frames.owner_totals import COUNTS, checked_totals, outcomes_of, owner_totals
from guardwave.reducer.vocabulary import Cohort, Metric
from tests.support.frames.samples import PAIR, simulated_totals


@pytest.fixture
def totals():
    return simulated_totals(treated=3, control=5)


def test_good_totals_come_back_sorted_by_owner_whatever_their_order(totals):
    shuffled = totals.sample(frac=1.0, random_state=1)

    pd.testing.assert_frame_equal(checked_totals(shuffled), checked_totals(totals))


def test_counts_may_be_floats_or_text(totals):
    as_text = totals.astype(dict.fromkeys(COUNTS, str))
    as_floats = totals.astype(dict.fromkeys(COUNTS, float))

    pd.testing.assert_frame_equal(checked_totals(as_text), checked_totals(totals))
    pd.testing.assert_frame_equal(checked_totals(as_floats), checked_totals(totals))


@pytest.mark.parametrize("column", ["owner", "cohort", *COUNTS])
def test_a_missing_column_is_named(totals, column):
    with pytest.raises(ValueError, match=f"lacks the column '{column}'"):
        checked_totals(totals.drop(columns=column))


@pytest.mark.parametrize("column", COUNTS)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.nan, id="not a number"),
        pytest.param(np.inf, id="infinite"),
        pytest.param(-1.0, id="negative"),
        pytest.param(1.5, id="a fraction"),
        pytest.param(1e300, id="larger than a float counts exactly"),
        pytest.param("many", id="a word"),
        pytest.param(None, id="nothing"),
    ],
)
def test_an_impossible_count_is_refused_by_column_row_and_value(totals, column, value):
    totals = totals.astype({column: object})
    totals.loc[4, column] = value

    with pytest.raises(ValueError, match=f"column '{column}', row 4: .* is no count"):
        checked_totals(totals)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        pytest.param("cohort", "treated", "column 'cohort', row 2: 'treated' is none", id="cohort"),
        pytest.param("owner", "", "column 'owner', row 2: '' is no owner", id="unnamed owner"),
        pytest.param("owner", 7, "column 'owner', row 2: 7 is no owner", id="owner by number"),
        pytest.param("owner", "o00001", "'o00001' is there twice", id="owner there twice"),
        pytest.param("completed", 81, "row 2: .*exceed the prompts started", id="too many ends"),
        pytest.param("disrupted", 81, "row 2: .*exceeds the prompts started", id="disruptions"),
    ],
)
def test_a_contradiction_is_refused_with_its_place(totals, column, value, message):
    totals = totals.astype({column: object})
    totals.loc[2, column] = value

    with pytest.raises(ValueError, match=message):
        checked_totals(totals)


def test_cancelled_and_completed_together_may_not_exceed_started(totals):
    totals.loc[0, ["started", "completed", "cancelled"]] = [10, 6, 5]

    with pytest.raises(ValueError, match=r"row 0: .*6.* and cancelled together exceed"):
        checked_totals(totals)


def test_owner_days_are_summed_to_owners():
    day = dt.date(2026, 11, 20)
    columns = ["owner", "cohort", "day", *COUNTS]
    owner_days = pd.DataFrame(
        [
            ["b", Cohort.CONTROL, day, 4, 0, 4, 1, 400, 20],
            ["a", Cohort.ENFORCED, day, 3, 1, 2, 0, 300, 15],
            ["b", Cohort.CONTROL, day + dt.timedelta(days=1), 6, 2, 3, 0, 600, 30],
        ],
        columns=columns,
    )

    summed = owner_totals(owner_days)

    assert summed.to_numpy().tolist() == [
        ["a", "enforced", 3, 1, 2, 0, 300, 15],
        ["b", "control", 10, 2, 7, 1, 1000, 50],
    ]


def test_an_owner_seen_in_two_cohorts_is_refused(totals):
    days = totals.assign(day=dt.date(2026, 11, 20))
    moved = days.head(1).assign(cohort="control")

    owner = totals["owner"].iloc[0]
    words = rf"'cohort', row 8: 'control' is a second cohort of the owner '{owner}', .* in row 0;"
    with pytest.raises(ValueError, match=words):
        owner_totals(pd.concat([days, moved], ignore_index=True))


def test_a_row_is_named_by_the_index_of_its_own_frame(totals):
    named = totals.set_axis([f"line {place}" for place in range(len(totals))])
    named.loc["line 6", "completed"] = 10**6

    with pytest.raises(ValueError, match="column 'completed', row line 6: 1000000 and cancelled"):
        checked_totals(named)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"completed": 99}, "'completed', rows of the owner '{}' together: ", id="ends"
        ),
        pytest.param(
            {"disrupted": 99}, "'disrupted', rows of the owner '{}' together: ", id="disr"
        ),
        pytest.param(
            {"tokens": 2**53 - 1},
            "'tokens', rows of the owner '{}' together: 1801",
            id="beyond 2^53",
        ),
    ],
)
def test_contradicting_sums_are_refused_by_owner_and_not_by_row(totals, changes, words):
    days = totals.assign(day=dt.date(2026, 11, 20))
    more = days.assign(day=dt.date(2026, 11, 21))
    for column, value in changes.items():
        days.loc[2, column] = more.loc[2, column] = value

    with pytest.raises(ValueError, match=words.format(totals["owner"].iloc[2])):
        owner_totals(pd.concat([days, more], ignore_index=True))


def test_a_sum_that_wraps_around_64_bits_is_refused_too(totals):
    days = [
        totals.head(1).assign(day=dt.date(2020, 1, 1) + dt.timedelta(days=place), tokens=2**53 - 1)
        for place in range(2**11)
    ]
    with pytest.raises(ValueError, match=r"'tokens', rows of the owner .* is no count"):
        owner_totals(pd.concat(days, ignore_index=True))


def test_owner_days_need_a_day(totals):
    with pytest.raises(ValueError, match="lacks the column 'day'"):
        owner_totals(totals)


def test_a_frame_without_owners_is_accepted(totals):
    assert checked_totals(totals.head(0)).empty
    assert owner_totals(totals.head(0).assign(day=[])).empty
    assert checked_totals(pd.DataFrame(columns=list(totals.columns))).empty


@pytest.mark.parametrize(
    ("metric", "harm", "trials"),
    [
        pytest.param(Metric.COMPLETION, 2, 8, id="completion leaves cancelled prompts out"),
        pytest.param(Metric.DISRUPTION, 1, 10, id="disruption"),
        pytest.param(Metric.CANCELLATION, 2, 10, id="cancellation"),
        pytest.param(Metric.TOKENS, 500, 10, id="tokens"),
        pytest.param(Metric.TURNS, 30, 10, id="turns"),
    ],
)
def test_each_metric_has_its_own_harm_and_trials(metric, harm, trials):
    row = ["a", "enforced", 10, 2, 6, 1, 500, 30]
    frame = pd.DataFrame([row], columns=["owner", "cohort", *COUNTS])

    own = outcomes_of(checked_totals(frame), metric, PAIR)

    assert (own.harm.tolist(), own.trials.tolist()) == ([harm], [trials])


def test_an_owner_without_a_trial_is_left_out():
    rows = [["a", "enforced", 2, 2, 0, 0, 9, 1], ["b", "control", 0, 0, 0, 0, 0, 0]]
    frame = checked_totals(pd.DataFrame(rows, columns=["owner", "cohort", *COUNTS]))

    assert outcomes_of(frame, Metric.COMPLETION, PAIR).owners == ()
    assert outcomes_of(frame, Metric.DISRUPTION, PAIR).owners == ("a",)


def test_a_metric_that_totals_do_not_hold_is_refused(totals):
    with pytest.raises(ValueError, match="hold no latency_p95"):
        outcomes_of(checked_totals(totals), Metric.LATENCY_P95, PAIR)
