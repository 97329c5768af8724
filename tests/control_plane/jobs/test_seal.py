"""Sealed days: sealed in time, and counted only with telemetry that is proven complete."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from guardwave.control_plane.jobs.seal import seal_due_days
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.reducer.rollout.days import day_start
from tests.support.hosts import Prompt, assignment_for, logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT

FIRST = date(2026, 11, 2)
NEXT = FIRST + timedelta(days=1)


@pytest.fixture
def life(store):
    return Life.begin(store)


def reason(life: Life, day: date) -> str | None:
    views = {view.day: view for view in wave_days(life.context, ENVIRONMENT, life.wave)}
    return views[day].reason


def seal(life: Life, at) -> tuple[date, ...]:
    life.calendar.now = at
    return seal_due_days(life.context, ENVIRONMENT)


def sealed(life: Life, day: date):
    (found,) = life.context.evidence.sealed_days(ENVIRONMENT, [day])
    return found


def test_a_day_is_sealed_two_hours_after_its_end_and_once(life):
    two = day_start(NEXT) + timedelta(hours=2)
    assert FIRST not in seal(life, two - timedelta(seconds=1))
    assert FIRST in seal(life, two)
    assert seal(life, two) == ()


def test_a_whole_day_with_telemetry_is_complete(life):
    life.live(1)
    assert reason(life, FIRST) is None
    assert complete_days(wave_days(life.context, ENVIRONMENT, life.wave)) == (FIRST,)


def test_the_day_on_which_the_wave_began_does_not_count(life):
    life.live(1)
    assert reason(life, date(2026, 11, 1)) == "the wave began during it"


def test_a_day_that_is_running_does_not_count_yet(life):
    life.live(1)
    assert reason(life, NEXT) == "it is not over yet"
    life.calendar.now = day_start(NEXT) + timedelta(hours=25)
    assert reason(life, NEXT) == "it is not sealed yet"


def test_a_day_without_traffic_is_sealed_and_does_not_count(life):
    life.live(1, change=lambda _: None)
    assert sealed(life, FIRST).ended == 0
    assert reason(life, FIRST) == "no prompt ended on it"


@pytest.mark.parametrize(
    ("gap", "outage", "is_complete"),
    [
        pytest.param((0, 0), 20, True, id="none"),
        pytest.param((36_000, 36_000 + 280), 300, True, id="five minutes between two beats"),
        pytest.param((36_000, 36_000 + 300), 320, False, id="a beat more"),
        pytest.param((36_002, 36_002 + 418), 420, False, id="six minutes and 58 seconds"),
        pytest.param((84_960, 86_400), 1460, False, id="up to its end"),
        pytest.param((84_960, 86_401), 8660, False, id="until now"),
        pytest.param((0, 500), 500, False, id="from its start"),
    ],
)
def test_a_day_on_which_intake_was_down_does_not_count(life, gap, outage, is_complete):
    life.beat(FIRST, but=gap)
    life.calendar.now = day_start(NEXT) + timedelta(minutes=30)
    life.host.send_prompts(*life.prompts(FIRST))
    seal(life, day_start(NEXT) + timedelta(hours=2))
    assert (reason(life, FIRST) is None) is is_complete
    assert sealed(life, FIRST).longest_outage_seconds == outage


def test_a_day_without_any_heartbeat_does_not_count(life):
    life.calendar.now = day_start(NEXT) + timedelta(minutes=30)
    life.host.send_prompts(*life.prompts(FIRST))
    seal(life, day_start(NEXT) + timedelta(hours=2))
    assert sealed(life, FIRST).longest_outage_seconds is None
    assert reason(life, FIRST) == "no heartbeat shows that intake was up"


def test_a_busy_hour_that_falls_silent_spoils_its_day(store):
    life = Life.begin(store, owners=240)
    life.live(7)
    assert len(complete_days(wave_days(life.context, ENVIRONMENT, life.wave))) == 7
    silent = life.today
    life.live(1, change=lambda prompt: None if prompt.at.hour == 14 else prompt)
    assert reason(life, silent) == (
        "no prompt started from 14:00 to 15:00, unlike on each of the 7 days before"
    )


def test_a_day_with_gaps_in_its_transitions_does_not_count(life):
    life.live(1, change=lambda prompt: replace(prompt, decisions=("tracked",)))
    assert reason(life, FIRST) is None
    events = [
        event
        for prompt in life.prompts(NEXT)
        for event in replace(prompt, decisions=("tracked",)).events()
        if event.name != "agent.guard.transition"
    ]
    life.beat(NEXT)
    life.calendar.now = day_start(NEXT) + timedelta(hours=24, minutes=30)
    life.host.send(logs(events))
    seal(life, day_start(NEXT) + timedelta(hours=26))
    assert reason(life, NEXT) == "telemetry covered 0 of 48 ended prompts"


def test_a_late_record_raises_the_revision_of_a_sealed_day(life):
    life.live(1)
    before = sealed(life, FIRST)
    _, owner_id = assignment_for(life.context, life.owners[0])
    late = Prompt("late", [owner_id], day_start(FIRST) + timedelta(hours=20))
    life.host.send_prompts(late)
    after = sealed(life, FIRST)
    assert after.revision > before.revision
    assert after.ended == before.ended + 1
    life.host.send_prompts(late)
    assert sealed(life, FIRST) == after


def test_no_day_before_the_first_wave_is_sealed(life):
    assert min(seal(life, day_start(NEXT) + timedelta(hours=2))) == date(2026, 11, 1)


def test_a_control_plane_that_slept_for_days_seals_them_all_in_order(life):
    days = seal(life, day_start(FIRST) + timedelta(days=5))
    assert days == tuple(date(2026, 11, 1) + timedelta(days=at) for at in range(5))
    assert {reason(life, day) for day in days[1:]} == {"no heartbeat shows that intake was up"}


@pytest.mark.parametrize(
    "moved",
    [
        pytest.param(timedelta(days=1), id="a day ahead"),
        pytest.param(timedelta(days=3), id="three days ahead"),
        pytest.param(timedelta(days=-2), id="two days back"),
    ],
)
def test_moving_the_clock_adds_no_complete_day(life, moved):
    life.live(2)
    before = complete_days(wave_days(life.context, ENVIRONMENT, life.wave))
    assert len(before) == 2
    now = life.calendar.now
    seal(life, now + moved)
    assert set(complete_days(wave_days(life.context, ENVIRONMENT, life.wave))) <= set(before)
    seal(life, now)
    assert complete_days(wave_days(life.context, ENVIRONMENT, life.wave)) == before


def test_a_day_that_was_sealed_ahead_of_its_time_never_becomes_complete(life):
    life.live(1)
    now = life.calendar.now
    seal(life, now + timedelta(days=1))
    life.calendar.now = now
    life.live(1)
    assert "intake was down" in (reason(life, NEXT) or "")
    assert complete_days(wave_days(life.context, ENVIRONMENT, life.wave)) == (FIRST,)
