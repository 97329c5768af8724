"""Complete days: the days that count, and the reason in words for the others."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.days import (
    SEAL_DELAY,
    DayFloors,
    NoteMark,
    SealedDay,
    complete_days,
    day_notes,
    day_start,
    is_whole,
    notes_touching,
    why_incomplete,
)
from guardwave.reducer.rollout.state import EvidenceSource

DAY = date(2026, 3, 9)
GOOD = SealedDay(
    day=DAY,
    revision=1,
    hourly_prompts=(30,) * 24,
    longest_outage_seconds=61.0,
    ended=700,
    covered=700,
    records=9000,
    conforming=9000,
)

FLOORS = DayFloors(contract=0.99, coverage=0.99)
BY_COUNTERS = replace(FLOORS, coverage=None)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def before(days: int, hourly: tuple[int, ...] = (20,) * 24) -> list[SealedDay]:
    return [
        replace(GOOD, day=DAY - timedelta(n), hourly_prompts=hourly) for n in range(1, days + 1)
    ]


def silent_at(hour: int, prompts: int = 0) -> SealedDay:
    return replace(GOOD, hourly_prompts=tuple(prompts if h == hour else 30 for h in range(24)))


def why(sealed: SealedDay | None, previous=()) -> str | None:
    return why_incomplete(sealed, previous, floors=FLOORS)


@pytest.mark.parametrize(
    ("opened", "closed", "whole"),
    [
        pytest.param(at(9), None, True, id="opened at midnight"),
        pytest.param(at(9) + timedelta(microseconds=1), None, False, id="opened just after it"),
        pytest.param(at(8, 23), None, True, id="opened the evening before"),
        pytest.param(at(9, 12), None, False, id="opened at noon"),
        pytest.param(at(10), None, False, id="opened on the next day"),
        pytest.param(at(8), at(10), True, id="closed at the midnight that ends it"),
        pytest.param(at(8), at(10) - timedelta(microseconds=1), False, id="closed just before"),
        pytest.param(at(1), at(8), False, id="closed before it"),
        pytest.param(
            datetime(2026, 3, 9, 1, tzinfo=timezone(timedelta(hours=2))),
            None,
            True,
            id="opened after midnight elsewhere, before midnight in UTC",
        ),
    ],
)
def test_a_day_counts_only_when_it_lies_wholly_inside_the_wave(opened, closed, whole):
    assert is_whole(DAY, opened, closed) is whole


@given(st.dates(date(2020, 1, 1), date(2030, 1, 1)), st.timedeltas(timedelta(0), timedelta(30)))
def test_a_wave_of_n_days_has_n_or_n_minus_1_whole_days(first, length):
    opened = day_start(first) + timedelta(hours=7)
    closed = opened + length
    around = (first + timedelta(n) for n in range(-1, 33))
    whole = sum(is_whole(day, opened, closed) for day in around)
    assert length.days - 1 <= whole <= length.days


def test_a_day_begins_at_midnight_utc_and_is_sealed_two_hours_after_its_end():
    assert day_start(DAY) == at(9)
    assert day_start(DAY + timedelta(1)) + SEAL_DELAY == at(10, 2)


@pytest.mark.parametrize(
    ("sealed", "words"),
    [
        pytest.param(None, "it is not sealed yet", id="not sealed"),
        pytest.param(
            replace(GOOD, longest_outage_seconds=None),
            "no heartbeat shows that intake was up",
            id="no heartbeat",
        ),
        pytest.param(
            replace(GOOD, longest_outage_seconds=301.0),
            "intake was down for 301 s, more than 300 s",
            id="an outage of over 5 minutes",
        ),
        pytest.param(
            replace(GOOD, longest_outage_seconds=float("nan")),
            "intake was down for nan s, more than 300 s",
            id="an outage that is not a number",
        ),
        pytest.param(
            silent_at(14),
            "no prompt started from 14:00 to 15:00, unlike on each of the 7 days before",
            id="a silent hour",
        ),
        pytest.param(
            silent_at(23),
            "no prompt started from 23:00 to 24:00, unlike on each of the 7 days before",
            id="a silent last hour",
        ),
        pytest.param(replace(GOOD, ended=0, covered=0), "no prompt ended on it", id="no traffic"),
        pytest.param(
            replace(GOOD, ended=0, covered=0, records=0, conforming=0),
            "no prompt ended on it",
            id="no record",
        ),
        pytest.param(
            replace(GOOD, conforming=8_909),
            "8,909 of 9,000 records met the telemetry contract, 99 % is asked for",
            id="records that met the contract just under 99 %",
        ),
        pytest.param(
            replace(GOOD, conforming=8_909, covered=0),
            "8,909 of 9,000 records met the telemetry contract, 99 % is asked for",
            id="records off the contract, and what follows from it",
        ),
        pytest.param(
            replace(GOOD, covered=692),
            "telemetry covered 692 of 700 ended prompts",
            id="coverage just under 99 %",
        ),
        pytest.param(
            replace(GOOD, untold=8),
            "counters show 8 prompts that no event reports, besides 700 that ended: events were "
            "lost on the way",
            id="prompts that only counters show",
        ),
        pytest.param(
            replace(GOOD, unnumbered=12, uncounted=12),
            "coverage is not known: the guard's counter shows 0 of 12 transitions that have no "
            "sequence number",
            id="records, and no counter that they could be compared with",
        ),
        pytest.param(
            replace(GOOD, unnumbered=200, uncounted=3),
            "coverage is not known: the guard's counter shows 197 of 200 transitions that have no "
            "sequence number",
            id="a counter that shows less than 99 % of the records",
        ),
        pytest.param(
            replace(GOOD, unwitnessed=4),
            "coverage is not known: 4 ended prompts called tools on hosts that number no "
            "transitions and sent no counter",
            id="calls, and neither records nor a counter",
        ),
    ],
)
def test_a_day_that_does_not_count_has_a_reason(sealed, words):
    assert why(sealed, before(7)) == words


@pytest.mark.parametrize(
    "sealed",
    [
        pytest.param(GOOD, id="nothing amiss"),
        pytest.param(replace(GOOD, longest_outage_seconds=300.0), id="an outage of 5 minutes"),
        pytest.param(replace(GOOD, covered=693), id="coverage of exactly 99 %"),
        pytest.param(replace(GOOD, conforming=8_910), id="a contract met by exactly 99 %"),
        pytest.param(silent_at(14, prompts=1), id="one prompt in an hour"),
        pytest.param(replace(GOOD, unnumbered=200, uncounted=2), id="99 % of the records counted"),
        pytest.param(replace(GOOD, untold=7), id="99 % of the prompts reported by events"),
    ],
)
def test_a_day_at_the_edge_counts(sealed):
    assert why(sealed, before(7)) is None


@pytest.mark.parametrize(
    "previous",
    [
        pytest.param([], id="the first day"),
        pytest.param(before(6), id="6 days before it"),
        pytest.param([*before(6), before(6)[0]], id="6 days, one of them in two revisions"),
        pytest.param(before(8)[1:], id="7 days, the last one missing"),
        pytest.param([*before(6), replace(GOOD, day=DAY)], id="6 days and itself"),
        pytest.param([*before(6), *before(7, (19,) * 24)[6:]], id="19 prompts on one of them"),
    ],
)
def test_a_silent_hour_is_not_judged_without_seven_busy_days_before_it(previous):
    assert why(silent_at(14), previous) is None


def test_days_older_than_the_seven_before_do_not_excuse_a_silent_hour():
    quiet_long_ago = replace(GOOD, day=DAY - timedelta(8), hourly_prompts=(0,) * 24)
    assert why(silent_at(14), [quiet_long_ago, *before(7)]) is not None


@given(st.permutations(before(7)))
def test_the_days_before_may_come_in_any_order(previous):
    assert why(silent_at(3), previous) == why(silent_at(3), before(7))


def test_complete_days_are_in_order_whatever_their_wave():
    down = replace(GOOD, day=DAY - timedelta(3), longest_outage_seconds=301.0)
    found = complete_days([GOOD, down, *before(2)], floors=FLOORS)
    assert found == tuple(DAY - timedelta(days=back) for back in (2, 1, 0))


def test_a_silent_hour_is_seen_by_the_days_beside_it():
    days = [silent_at(14), *before(7, (30,) * 24)]
    assert DAY not in complete_days(days, floors=FLOORS)
    assert DAY in complete_days(days[:-1], floors=FLOORS)


SHORT = replace(GOOD, covered=0, smeared=3, overflowed=1)


def test_a_day_whose_counters_lost_their_attributes_counts_by_events_alone():
    by_counters = why_incomplete(SHORT, before(7), floors=BY_COUNTERS)
    assert by_counters == "1 point came without attributes, beyond the cardinality limit of an SDK"
    assert why(replace(SHORT, covered=700), before(7)) is None


def test_a_day_off_the_contract_counts_by_no_evidence():
    off = replace(GOOD, conforming=8_909)
    assert why_incomplete(off, before(7), floors=BY_COUNTERS) == why(off, before(7))
    assert "of 9,000 records" in (why(off, before(7)) or "")


def test_a_stricter_contract_is_asked_of_each_day():
    stricter = replace(FLOORS, contract=0.995)
    reason = why_incomplete(replace(GOOD, conforming=8_954), before(7), floors=stricter)
    assert reason == "8,954 of 9,000 records met the telemetry contract, 99.5 % is asked for"
    assert why_incomplete(replace(GOOD, conforming=8_955), before(7), floors=stricter) is None


def test_records_without_a_counter_do_not_matter_where_counters_are_the_evidence():
    uncounted = replace(GOOD, unnumbered=12, uncounted=12, unwitnessed=1)
    assert why_incomplete(uncounted, before(7), floors=BY_COUNTERS) is None


def test_a_smeared_day_counts_and_has_a_note():
    smeared = replace(GOOD, smeared=1200)
    assert why_incomplete(smeared, before(7), floors=BY_COUNTERS) is None
    (note,) = day_notes(smeared)
    assert note.mark is NoteMark.SMEARED
    assert note.sentence.startswith("1,200 points of counters cross midnight")


def test_there_is_a_note_for_each_inexact_count():
    assert day_notes(GOOD) == ()
    assert [note.mark for note in day_notes(replace(SHORT, untold=1))] == list(NoteMark)


EVENTS, COUNTERS = EvidenceSource


@pytest.mark.parametrize(
    ("mark", "source", "touches"),
    [
        pytest.param(NoteMark.SMEARED, EVENTS, False, id="counts across midnight, by events"),
        pytest.param(NoteMark.SMEARED, COUNTERS, True, id="counts across midnight, by counters"),
        pytest.param(NoteMark.OVERFLOWED, EVENTS, False, id="counts of no attributes, by events"),
        pytest.param(
            NoteMark.OVERFLOWED, COUNTERS, True, id="counts of no attributes, by counters"
        ),
        pytest.param(NoteMark.UNTOLD, EVENTS, True, id="prompts of no event, by events"),
        pytest.param(NoteMark.UNTOLD, COUNTERS, False, id="prompts of no event, by counters"),
    ],
)
def test_a_note_touches_the_evidence_that_is_not_exact(mark, source, touches):
    every = day_notes(replace(SHORT, untold=1))
    assert (mark in {note.mark for note in notes_touching(source, every)}) is touches


def test_notes_that_touch_stay_whole_and_in_their_order():
    every = day_notes(replace(SHORT, untold=1))
    smeared, overflowed, unreported = every
    assert notes_touching(COUNTERS, every) == (smeared, overflowed)
    assert notes_touching(EVENTS, every) == (unreported,)
