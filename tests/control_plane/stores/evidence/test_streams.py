"""Streams of points: the sums depend on the set of points alone."""

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import (
    Histogram,
    PointEvent,
    PointOwner,
    Stream,
)
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode

HERE = "internal"
NOON = int(datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp())
DAYS = tuple(date(2026, 11, 27) + timedelta(days=at) for at in range(3))
NOW = NOON + 2 * 86_400
STRATUM = Stratum("identical_call", "1.0.0", mode=Mode.WARN)
OWN = Stratum(
    "identical_call", "1.0.0", 2, Cohort.WARNED, Mode.WARN, source=EvidenceSource.COUNTERS
)
US = 1_000_000
_numbers = itertools.count()


class Point(NamedTuple):
    """A point of a stream: seconds after noon of the first day."""

    start: int | None
    time: int
    value: int
    histogram: Histogram | None = None

    def event(self, *, is_cumulative: bool = True, places: tuple[int, ...] = ()) -> PointEvent:
        last = NOON + self.time - 1
        start = 0 if self.start is None else (NOON + self.start) * US
        digest = hash((is_cumulative, self.start, self.time, self.value)) % 2**60
        return PointEvent(
            dedupe_key=DedupeKey(digest, NOON + self.time),
            day=datetime.fromtimestamp(last, UTC).date(),
            hour=datetime.fromtimestamp(last, UTC).hour,
            stratum=STRATUM,
            counter="n",
            stream=Stream("s-1", is_cumulative, start, (NOON + self.time) * US),
            value=self.value,
            histogram=self.histogram,
            owner=PointOwner("aaaaaaaaaaaaaaaa", 17, OWN, places),
            began_on=datetime.fromtimestamp(start // US, UTC).date() if start else None,
        )


def write(evidence: EvidenceStore, *events: PointEvent, environment: str = HERE) -> None:
    evidence.write(environment, EvidenceBatch(events, now_second=NOW))


def counted(evidence: EvidenceStore, environment: str = HERE) -> list[int]:
    return [evidence.counters(environment, day).get((STRATUM, "n"), 0) for day in DAYS]


def health(evidence: EvidenceStore, environment: str = HERE) -> dict[str, int]:
    found = evidence.health(environment)
    return {
        name.removeprefix("streams:"): many
        for name, many in found.items()
        if name.startswith("streams:") and many
    }


@pytest.mark.parametrize(
    ("points", "expected", "flags"),
    [
        pytest.param([(0, 60, 4), (0, 120, 10)], [10, 0, 0], {}, id="the first point counts"),
        pytest.param([(0, 60, 4), (0, 120, 4)], [4, 0, 0], {}, id="nothing new"),
        pytest.param(
            [(0, 60, 9), (60, 120, 2)], [11, 0, 0], {"reset": 1}, id="a new start is a reset"
        ),
        pytest.param([(0, 0, 7), (0, 60, 9)], [2, 0, 0], {}, id="known from its first point on"),
        pytest.param(
            [(None, 60, 7), (None, 120, 9)],
            [2, 0, 0],
            {"unknown_start": 1},
            id="no start is reported: what came before counts for nothing",
        ),
        pytest.param(
            [(-8 * 86_400, 60, 700), (-8 * 86_400, 120, 701)],
            [1, 0, 0],
            {"unknown_start": 1},
            id="a start so old that it may have been counted before",
        ),
        pytest.param(
            [(0, 60, 4), (0, 90_000, 10), (0, 90_060, 11)], [4, 7, 0], {}, id="over two midnights"
        ),
        pytest.param(
            [(0, 60, 9), (0, 120, 2), (0, 180, 5)],
            [14, 0, 0],
            {"fall": 1},
            id="a value that falls restarts",
        ),
        pytest.param(
            [(0, 60, 4), (0, 60, 6)], [6, 0, 0], {"conflict": 1}, id="two writers of one time"
        ),
    ],
)
def test_a_cumulative_stream_adds_what_is_new_in_it(evidence, points, expected, flags):
    for point in points:
        write(evidence, Point(*point).event())
    assert (counted(evidence), health(evidence)) == (expected, flags)


@st.composite
def streams(draw: st.DrawFn) -> list[Point]:
    """Draw a process that starts up to three times and reports its count now and then."""
    points = []
    began = 0
    for _ in range(draw(st.integers(1, 3))):
        at, value = began, 0
        for _ in range(draw(st.integers(1, 5))):
            at += draw(st.integers(60, 40_000))
            value += draw(st.integers(0, 5))
            points.append(Point(began, at, value))
        began = at + draw(st.integers(1, 60))
    return [point for point in points if point.time < 2 * 86_400]


def truth(points: Sequence[Point]) -> list[int]:
    added: Counter[date] = Counter()
    for _, run in itertools.groupby(sorted(points), key=lambda point: point.start):
        before = 0
        for point in run:
            added[point.event().day] += point.value - before
            before = point.value
    return [added[day] for day in DAYS]


each_alone = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@each_alone
@given(points=streams(), data=st.data())
def test_late_repeated_and_re_batched_points_of_a_stream_add_the_same(evidence, points, data):
    environment = f"stream-{next(_numbers)}"
    repeated = data.draw(st.lists(st.sampled_from(points), max_size=4)) if points else []
    arriving = data.draw(st.permutations([*points, *repeated]))
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        write(evidence, *(point.event() for point in arriving[:size]), environment=environment)
        arriving = arriving[size:]
    assert counted(evidence, environment) == truth(points)
    resets = len({point.start for point in points}) - 1
    assert health(evidence, environment) == ({"reset": resets} if resets > 0 else {})


@each_alone
@given(points=streams(), data=st.data())
def test_a_point_that_never_arrives_loses_no_count_of_a_cumulative_stream(evidence, points, data):
    environment = f"stream-{next(_numbers)}"
    last = [list(run)[-1] for _, run in itertools.groupby(points, key=lambda point: point.start)]
    kept = [point for point in points if point in last or data.draw(st.booleans())]
    write(evidence, *(point.event() for point in kept), environment=environment)
    assert sum(counted(evidence, environment)) == sum(truth(points))


@pytest.mark.parametrize(
    ("points", "flags"),
    [
        pytest.param([(0, 60), (60, 120), (120, 180)], {}, id="gapless"),
        pytest.param([(120, 180), (0, 60), (60, 120)], {}, id="gapless, out of order"),
        pytest.param([(0, 60), (120, 180)], {"gap": 1}, id="one is missing"),
        pytest.param([(0, 60), (120, 180), (240, 300)], {"gap": 2}, id="two are missing"),
        pytest.param([(0, 60), (30, 90)], {"conflict": 1}, id="intervals that overlap"),
        pytest.param([(None, 60), (None, 180)], {}, id="no start is reported"),
    ],
)
def test_a_stream_of_deltas_adds_every_point_and_reports_its_gaps(evidence, points, flags):
    for start, time in points:
        write(evidence, Point(start, time, 5).event(is_cumulative=False))
    assert counted(evidence) == [5 * len(points), 0, 0]
    assert health(evidence) == flags


def test_a_gap_that_a_late_point_fills_is_none(evidence):
    for start, time in ((0, 60), (120, 180)):
        write(evidence, Point(start, time, 5).event(is_cumulative=False))
    assert health(evidence) == {"gap": 1}
    write(evidence, Point(60, 120, 5).event(is_cumulative=False))
    assert health(evidence) == {}


def test_two_writers_of_one_delta_both_count(evidence):
    for value in (5, 6):
        write(evidence, Point(0, 60, value).event(is_cumulative=False))
    assert (counted(evidence), health(evidence)) == ([11, 0, 0], {"conflict": 1})


@pytest.mark.parametrize("is_cumulative", [True, False])
def test_a_point_sent_twice_counts_once(evidence, is_cumulative):
    point = Point(0, 60, 5).event(is_cumulative=is_cumulative)
    for _ in range(2):
        write(evidence, point)
    assert (counted(evidence), health(evidence)) == ([5, 0, 0], {})


def test_a_stream_remembers_its_last_32_starts(any_store, evidence):
    for at in range(100):
        write(evidence, Point(60 * at, 60 * at + 30, 1).event())
    (key,) = any_store.keys("cs:*")
    assert any_store.strlen(key) < 4096
    assert sum(counted(evidence)) == 100
    write(evidence, Point(0, 40, 2).event())
    assert sum(counted(evidence)) == 100
    assert health(evidence)["forgotten"] == 1


def total(evidence: EvidenceStore) -> int:
    return sum(evidence.counters(HERE, day).get((STRATUM, "n"), 0) for day in evidence.days(HERE))


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param([-1 - at for at in range(40)], id="the newest start reports first"),
        pytest.param([at - 40 for at in range(40)], id="the oldest start reports first"),
        pytest.param([-1 - at * 17 % 40 for at in range(40)], id="starts in any order"),
    ],
)
def test_forty_writers_of_one_stream_never_count_more_than_they_reported(evidence, starts):
    for tour in range(4):
        for at, start in enumerate(starts):
            event = Point(start, 60 + 100 * tour + at, 100 + tour).event()
            write(evidence, event)
            write(evidence, event)
            # those that come later in this round are a round behind
            reported_by_now = (at + 1) * (100 + tour) + (39 - at) * (99 + tour if tour else 0)
            assert total(evidence) <= reported_by_now
    assert total(evidence) >= 31 * 103
    assert health(evidence)["forgotten"] > 0


LONG = 3 * 86_400 + 200


@pytest.mark.parametrize(
    ("points", "added"),
    [
        pytest.param([(0, LONG + 100, 70)], 0, id="its first value is a base to count from"),
        pytest.param([(0, LONG + 100, 70), (0, LONG + 200, 75)], 5, id="what follows counts"),
        pytest.param([(0, LONG + 200, 75), (0, LONG + 100, 70)], 5, id="in any order"),
        pytest.param([(0, LONG + 100, 70), (0, 30, 20)], 0, id="older than what was forgotten"),
        pytest.param([(-5, LONG + 100, 70)], 0, id="an older start may be one that was forgotten"),
        pytest.param([(110, LONG + 100, 7)], 7, id="a newer start is a new process"),
    ],
)
def test_a_process_silent_for_three_days_counts_nothing_twice(evidence, points, added):
    write(evidence, Point(0, 60, 50).event(), Point(100, LONG, 5).event())
    for point in points:
        write(evidence, Point(*point).event())
    assert total(evidence) == 55 + added


def test_an_unset_start_beside_known_ones_counts_only_what_follows(evidence):
    for point in (Point(0, 60, 50), Point(None, 120, 60), Point(None, 180, 63)):
        write(evidence, point.event())
    assert (total(evidence), health(evidence)) == (53, {"unknown_start": 1})


def test_a_value_that_keeps_falling_restarts_eight_times_at_most(any_store, evidence):
    write(evidence, *(Point(0, 60 + at, 2 - at % 2).event() for at in range(2000)))
    (key,) = any_store.keys("cs:*")
    assert any_store.strlen(key) < 1024
    assert (total(evidence), health(evidence)) == (16, {"fall": 1000})
    write(evidence, Point(0, 3000, 5).event())
    assert total(evidence) == 19


def test_a_process_that_lives_for_months_keeps_a_small_stream(any_store, evidence):
    for at in range(60):
        write(evidence, Point(0, 60 + at * 86_400, at % 5).event())
    (key,) = any_store.keys("cs:*")
    assert any_store.strlen(key) < 512
    assert (total(evidence), health(evidence)) == (12 * 4, {"fall": 11})


def rows(evidence: EvidenceStore):
    return evidence.owner_days(HERE, OWN.guard, OWN.wave, DAYS, source=EvidenceSource.COUNTERS)


def test_a_counter_of_one_owner_is_evidence_by_counters_and_none_by_events(evidence):
    write(evidence, Point(0, 60, 3).event(places=(1,)))
    write(evidence, Point(0, 120, 5).event(places=(1,)))
    (row,) = rows(evidence)
    assert (row.owner, row.cohort, row.started) == ("aaaaaaaaaaaaaaaa", Cohort.WARNED, 5)
    assert evidence.owner_days(HERE, OWN.guard, OWN.wave, DAYS) == ()


def histogram(scale: int, *buckets: tuple[int, int]) -> Histogram:
    return Histogram(scale, buckets)


@pytest.mark.parametrize(
    ("points", "scale", "durations"),
    [
        pytest.param(
            [Point(0, 60, 3, histogram(7, (-3, 1), (5, 2)))], 7, ((-3, 1), (5, 2)), id="one point"
        ),
        pytest.param(
            [
                Point(0, 60, 3, histogram(7, (4, 1), (5, 2))),
                Point(0, 120, 4, histogram(7, (4, 1), (5, 3))),
            ],
            7,
            ((4, 1), (5, 3)),
            id="more in a bucket",
        ),
        pytest.param(
            [
                Point(0, 60, 3, histogram(7, (-1, 1), (4, 1), (5, 1))),
                Point(0, 120, 4, histogram(6, (-1, 1), (2, 2), (9, 1))),
            ],
            6,
            ((-1, 1), (2, 2), (9, 1)),
            id="a coarser scale",
        ),
        pytest.param(
            [Point(0, 60, 3, histogram(9, (-5, 1), (16, 1), (19, 1)))],
            7,
            ((-2, 1), (4, 2)),
            id="a finer scale than any row has",
        ),
    ],
)
def test_a_histogram_is_kept_at_its_own_scale_and_never_finer_than_7(
    evidence, points, scale, durations
):
    for point in points:
        write(evidence, point.event())
    (row,) = rows(evidence)
    assert (row.scale, row.durations) == (scale, durations)


def test_a_histogram_over_midnight_leaves_each_day_its_own(evidence):
    write(evidence, Point(0, 60, 1, histogram(5, (3, 1))).event())
    write(evidence, Point(0, 90_000, 3, histogram(4, (1, 2), (8, 1))).event())
    first, second = rows(evidence)
    assert (first.scale, first.durations) == (5, ((3, 1),))
    assert (second.scale, second.durations) == (4, ((1, 1), (8, 1)))
