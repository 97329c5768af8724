"""Wrong clocks: an hour off, here or at a host, and nothing counts twice or is lost silently."""

from datetime import timedelta

import pytest

from guardwave.reducer.vocabulary import Mode
from tests.support.hosts import Calendar, Host, Prompt, assignment_for, logs, partial_of
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, context_over, world_in

HOUR = timedelta(hours=1)


@pytest.fixture
def calendar():
    return Calendar(NOW)


@pytest.fixture
def host(store, calendar):
    return Host(world_in(context_over(store, clock=calendar.clock), Mode.SHADOW).context)


def request_at(host, at):
    prompt = Prompt("p-1", [assignment_for(host.context, "owner-1")[1]], at)
    return logs(prompt.events())


def started_prompts(host) -> int:
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
    assert started_prompts(host) == 0
    assert host.context.evidence.health(ENVIRONMENT)["refused:future"] == 2

    calendar.now = NOW
    for _ in range(2):
        assert partial_of(host.send(request)) == (0, "")
    assert started_prompts(host) == 1


def test_records_taken_in_while_this_clock_was_fast_are_the_same_when_it_is_right_again(
    host, calendar
):
    request = request_at(host, NOW - timedelta(minutes=1))
    for off in (HOUR, timedelta(0)):
        calendar.now = NOW + off
        assert partial_of(host.send(request)) == (0, "")
    assert started_prompts(host) == 1


def test_a_host_with_a_fast_clock_is_rejected_and_one_with_a_slow_clock_is_shown(host):
    rejected, message = partial_of(host.send(request_at(host, NOW + HOUR)))
    assert (rejected, message.partition(":")[0]) == (2, "future")

    assert partial_of(host.send(request_at(host, NOW - HOUR))) == (0, "")
    assert started_prompts(host) == 1
    (source,) = (
        source for source in host.context.intake.sources(ENVIRONMENT) if "ahead_s" in source.counts
    )
    assert source.counts["ahead_s"] == -HOUR.total_seconds() + 30
