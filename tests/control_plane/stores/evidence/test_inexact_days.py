"""Inexact days: points that cross midnight, and points without attributes."""

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import Histogram, PointEvent
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.reducer.rollout.state import EvidenceSource
from tests.control_plane.stores.evidence.test_streams import DAYS, HERE, Point, write

_numbers = itertools.count()
TOKENS = 9


def counted(start: int | None, time: int, value: int, *, is_cumulative: bool = True) -> PointEvent:
    """A point that counts at a place of its owner's row."""
    return Point(start, time, value).event(is_cumulative=is_cumulative, places=(TOKENS,))


def inexact_points(
    evidence: EvidenceStore, source: EvidenceSource, environment: str = HERE
) -> list[tuple[int, int]]:
    """Return for each day how many points smear it, and how many came without attributes."""
    for day in DAYS:
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        evidence.seal(environment, day, at=at, longest_outage_seconds=60.0)
    found = evidence.sealed_days(environment, DAYS, source)
    return [(day.smeared, day.overflowed) for day in found]


def smeared(evidence: EvidenceStore, environment: str = HERE) -> list[int]:
    points = inexact_points(evidence, EvidenceSource.COUNTERS, environment)
    return [count for count, _ in points]


BEFORE, AFTER = 43_000, 43_300


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([(0, BEFORE, 4)], [0, 0, 0], id="within a day"),
        pytest.param([(0, 43_200, 4)], [0, 0, 0], id="until midnight"),
        pytest.param([(43_200, AFTER, 4)], [0, 0, 0], id="from midnight on"),
        pytest.param([(BEFORE, AFTER, 4)], [1, 1, 0], id="over midnight"),
        pytest.param([(BEFORE, AFTER, 0)], [0, 0, 0], id="over midnight, and nothing happened"),
        pytest.param([(0, 43_200 + 86_400, 4)], [1, 1, 0], id="over midnight, to midnight"),
        pytest.param([(0, AFTER + 86_400, 4)], [1, 1, 1], id="over a whole day"),
        pytest.param([(None, AFTER, 4)], [0, 0, 0], id="no start is reported"),
    ],
)
def test_a_delta_that_crosses_midnight_smears_all_days_that_it_may_be_of(
    evidence, points, expected
):
    write(evidence, *(counted(*point, is_cumulative=False) for point in points))
    assert smeared(evidence) == expected


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([(0, BEFORE, 4), (0, AFTER, 9)], [1, 1, 0], id="counted in between"),
        pytest.param([(0, BEFORE, 4), (0, AFTER, 4)], [0, 0, 0], id="nothing in between"),
        pytest.param(
            [(0, BEFORE, 4), (0, 43_200, 9), (0, AFTER, 9)], [0, 0, 0], id="seen at midnight"
        ),
        pytest.param([(0, AFTER, 9)], [1, 1, 0], id="first seen on the day after its start"),
        pytest.param(
            [(0, AFTER, 9), (0, AFTER + 60, 12), (0, AFTER + 120, 15)],
            [1, 1, 0],
            id="once for all points of a day",
        ),
        pytest.param([(0, BEFORE, 9), (0, AFTER, 4)], [1, 1, 0], id="fallen between the two"),
        pytest.param(
            [(0, BEFORE, 9), (43_250, AFTER, 4)], [0, 0, 0], id="restarted after midnight"
        ),
        pytest.param([(None, BEFORE, 4), (None, AFTER, 9)], [1, 1, 0], id="of unknown start"),
        pytest.param(
            [(0, BEFORE, 4), (0, AFTER + 86_400, 9)], [1, 1, 1], id="silent for a whole day"
        ),
    ],
)
def test_a_cumulative_stream_smears_the_days_that_its_growth_may_be_of(evidence, points, expected):
    write(evidence, *(counted(*point) for point in points))
    assert smeared(evidence) == expected


@pytest.mark.parametrize(
    ("at_midnight", "expected"),
    [
        pytest.param([], [1, 1, 0], id="not known at midnight"),
        pytest.param([(0, 43_200, 9)], [0, 0, 0], id="known at midnight"),
    ],
)
@given(st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
def test_what_smears_a_day_is_known_by_the_set_of_points_alone(
    store, at_midnight, expected, random
):
    evidence, environment = EvidenceStore(store), f"e{next(_numbers)}"
    order = [(0, 60, 1), (0, BEFORE, 4), *at_midnight, (0, AFTER, 9), (0, AFTER + 9, 12)]
    random.shuffle(order)
    for point in order:
        write(evidence, counted(*point), environment=environment)
    assert smeared(evidence, environment) == expected


def test_the_days_before_a_point_go_back_over_months_and_leap_days(evidence):
    crossed = [
        (date(2028, 3, 1), [date(2028, 2, 29), date(2028, 2, 28)]),
        (date(2026, 3, 1), [date(2026, 2, 28), date(2026, 2, 27)]),
        (date(2100, 3, 1), [date(2100, 2, 28)]),
        (date(2027, 1, 1), [date(2026, 12, 31), date(2026, 12, 30)]),
        (date(2026, 5, 1), [date(2026, 4, 30)]),
    ]
    for number, (day, before) in enumerate(crossed):
        point = Point(0, 60, 1).event(is_cumulative=False)
        of_its_own = replace(
            point,
            day=day,
            began_on=before[-1],
            dedupe_key=DedupeKey(number, point.dedupe_key.second),
        )
        environment = f"e{next(_numbers)}"
        write(evidence, of_its_own, environment=environment)
        assert evidence.days(environment) == tuple(sorted([day, *before]))


@pytest.mark.parametrize(
    ("changed", "by_counters"),
    [
        pytest.param({"owner": None}, 0, id="of no owner"),
        pytest.param({}, 0, id="of an owner, and in none of its sums"),
        pytest.param({"histogram": Histogram(5, ((3, 4),))}, 1, id="of an owner's durations"),
    ],
)
def test_only_what_is_evidence_smears_a_day_by_counters(evidence, changed, by_counters):
    write(evidence, replace(Point(BEFORE, AFTER, 4).event(is_cumulative=False), **changed))
    assert inexact_points(evidence, EvidenceSource.EVENTS)[0] == (1, 0)
    assert inexact_points(evidence, EvidenceSource.COUNTERS)[0] == (by_counters, 0)


@pytest.mark.parametrize(
    ("is_missed", "by_counters"),
    [
        pytest.param(False, 0, id="of no owner"),
        pytest.param(True, 1, id="of a process that serves an owner"),
    ],
)
def test_a_point_without_its_attributes_is_counted_on_its_day(evidence, is_missed, by_counters):
    event = Point(0, 60, 4).event()
    first = replace(event, owner=None, is_overflow=True, is_missed=is_missed)
    again = replace(Point(0, 120, 4).event(), owner=None, is_overflow=True, is_missed=is_missed)
    write(evidence, first, again)
    assert inexact_points(evidence, EvidenceSource.EVENTS)[0] == (0, 1)
    assert inexact_points(evidence, EvidenceSource.COUNTERS)[0] == (0, by_counters)
