from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.clock import DEMO_SEAL_SECONDS, Clock, fixed_clock, from_ns, to_ns
from guardwave.reducer.rollout.days import SEAL_DELAY

MOMENT = datetime(2026, 3, 2, 12, 30, 0, 123456, tzinfo=UTC)
WALL_NS = to_ns(datetime(2026, 11, 29, tzinfo=UTC))
# A day in five seconds.
DEMO = Clock(
    wall_ns=lambda: WALL_NS,
    wall_origin_ns=WALL_NS,
    moment_origin_ns=to_ns(MOMENT),
    speed=17_280.0,
)

moments = st.integers(0, 7_258_118_400_000_000).map(
    lambda since_1970: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since_1970)
)


@given(moments)
def test_a_moment_survives_nanoseconds_to_the_microsecond(moment):
    assert from_ns(to_ns(moment)) == moment
    assert from_ns(to_ns(moment) + 999) == moment


def test_in_production_the_moment_is_the_wall_clock():
    clock = Clock(wall_ns=lambda: WALL_NS)
    assert clock.now_ns() == WALL_NS
    assert clock.now() == datetime(2026, 11, 29, tzinfo=UTC)
    assert clock.seal_delay == SEAL_DELAY


def test_a_fixed_clock_stands_still():
    clock = fixed_clock(MOMENT)
    assert clock.now() == clock.now() == MOMENT


def test_the_demo_starts_at_its_origin_and_runs_at_its_speed():
    assert DEMO.now() == MOMENT
    five_seconds_on = replace(DEMO, wall_ns=lambda: WALL_NS + 5_000_000_000)
    assert five_seconds_on.now() == MOMENT + timedelta(days=1)


def test_the_demo_seals_a_day_five_real_seconds_after_its_end():
    assert DEMO.seal_delay == timedelta(seconds=DEMO_SEAL_SECONDS * DEMO.speed)


@given(moments)
def test_wall_time_and_moment_undo_each_other(moment):
    wall_ns = int(DEMO.wall_at(moment) * 1e9)
    # A wall clock in double seconds is good to a microsecond, which is 17 ms of the demo.
    assert abs(from_ns(DEMO.moment_ns(wall_ns)) - moment) < timedelta(seconds=0.1)


@pytest.mark.parametrize("wall_ns", [WALL_NS, WALL_NS + 1, WALL_NS + 10**15 + 1])
def test_a_clock_of_normal_speed_loses_no_nanosecond(wall_ns):
    assert Clock().moment_ns(wall_ns) == wall_ns
