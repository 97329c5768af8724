"""Days of a column: the forms that mean one day, and values that might mean another."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.owner_days import days_of, parse_days

DAY = dt.date(2026, 11, 24)
WEST = dt.timezone(dt.timedelta(hours=-8))


def column(*cells: object) -> pd.DataFrame:
    """Return a frame of days in the type that pandas would give them."""
    return pd.DataFrame({"day": pd.Series(list(cells))})


def as_they_are(*cells: object) -> pd.DataFrame:
    return pd.DataFrame({"day": pd.Series(list(cells), dtype=object)})


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(column("2026-11-24"), id="ISO text"),
        pytest.param(column(DAY), id="a date"),
        pytest.param(column(pd.Timestamp("2026-11-24")), id="midnight"),
        pytest.param(column(pd.Timestamp("2026-11-24", tz="UTC")), id="midnight in UTC"),
        pytest.param(column(pd.Timestamp("2026-11-23 16:00", tz=WEST)), id="UTC's midnight"),
        pytest.param(column(pd.Period("2026-11-24", "D")), id="a daily period"),
        pytest.param(pd.DataFrame({"day": pd.Categorical(["2026-11-24"])}), id="a category"),
        pytest.param(as_they_are(np.datetime64("2026-11-24")), id="numpy's own"),
        pytest.param(as_they_are(dt.datetime(2026, 11, 24)), id="a datetime"),  # noqa: DTZ001
        pytest.param(as_they_are("2026-11-24", DAY).tail(1), id="mixed with text"),
    ],
)
def test_every_form_that_means_a_single_day_is_accepted(frame):
    (day,) = days_of(frame)
    assert (type(day), day) == (dt.date, DAY)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        pytest.param(column(20261124), "20261124 is no day", id="a number like a date"),
        pytest.param(column(1795478400), "1795478400 is no day", id="seconds since 1970"),
        pytest.param(column(1), "1 is no day", id="a day's number"),
        pytest.param(column(1.5), "1.5 is no day", id="a float"),
        pytest.param(column(True), "True is no day", id="a flag"),
        pytest.param(column("01.12.2026"), "'01.12.2026' is no day", id="the day first"),
        pytest.param(column("12/01/2026"), "'12/01/2026' is no day", id="the month first"),
        pytest.param(column("20261124"), "'20261124' is no day", id="without dashes"),
        pytest.param(column("2026-W48-2"), "'2026-W48-2' is no day", id="a week"),
        pytest.param(column("2026-02-30"), "'2026-02-30' is no day", id="not in the calendar"),
        pytest.param(column("2026-11-24T09:00+09:00"), "is no day", id="text with a zone"),
        pytest.param(column("\uff12026-11-24"), "is no day", id="wide digits"),
        pytest.param(column(None), "is no day", id="nothing"),
        pytest.param(column(pd.NaT), "NaT is no day", id="no time"),
        pytest.param(column(pd.Timedelta(1, "D")), "is no day", id="a duration"),
        pytest.param(column(pd.Period("2026-11", "M")), "is no day", id="a month"),
        pytest.param(as_they_are(["2026-11-24"]), "is no day", id="a list"),
        pytest.param(
            column(pd.Timestamp("2026-11-24 08:30")),
            r"is no midnight in UTC; .*floor\('D'\)",
            id="t",
        ),
        pytest.param(
            column(pd.Timestamp("2026-11-24", tz=WEST)), r"tz_convert\('UTC'\)", id="far midnight"
        ),
    ],
)
def test_a_value_that_might_mean_another_day_is_refused_with_row_and_remedy(frame, words):
    frame = frame.set_axis(["here"])
    with pytest.raises(ValueError, match=f"column 'day', row here: .*{words}"):
        days_of(frame)


def test_the_first_wrong_row_is_named_among_good_ones():
    with pytest.raises(
        ValueError, match="row 2: '24 Nov' is no day; give an ISO date, such as 202"
    ):
        days_of(column("2026-11-24", "2026-11-25", "24 Nov", "nothing"))


@given(st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1)), min_size=1, max_size=20))
def test_text_dates_and_timestamps_are_the_same_days(days):
    texts = column(*(day.isoformat() for day in days))
    stamps = column(*map(pd.Timestamp, days))
    assert list(days_of(texts)) == list(days_of(stamps)) == list(days_of(column(*days))) == days


@given(st.lists(st.dates(), min_size=1, max_size=20))
def test_listed_days_are_parsed_in_order_and_without_repetition(days):
    assert parse_days([*days, days[0].isoformat()]) == tuple(sorted(set(days)))
