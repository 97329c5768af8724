"""A clock that is an hour off, here or at a host: nothing counts twice, or is lost in silence."""

from datetime import timedelta

import pytest

from reducer.vocabulary import Mode
from tests.control_plane.hosts import Calendar, Host, Prompt, assigned, logs, partial_of
from tests.control_plane.worlds import ENVIRONMENT, GUARD, NOW, context_over, world_in

HOUR = timedelta(hours=1)


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def host(store, calendar):
    return Host(world_in(context_over(store, clock=calendar.clock), Mode.SHADOW).context)


def request_at(host, at):
    prompt = Prompt("p-1", [assigned(host.context, "owner-1")[1]], at)
    return logs(prompt.events())


def started(host) -> int:
    rows = host.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [NOW.date()])
    assert all(row.started == row.ended == row.covered for row in rows)
    return sum(row.started for row in rows)


def test_while_this_clock_is_slow_records_are_refused_with_a_reason_and_later_taken_in_once(
    host, calendar
):
    request = request_at(host, NOW - timedelta(minutes=1))
    calendar.now = NOW - HOUR
    rejected, message = partial_of(host.send(request))
    assert rejected == 2
    assert message.startswith("future")
    assert started(host) == 0
    assert host.context.evidence.health(ENVIRONMENT)["refused:future"] == 2

    calendar.now = NOW
    for _ in range(2):
        assert partial_of(host.send(request)) == (0, "")
    assert started(host) == 1


def test_records_taken_in_while_this_clock_was_fast_are_the_same_when_it_is_right_again(
    host, calendar
):
    request = request_at(host, NOW - timedelta(minutes=1))
    for off in (HOUR, timedelta(0)):
        calendar.now = NOW + off
        assert partial_of(host.send(request)) == (0, "")
    assert started(host) == 1


def test_a_host_whose_clock_is_fast_is_told_and_one_whose_clock_is_slow_is_shown(host):
    rejected, message = partial_of(host.send(request_at(host, NOW + HOUR)))
    assert (rejected, message.partition(":")[0]) == (2, "future")

    assert partial_of(host.send(request_at(host, NOW - HOUR))) == (0, "")
    assert started(host) == 1
    (source,) = (
        each for each in host.context.intake.sources(ENVIRONMENT) if "ahead_s" in each.counts
    )
    assert source.counts["ahead_s"] == -HOUR.total_seconds() + 30
