"""Prompt counts: events and counters of the same prompts, by day and version."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import PointEvent, Stream
from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptKey, StartDelta
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    PromptEvent,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode

DAYS = (date(2026, 11, 27), date(2026, 11, 28))
GUARD, OTHER = "identical_call", "duplicate_call_id"
NOW = int(datetime(2026, 11, 28, 12, tzinfo=UTC).timestamp())
Event = PromptEvent | PointEvent | VolumeEvent
_numbers = itertools.count(1)


def at(day: date, hour: int = 9) -> int:
    return int(datetime.combine(day, time(hour), UTC).timestamp())


def start(day: date = DAYS[0], *, version: str = "1.0", guards: Sequence[str] = (GUARD,)) -> Event:
    number = next(_numbers)
    return PromptEvent(
        dedupe_key=DedupeKey(number, at(day)),
        prompt=PromptKey("aaaaaaaaaaaaaaaa", f"{number:016x}", 17),
        day=day,
        strata=tuple(Stratum(guard, version, 1, Cohort.EVERYONE, Mode.SHADOW) for guard in guards),
        is_conforming=True,
        delta=StartDelta(9),
    )


def unverified(day: date = DAYS[0]) -> Event:
    """Return a start without an assignment id."""
    dedupe_key = DedupeKey(next(_numbers), at(day))
    return VolumeEvent(dedupe_key, day, Stratum("unnamed", "1.0"), "agent.guard.prompt.start")


def shown(
    value: int,
    day: date = DAYS[0],
    *,
    version: str = "1.0",
    guard: str = GUARD,
    began_on: date | None = None,
) -> PointEvent:
    """Return a delta of the counter of prompts, within its day unless it began on another."""
    number, second = next(_numbers), at(day)
    return PointEvent(
        dedupe_key=DedupeKey(number, second),
        day=day,
        hour=9,
        stratum=Stratum(guard, version, mode=Mode.SHADOW),
        counter="agent.guard.prompts{prompt.stage=start}",
        stream=Stream(f"{number:016x}", False, (second - 60) * 10**6, second * 10**6),
        value=value,
        began_on=began_on or day,
        counts_starts=True,
    )


def counts_of(
    evidence: EvidenceStore, *events: Event, is_trusted: bool = True, day: date = DAYS[0]
) -> tuple[tuple[str, int | None, int | None, int], ...]:
    """Write events into a new environment and return the counts of a day."""
    environment = f"counts-{next(_numbers)}"
    batch = EvidenceBatch(events, now_second=NOW, is_trusted=is_trusted)
    evidence.write(environment, batch)
    return _counts_of(evidence, environment, day)


def _counts_of(
    evidence: EvidenceStore, environment: str, day: date = DAYS[0]
) -> tuple[tuple[str, int | None, int | None, int], ...]:
    found = evidence.stored_days(environment, [day]).prompt_counts(day)
    return tuple(
        (counts.version, counts.by_events, counts.by_counters, counts.untold) for counts in found
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: (start(), start(), shown(2)), ("1.0", 2, 2, 0), id="equal"),
        pytest.param(lambda: (start(), shown(3)), ("1.0", 1, 3, 2), id="two were lost"),
        pytest.param(lambda: (start(), start(), shown(1)), ("1.0", 2, 1, 0), id="more events"),
        pytest.param(lambda: (start(),), ("1.0", 1, None, 0), id="no counter"),
        pytest.param(lambda: (shown(3),), ("1.0", None, 3, 0), id="counters alone"),
        pytest.param(
            lambda: (start(guards=(GUARD, OTHER)), shown(1), shown(1, guard=OTHER)),
            ("1.0", 1, 1, 0),
            id="a prompt of two guards, counted for each",
        ),
        pytest.param(
            lambda: (start(), shown(1), shown(4, guard=OTHER)),
            ("1.0", 1, 4, 3),
            id="the highest count of a guard stands",
        ),
        pytest.param(
            lambda: (start(), unverified(), shown(2)),
            ("1.0", 2, 2, 0),
            id="a prompt without an assignment id counts",
        ),
        pytest.param(
            lambda: (start(), shown(3, began_on=DAYS[0] - timedelta(days=1))),
            ("1.0", 1, 3, 0),
            id="counted across midnight",
        ),
        pytest.param(
            lambda: (start(), shown(2), shown(3, began_on=DAYS[0] - timedelta(days=1))),
            ("1.0", 1, 5, 1),
            id="some of it counted across midnight",
        ),
    ],
)
def test_events_and_counters_are_compared(evidence, make, expected):
    assert counts_of(evidence, *make()) == (expected,)


def test_each_version_and_each_day_is_compared_alone(evidence):
    events = [start(version="1.0"), shown(1, version="1.0"), start(version="2.0")]
    events += [shown(2, version="2.0"), start(DAYS[1]), shown(4, DAYS[1])]
    assert counts_of(evidence, *events) == (("1.0", 1, 1, 0), ("2.0", 1, 2, 1))
    later = [
        replace(event, dedupe_key=DedupeKey(next(_numbers), event.dedupe_key.second))
        for event in events
    ]
    assert counts_of(evidence, *later, day=DAYS[1]) == (("1.0", 1, 4, 3),)


def test_reports_of_an_untrusted_producer_are_not_compared(evidence):
    assert counts_of(evidence, start(), unverified(), shown(9), is_trusted=False) == ()


def test_an_untrusted_producer_cannot_make_a_day_miss_prompts(evidence):
    environment = f"counts-{next(_numbers)}"
    mine, others = (start(), shown(1)), (shown(500),)
    evidence.write(environment, EvidenceBatch(mine, now_second=NOW, is_trusted=True))
    evidence.write(environment, EvidenceBatch(others, now_second=NOW, is_trusted=False))
    assert _counts_of(evidence, environment) == (("1.0", 1, 1, 0),)


def test_a_sealed_day_adds_up_the_missing_prompts_of_all_versions(evidence):
    environment = f"counts-{next(_numbers)}"
    events = [start(), shown(3), start(version="2.0"), shown(2, version="2.0")]
    evidence.write(environment, EvidenceBatch(tuple(events), now_second=NOW, is_trusted=True))
    evidence.seal(environment, DAYS[0], at=datetime.now(UTC), longest_outage_seconds=0.0)
    by_events, by_counters = (
        evidence.sealed_days(environment, DAYS[:1], source)[0] for source in EvidenceSource
    )
    assert (by_events.untold, by_counters.untold) == (3, 0)


def test_one_reading_has_sealed_days_by_either_source_and_prompts_of_all_days(evidence):
    environment = f"counts-{next(_numbers)}"
    events = (start(), shown(3), start(DAYS[1]), shown(2, DAYS[1]))
    evidence.write(environment, EvidenceBatch(events, now_second=NOW, is_trusted=True))
    evidence.seal(environment, DAYS[0], at=datetime.now(UTC), longest_outage_seconds=0.0)
    held = evidence.stored_days(environment, DAYS)
    for source in EvidenceSource:
        (sealed,) = held.sealed(source)
        assert (sealed,) == evidence.sealed_days(environment, DAYS, source)
        assert sealed.day == DAYS[0]
    assert [held.prompt_counts(day)[0].untold for day in DAYS] == [2, 1]


def cumulative(value: int, minute: int) -> PointEvent:
    second = at(DAYS[0]) + 60 * minute
    point = shown(value)
    stream = Stream("5" * 16, True, at(DAYS[0]) * 10**6, second * 10**6)
    return replace(point, dedupe_key=DedupeKey(point.dedupe_key.digest, second), stream=stream)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(random=st.randoms(use_true_random=False))
def test_what_is_compared_depends_on_the_items_alone_however_they_arrive(evidence, random):
    environment = f"counts-{next(_numbers)}"
    items = [start(), start(), cumulative(1, 1), cumulative(3, 2), cumulative(6, 3)]
    order = [*items, *random.sample(items, 2)]
    random.shuffle(order)
    for item in order:
        batch = EvidenceBatch((item,), now_second=NOW, is_trusted=True)
        evidence.write(environment, batch)
    assert _counts_of(evidence, environment) == (("1.0", 2, 6, 4),)
