"""Owner-days: a frame is of one wave, has each owner-day once, and errors name the remedy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from guardwave import analysis
from tests.support.frames.samples import POLICY, over_days, simulated_totals

TREATMENT: dict[str, Any] = {
    "environment": "internal",
    "guard": "identical_call",
    "wave": 3,
    "mode": "enforce",
    "version": "1.0.0",
    "source": "events",
}


@pytest.fixture
def frame():
    return over_days(simulated_totals(treated=2, control=4), 7).assign(**TREATMENT)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        pytest.param("environment", "public-cloud", "'public-cloud'", id="environments"),
        pytest.param("guard", "duplicate_call_id", "'duplicate_call_id'", id="guards"),
        pytest.param("wave", 2, "2", id="waves"),
        pytest.param("source", "counters", "'counters'", id="sources"),
    ],
)
def test_two_environments_guards_waves_or_sources_are_refused(frame, column, value, shown):
    other = frame.assign(**{column: value})
    first = TREATMENT[column]
    words = (
        f"column '{column}', row 42: {shown} is another {column} than {first!r} of row 0, and "
        f"these are never added up; .*frame\\[frame\\['{column}'\\] == {first!r}\\]"
    )
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(pd.concat([frame, other], ignore_index=True), POLICY)


@pytest.mark.parametrize("column", ["environment", "guard", "wave", "source"])
def test_a_row_without_a_value_is_refused_where_others_have_one(frame, column):
    frame = frame.astype({column: object})
    frame.loc[5, column] = None
    with pytest.raises(ValueError, match=f"column '{column}', row 5: (None|nan) is"):
        analysis.evaluate(frame, POLICY)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        pytest.param("environment", "", "'' is no environment; give its name", id="unnamed"),
        pytest.param("guard", 7, "7 is no guard; give its name", id="a number as guard"),
        pytest.param("wave", "third", "'third' is no count", id="a word as wave"),
        pytest.param("source", "logs", "'logs' is none of events, counters", id="source"),
        pytest.param("mode", "block", "'block' is none of off, shadow, warn, enforce", id="mode"),
        pytest.param("cohort", "arm-b", "'arm-b' is none of", id="cohort"),
        pytest.param("day", "soon", "'soon' is no day", id="day"),
        pytest.param("started", -1, "-1 is no count", id="negative"),
        pytest.param("owner", "", "'' is no owner", id="owner"),
    ],
)
def test_a_wrong_cell_is_refused_by_column_row_and_value(frame, column, value, words):
    with pytest.raises(ValueError, match=f"column '{column}', row 0: {words}"):
        analysis.evaluate(frame.assign(**{column: value}), POLICY)


@pytest.mark.parametrize(
    ("kept", "remedy"),
    [
        pytest.param(["mode", "version"], "already; leave one of them out$", id="both columns"),
        pytest.param(
            ["version"], "already; .* or keep the column mode, which may tell", id="no mode"
        ),
        pytest.param(
            [], "already; .* or keep the column version and mode, which may tell", id="neither"
        ),
    ],
)
def test_an_owner_day_that_is_there_twice_is_refused(frame, kept, remedy):
    dropped = [column for column in ("mode", "version") if column not in kept]
    frame = frame.drop(columns=dropped)
    owner = frame["owner"].iloc[0]
    words = (
        rf"row 0 \(at place 42\): '{owner}' has its owner-day of 2026-11-20 in row 0 \(at place 0\)"
    )
    with pytest.raises(ValueError, match=f"column 'owner', {words} {remedy}"):
        analysis.evaluate(pd.concat([frame, frame]), POLICY)


def test_a_day_written_in_two_ways_is_the_same_owner_day(frame):
    texts = frame.assign(day=frame["day"].astype(str))
    with pytest.raises(ValueError, match=r"row 42: .* has its owner-day of 2026-11-20 in row 0"):
        analysis.evaluate(pd.concat([frame, texts], ignore_index=True), POLICY)


@pytest.mark.parametrize(
    ("column", "value"),
    [pytest.param("mode", "shadow", id="mode"), pytest.param("version", "2.0.0", id="version")],
)
def test_an_owner_has_one_row_for_each_treatment(frame, column, value):
    other = frame.assign(**{column: value})
    both = analysis.evidence_of(pd.concat([frame, other], ignore_index=True))
    once = analysis.evidence_of(frame)
    assert (both.owners["started"] == 2 * once.owners["started"]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"started": 7, "completed": 11},
            "column 'completed', row 3: 11 and cancelled together exceed the prompts started, 7;",
            id="ends",
        ),
        pytest.param(
            {"started": 7, "completed": 0, "cancelled": 0, "disrupted": 8},
            "column 'disrupted', row 3: 8 exceeds the prompts started, 7;",
            id="disruptions",
        ),
        pytest.param(
            {"ended": 7, "covered": 8}, "'covered', row 3: 8 exceeds the prompts ended, 7", id="cov"
        ),
        pytest.param(
            {"started": 7, "completed": 0, "cancelled": 0, "disrupted": 0, "off_pin": 8},
            "column 'off_pin', row 3: 8 exceeds the prompts started, 7",
            id="off pin",
        ),
    ],
)
def test_a_contradiction_within_one_row_is_refused_though_other_days_have_slack(
    frame, changes, words
):
    frame = frame.assign(ended=frame["started"], covered=0, off_pin=0, cancelled=0)
    for column, value in changes.items():
        frame.loc[3, column] = value
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(frame, POLICY)


def test_by_counters_a_row_may_have_more_ends_than_starts(frame):
    frame = frame.assign(source="counters")
    frame.loc[3, "completed"] = frame.loc[3, "started"] + 1
    owner = frame.loc[3, "owner"]
    found = analysis.evidence_of(frame).owners.set_index("owner").loc[owner]
    assert found["completed"] == frame.loc[frame["owner"] == owner, "completed"].sum()


def test_an_owner_in_two_cohorts_is_refused_by_its_own_row(frame):
    frame.loc[9, "cohort"] = "control"
    assert frame.loc[3, "cohort"] == "control"
    frame.loc[7, "cohort"] = "control"
    owner = frame.loc[7, "owner"]
    words = (
        f"column 'cohort', row 7: 'control' is a second cohort of the owner '{owner}', .* row 1;"
    )
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(frame.drop(index=0), POLICY)


def test_cohorts_of_two_phases_are_refused(frame):
    frame.loc[5, "cohort"] = "holdback"
    words = (
        "column 'cohort', row 5: 'holdback' is no cohort of the phase that has 'enforced' of row 0"
    )
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(frame, POLICY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lambda frame: frame.drop(columns=["day", "turns"]),
            "lacks the columns 'day', 'turns'; it needs owner, cohort, day, started",
            id="columns that lack",
        ),
        pytest.param(
            lambda frame: frame.set_index(["owner", "day"]),
            r"call reset_index\(\)",
            id="in the index",
        ),
        pytest.param(
            lambda frame: pd.concat([frame, frame[["tokens"]]], axis=1),
            "column 'tokens' is there twice",
            id="a column twice",
        ),
        pytest.param(
            lambda frame: frame.set_axis(
                pd.MultiIndex.from_product([frame.columns, ["sum"]]), axis=1
            ),
            "columns have 2 levels",
            id="columns of groupby and agg",
        ),
        pytest.param(
            lambda frame: frame.assign(turns=frame["turns"] > 0), "True is no count", id="flags"
        ),
        pytest.param(
            lambda frame: frame.assign(tokens=frame["tokens"] + 1j), "is no count", id="complex"
        ),
        pytest.param(
            lambda frame: frame.assign(day=np.arange(len(frame))),
            "0 is no day",
            id="numbers as days",
        ),
    ],
)
def test_a_frame_of_the_wrong_shape_is_refused_in_words(frame, change, words):
    with pytest.raises(ValueError, match=words):
        analysis.evaluate(change(frame), POLICY)
