"""What one sender may make without bound is bounded, and what is beyond it is told."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from control_plane.stores.cells import Cell
from control_plane.stores.evidence import KEPT_DAYS, EvidenceStore
from control_plane.stores.evidence_events import (
    EvidenceBatch,
    PromptEvent,
    PromptKey,
    Seen,
    Sighting,
    Started,
    VolumeEvent,
)
from control_plane.stores.evidence_points import PointEvent, PointOwner, Stream
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.owners import OwnerStore
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Mode

HERE = "internal"
DAY = date(2026, 11, 27)
SECOND = 1_795_000_000
GUARD = Cell("repeated_tool_failure", "1.0.0", 2, Cohort.ENFORCED, Mode.ENFORCE)
MOST_CELLS, MOST_COUNTERS, MOST_NAMES, MOST_STREAMS = 16_384, 2_048, 32, 4_096


@pytest.fixture
def evidence(any_store):
    return EvidenceStore(any_store)


def start(number: int, cell: Cell) -> PromptEvent:
    prompt = PromptKey("aaaaaaaaaaaaaaaa", f"prompt-{number // 2}", 17)
    return PromptEvent(Seen(number, SECOND), prompt, DAY, (cell,), True, Started(1))


def volume(number: int, *, cell: Cell, counter: str = "points") -> VolumeEvent:
    return VolumeEvent(Seen(number, SECOND), DAY, cell, counter)


def write(evidence: EvidenceStore, *events: PromptEvent | VolumeEvent) -> None:
    evidence.write(HERE, EvidenceBatch(events))


def fill_cells(store, count: int) -> None:
    """Leave behind what that many versions' cells would have."""
    key = EvidenceKeys(HERE).cells
    names = [replace(GUARD, version=f"0.{number}").name for number in range(1, count + 1)]
    numbered = dict(zip(names, range(1, count + 1), strict=True))
    store.hset(key, mapping={**numbered, **{f"#{at}": name for name, at in numbered.items()}})
    store.hset(key, "#", count)


def test_a_tie_of_seconds_looks_up_one_name_however_many_cells_there_are(any_store, evidence):
    fill_cells(any_store, 5_000)
    low, high = replace(GUARD, version="0.7"), replace(GUARD, version="0.8")
    write(evidence, *(start(2 * number, high) for number in range(200)))
    any_store.config_resetstat()

    write(evidence, *(start(2 * number + 1, low) for number in range(200)))

    calls = {name: stats["calls"] for name, stats in any_store.info("commandstats").items()}
    assert "cmdstat_hgetall" not in calls
    assert calls["cmdstat_hget"] < 20
    rows = evidence.owner_rows(HERE, "aaaaaaaaaaaaaaaa", 17, [DAY])
    assert [(cell, row.started) for cell, row in rows] == [(low, 200)]


def test_beyond_the_bound_of_cells_the_version_becomes_other(any_store, evidence):
    fill_cells(any_store, MOST_CELLS)
    known = replace(GUARD, version="0.7")
    unvouched = Cell("identical_call", "9.0", mode=Mode.WARN)

    write(evidence, start(0, GUARD), start(2, replace(GUARD, version="2.0.0")), start(4, known))
    write(evidence, volume(7, cell=unvouched), volume(8, cell=Cell("duplicate_call_id", "9.1")))

    assert len(evidence.cells(HERE)) == MOST_CELLS + 3
    rows = evidence.owner_rows(HERE, "aaaaaaaaaaaaaaaa", 17, [DAY])
    shared = replace(GUARD, version="other")
    assert {cell: row.started for cell, row in rows} == {known: 1, shared: 2}
    assert evidence.counters(HERE, DAY) == {
        (Cell("other", "other", mode=Mode.WARN), "points"): 1,
        (Cell("other", "other"), "points"): 1,
    }
    assert evidence.health(HERE)["overflow:cells"] == 4


def test_beyond_the_bound_of_a_cells_counters_they_become_other(evidence):
    events = [
        volume(number, cell=GUARD, counter=f"points{{label={number}}}")
        for number in range(MOST_COUNTERS)
    ]
    write(evidence, *events)
    write(evidence, *(volume(-at, cell=GUARD, counter=f"more {at}") for at in range(1, 6)))
    write(evidence, volume(-9, cell=GUARD, counter="points{label=0}"))

    counted = evidence.counters(HERE, DAY)
    assert len(counted) == MOST_COUNTERS + 1
    assert counted[GUARD, "other"] == 5
    assert counted[GUARD, "points{label=0}"] == 2
    assert evidence.health(HERE)["overflow:counters"] == 5


def test_evidence_is_kept_for_as_long_as_a_wave_may_be_evaluated(any_store, evidence):
    write(evidence, start(0, GUARD))
    ((number, _),) = evidence.cells(HERE)
    keys = EvidenceKeys(HERE)
    kept = timedelta(days=KEPT_DAYS).total_seconds()
    for key in (keys.owner_days(number, DAY, 17), keys.day(DAY)):
        assert kept - 60 < any_store.ttl(key) <= kept


def test_an_owner_keeps_the_newest_versions_and_producers(any_store, evidence):
    owner, oldest = "aaaaaaaaaaaaaaaa", DAY - timedelta(days=16)
    older = DAY - timedelta(days=3)
    seen = [
        Sighting(owner, f"v{at:02}", f"p{at:02}", DAY if at >= 8 else older, oldest, False)
        for at in range(MOST_NAMES + 8)
    ]
    evidence.write(HERE, EvidenceBatch((), frozenset(seen)))

    facts = OwnerStore(any_store).facts(HERE, [owner])[owner]
    assert sorted(facts.versions) == [f"v{at:02}" for at in range(8, MOST_NAMES + 8)]
    assert sorted(facts.producers) == [f"p{at:02}" for at in range(8, MOST_NAMES + 8)]
    health = evidence.health(HERE)
    assert (health["overflow:versions"], health["overflow:producers"]) == (8, 8)


def point(stream: str, value: int, *, is_cumulative: bool = True, at: int = 60) -> PointEvent:
    number = hash((stream, value, is_cumulative, at)) % 2**60
    told = Stream(stream, is_cumulative, SECOND * 10**6, (SECOND + at) * 10**6)
    cell = replace(GUARD, source=EvidenceSource.COUNTERS)
    return PointEvent(
        Seen(number, SECOND + at),
        DAY,
        12,
        GUARD,
        "turns",
        told,
        value,
        owner=PointOwner("aaaaaaaaaaaaaaaa", 17, cell, (10,)),
        is_conforming=True,
    )


def send(evidence: EvidenceStore, producer: str, *points: PointEvent, now: int = SECOND) -> None:
    evidence.write(HERE, EvidenceBatch(points, producer=producer, now_second=now))


def test_a_producer_keeps_4096_streams_and_takes_none_from_another(any_store, evidence):
    send(evidence, "loud", *(point(f"s-{at}", 1) for at in range(MOST_STREAMS + 50)))
    assert len(any_store.keys("cs:*")) == MOST_STREAMS
    assert evidence.counters(HERE, DAY) == {(GUARD, "turns"): MOST_STREAMS}
    assert evidence.health(HERE)["streams:over_limit"] == 50
    day = any_store.hgetall(EvidenceKeys(HERE).day(DAY))
    assert (int(day[b"crecords"]), int(day[b"cconforming"])) == (MOST_STREAMS + 50, MOST_STREAMS)

    send(evidence, "loud", point("s-0", 3, at=90), point("more", 9))
    send(evidence, "quiet", point("other", 100))
    assert evidence.counters(HERE, DAY) == {(GUARD, "turns"): MOST_STREAMS + 2 + 100}
    assert evidence.health(HERE)["streams:over_limit"] == 51


def test_a_delta_beyond_the_bound_of_streams_adds_its_value(any_store, evidence):
    any_store.zadd("sn:{internal:0}:loud", {f"s-{at}": SECOND for at in range(MOST_STREAMS)})
    send(evidence, "loud", point("new", 7, is_cumulative=False))
    assert any_store.keys("cs:*") == []
    assert evidence.counters(HERE, DAY) == {(GUARD, "turns"): 7}
    assert evidence.health(HERE)["streams:over_limit"] == 1


def test_streams_that_told_nothing_for_a_week_make_room(any_store, evidence):
    any_store.zadd("sn:{internal:0}:loud", {f"s-{at}": SECOND for at in range(MOST_STREAMS)})
    week = timedelta(days=7) // timedelta(seconds=1)
    send(evidence, "loud", point("early", 1), now=SECOND + week)
    send(evidence, "loud", point("late", 1), now=SECOND + week + 1)
    assert any_store.zrange("sn:{internal:0}:loud", 0, -1) == [b"late"]
    assert len(any_store.keys("cs:*")) == 1
