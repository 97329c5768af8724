"""Lost prompts: no end within 24 hours, taken back by a late end."""

from datetime import date, timedelta

import pytest

from guardwave.control_plane.jobs.worker import Worker
from guardwave.reducer.rollout.days import day_start
from tests.support.hosts import Prompt, assignment_for, logs, partial_of
from tests.support.lives import HOLDER, Life
from tests.support.worlds import ENVIRONMENT, GUARD

DAY = date(2026, 11, 2)
NOON = day_start(DAY) + timedelta(hours=12)


@pytest.fixture
def life(store):
    found = Life.begin(store)
    found.calendar.now = NOON + timedelta(minutes=1)
    return found


@pytest.fixture
def prompt(life):
    return Prompt("p-1", [assignment_for(life.context, life.owners[0])[1]], NOON)


def work_at(life: Life, hours: float) -> None:
    life.calendar.now = NOON + timedelta(hours=hours)
    Worker(life.context, holder=HOLDER).run_once()


def row(life: Life):
    (found,) = life.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [DAY])
    return found


def test_a_prompt_without_an_end_is_lost_after_24_hours(life, prompt):
    life.host.send(logs([prompt.start()]))
    work_at(life, 23.9)
    assert (row(life).started, row(life).lost) == (1, 0)
    work_at(life, 24.1)
    assert (row(life).started, row(life).lost, row(life).ended) == (1, 1, 0)
    work_at(life, 30)
    assert row(life).lost == 1


def test_an_end_that_comes_late_finds_the_lost_prompt(life, prompt):
    life.host.send(logs([prompt.start()]))
    work_at(life, 25)
    assert partial_of(life.host.send(logs([prompt.end()]))) == (0, "")
    found = row(life)
    assert (found.started, found.lost, found.ended, found.completed) == (1, 0, 1, 1)


def test_a_prompt_that_ended_in_time_is_never_lost(life, prompt):
    life.host.send_prompts(prompt)
    work_at(life, 30)
    assert (row(life).lost, row(life).ended) == (0, 1)
