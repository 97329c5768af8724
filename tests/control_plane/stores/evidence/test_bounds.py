"""Bounds: one sender cannot use up the store, and health counts the overflow."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import PointEvent, PointOwner, Stream
from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptKey, StartDelta
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    OwnerActivity,
    PromptEvent,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.imports import EvidenceImports
from guardwave.control_plane.stores.evidence.pages import CounterTotal
from guardwave.control_plane.stores.evidence.retention import RetentionStore
from guardwave.control_plane.stores.evidence.store import KEPT_DAYS, EvidenceStore, WriteResult
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.owners import OwnerStore
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Mode
from tests.support.stores.one_prompt import FRIDAY, GUARD, HERE

SECOND = 1_795_000_000
MOST_STRATA, MOST_VOLUME_STRATA, MOST_SOURCES = 16_384, 4_096, 8_192
MOST_COUNTERS, MOST_NAMES, MOST_STREAMS, MOST_KNOWN_STREAMS = 2_048, 32, 65_536, 262_144
STREAM_ENDS_S, STREAM_KEPT_S = 48 * 3600, 7 * 86_400


def start(number: int, stratum: Stratum) -> PromptEvent:
    prompt = PromptKey("aaaaaaaaaaaaaaaa", f"prompt-{number // 2}", 17)
    return PromptEvent(DedupeKey(number, SECOND), prompt, FRIDAY, (stratum,), True, StartDelta(1))


def volume(number: int, *, stratum: Stratum, counter: str = "points") -> VolumeEvent:
    return VolumeEvent(DedupeKey(number, SECOND), FRIDAY, stratum, counter)


def write(evidence: EvidenceStore, *events: PromptEvent | VolumeEvent) -> None:
    evidence.write(HERE, EvidenceBatch(events))


def fill_strata(store, count: int) -> None:
    """Write the strata of that many versions, as intake would."""
    key = EvidenceKeys(HERE).strata
    names = [replace(GUARD, version=f"0.{number}").name for number in range(1, count + 1)]
    numbered = dict(zip(names, range(1, count + 1), strict=True))
    store.hset(key, mapping={**numbered, **{f"#{at}": name for name, at in numbered.items()}})
    store.hset(key, "#", count)


def test_a_tie_of_seconds_looks_up_one_name_however_many_strata_there_are(any_store, evidence):
    fill_strata(any_store, 5_000)
    low, high = replace(GUARD, version="0.7"), replace(GUARD, version="0.8")
    write(evidence, *(start(2 * number, high) for number in range(200)))
    any_store.config_resetstat()

    write(evidence, *(start(2 * number + 1, low) for number in range(200)))

    calls = {name: stats["calls"] for name, stats in any_store.info("commandstats").items()}
    assert "cmdstat_hgetall" not in calls
    assert calls["cmdstat_hget"] < 20
    rows = evidence.owner_rows(HERE, "aaaaaaaaaaaaaaaa", 17, [FRIDAY])
    assert [(stratum, row.started) for stratum, row in rows] == [(low, 200)]


def use_up_strata(store, producer: str, **brought: int) -> None:
    """Write the counts of strata that a producer brought, `vouched` or `volume`."""
    store.hset(
        EvidenceKeys(HERE).strata,
        mapping={f"#{kind}:{producer}": count for kind, count in brought.items()},
    )


def test_beyond_a_producers_bound_of_strata_the_version_becomes_other(any_store, evidence):
    fill_strata(any_store, 10)
    use_up_strata(any_store, "", vouched=MOST_STRATA, volume=MOST_VOLUME_STRATA)
    known = replace(GUARD, version="0.7")
    unvouched = Stratum("identical_call", "9.0", mode=Mode.WARN)

    write(evidence, start(0, GUARD), start(2, replace(GUARD, version="2.0.0")), start(4, known))
    write(
        evidence,
        volume(7, stratum=unvouched),
        volume(8, stratum=Stratum("duplicate_call_id", "9.1")),
    )

    assert len(evidence.strata(HERE)) == 10 + 3
    rows = evidence.owner_rows(HERE, "aaaaaaaaaaaaaaaa", 17, [FRIDAY])
    shared = replace(GUARD, version="other")
    assert {stratum: row.started for stratum, row in rows} == {known: 1, shared: 2}
    assert evidence.counters(HERE, FRIDAY) == {
        (Stratum("other", "other", mode=Mode.WARN), "points"): 1,
        (Stratum("other", "other"), "points"): 1,
    }
    assert evidence.health(HERE)["overflow:cells"] == 4


@pytest.mark.parametrize(
    ("brought", "strata"),
    [
        pytest.param(
            {"volume": MOST_VOLUME_STRATA - 1},
            {"1.0.0", "9.0", "other"},
            id="volume that no assignment id vouches for",
        ),
        pytest.param(
            {"vouched": MOST_STRATA}, {"other", "9.0", "9.1"}, id="versions under assignment ids"
        ),
    ],
)
def test_what_uses_up_one_budget_of_strata_takes_no_room_from_the_other(
    any_store, evidence, brought, strata
):
    use_up_strata(any_store, "", **brought)
    loud = [Stratum("unnamed", version) for version in ("9.0", "9.1")]
    write(
        evidence,
        *(volume(-at, stratum=stratum) for at, stratum in enumerate(loud, 1)),
        start(0, GUARD),
    )
    assert {stratum.version for _, stratum in evidence.strata(HERE)} == strata


def test_one_producers_strata_take_no_room_from_another(any_store, evidence):
    use_up_strata(any_store, "loud", vouched=MOST_STRATA, volume=MOST_VOLUME_STRATA)
    events = (start(0, GUARD), volume(-1, stratum=Stratum("unnamed", "9.0")))
    evidence.write(HERE, EvidenceBatch(events, producer="quiet"))
    assert {stratum.version for _, stratum in evidence.strata(HERE)} == {"1.0.0", "9.0"}
    assert "overflow:cells" not in evidence.health(HERE)


def test_a_producer_may_bring_so_many_strata_of_volume_and_no_more(evidence):
    flood = [
        volume(at, stratum=Stratum("unnamed", f"v{at}")) for at in range(MOST_VOLUME_STRATA + 20)
    ]
    for first in range(0, len(flood), 1000):
        write(evidence, *flood[first : first + 1000])
    assert len(evidence.strata(HERE)) == MOST_VOLUME_STRATA + 1
    assert evidence.counters(HERE, FRIDAY)[Stratum("other", "other"), "points"] == 20
    assert evidence.health(HERE)["overflow:cells"] == 20


def test_a_stratum_without_use_is_forgotten_and_makes_room_for_another(any_store, evidence):
    retention, first = RetentionStore(any_store), SECOND // 86_400 * 86_400
    today = date(1970, 1, 1) + timedelta(seconds=first)
    kept, gone = Stratum("unnamed", "kept"), Stratum("unnamed", "gone")
    both = (volume(1, stratum=kept), volume(2, stratum=gone), start(4, GUARD))
    evidence.write(HERE, EvidenceBatch(both, producer="host", now_second=first))
    again = (volume(3, stratum=kept), start(6, GUARD))
    evidence.write(HERE, EvidenceBatch(again, producer="host", now_second=first + 86_400))

    tomorrow = today + timedelta(days=1)
    assert not retention.forget_strata(HERE, last_used_before=today)
    assert retention.forget_strata(HERE, last_used_before=tomorrow) == 1
    assert {stratum for _, stratum in evidence.strata(HERE)} == {kept, GUARD}
    held = any_store.hgetall(EvidenceKeys(HERE).strata)
    assert (held[b"#volume:host"], held[b"#vouched:host"]) == (b"1", b"1")
    assert not [field for field in held if b"gone" in field]

    evidence.write(HERE, EvidenceBatch((volume(8, stratum=gone),), producer="host"))
    assert dict(evidence.strata(HERE)) == {1: kept, 3: GUARD, 4: gone}
    after = retention.forget_strata(HERE, last_used_before=date(2100, 1, 1))
    assert (after, evidence.strata(HERE)) == (3, ())
    assert any_store.hgetall(EvidenceKeys(HERE).strata) == {b"#": b"4"}


def test_an_imported_stratum_is_kept_as_if_used_on_the_day_of_its_import(any_store, evidence):
    retention, today = RetentionStore(any_store), date(2026, 11, 27)
    imported = EvidenceImports(any_store).open(HERE, today=today)
    strata = [replace(GUARD, version=f"0.{number}") for number in range(3_000)]
    imported.add_counters([CounterTotal(FRIDAY, stratum, "points", 1) for stratum in strata])
    assert not retention.forget_strata(HERE, last_used_before=today)
    assert len(evidence.strata(HERE)) == 3_000
    assert retention.forget_strata(HERE, last_used_before=today + timedelta(days=1)) == 3_000
    assert evidence.strata(HERE) == ()


def test_beyond_the_bound_of_a_stratums_counters_they_become_other(evidence):
    events = [
        volume(number, stratum=GUARD, counter=f"points{{label={number}}}")
        for number in range(MOST_COUNTERS)
    ]
    write(evidence, *events)
    write(evidence, *(volume(-at, stratum=GUARD, counter=f"more {at}") for at in range(1, 6)))
    write(evidence, volume(-9, stratum=GUARD, counter="points{label=0}"))

    counted = evidence.counters(HERE, FRIDAY)
    assert len(counted) == MOST_COUNTERS + 1
    assert counted[GUARD, "other"] == 5
    assert counted[GUARD, "points{label=0}"] == 2
    assert evidence.health(HERE)["overflow:counters"] == 5


def test_a_version_that_takes_the_last_room_of_sources_has_a_time_to_be_forgotten_by(
    any_store, evidence
):
    key = EvidenceKeys(HERE).sources
    loud = {f'["loud","0.{number}","accepted"]': 1 for number in range(MOST_SOURCES - 1)}
    any_store.hset(key, mapping=loud)
    evidence.write(
        HERE, EvidenceBatch((volume(1, stratum=GUARD),), producer="p", now_second=SECOND)
    )
    beyond = replace(GUARD, version="beyond")
    evidence.write(
        HERE, EvidenceBatch((volume(2, stratum=beyond),), producer="p", now_second=SECOND)
    )

    held = {name: int(value) for name, value in any_store.hgetall(key).items()}
    for version in (GUARD.version, "other"):
        prefix = f'["p","{version}",'.encode()
        counts = {name.removeprefix(prefix): many for name, many in held.items() if prefix in name}
        assert counts == {b'"accepted"]': 1, b'"last_record_s"]': SECOND, b'"ahead_s"]': 0}


def test_evidence_is_kept_for_as_long_as_a_wave_may_be_evaluated(any_store, evidence):
    write(evidence, start(0, GUARD))
    ((number, _),) = evidence.strata(HERE)
    keys = EvidenceKeys(HERE)
    kept = timedelta(days=KEPT_DAYS).total_seconds()
    for key in (keys.owner_days(number, FRIDAY, 17), keys.day(FRIDAY)):
        assert kept - 60 < any_store.ttl(key) <= kept


def test_an_owner_keeps_the_newest_versions_and_producers(any_store, evidence):
    owner, oldest = "aaaaaaaaaaaaaaaa", FRIDAY - timedelta(days=16)
    older = FRIDAY - timedelta(days=3)
    seen = [
        OwnerActivity(owner, f"v{at:02}", f"p{at:02}", FRIDAY if at >= 8 else older, oldest, False)
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
    points_stream = Stream(stream, is_cumulative, SECOND * 10**6, (SECOND + at) * 10**6)
    stratum = replace(GUARD, source=EvidenceSource.COUNTERS)
    return PointEvent(
        DedupeKey(number, SECOND + at),
        FRIDAY,
        12,
        GUARD,
        "turns",
        points_stream,
        value,
        owner=PointOwner("aaaaaaaaaaaaaaaa", 17, stratum, (10,)),
        is_conforming=True,
    )


def send(
    evidence: EvidenceStore, producer: str, *points: PointEvent, now: int = SECOND
) -> WriteResult:
    return evidence.write(HERE, EvidenceBatch(points, producer=producer, now_second=now))


def leave_streams(store, producer: str, count: int, *, second: int = SECOND) -> None:
    """Write the streams that a producer reported in this second."""
    names = [f"{second}-{at}" for at in range(count)]
    for first in range(0, count, 10_000):
        store.zadd(
            f"sn:{{{HERE}:0}}:{producer}", dict.fromkeys(names[first : first + 10_000], second)
        )


def test_a_producer_keeps_65536_streams_and_takes_none_from_another(any_store, evidence):
    leave_streams(any_store, "loud", MOST_STREAMS - 10)
    written = send(evidence, "loud", *(point(f"s-{at}", 1) for at in range(60)))
    assert written == WriteResult(60, 0, over_limit=50)
    assert len(any_store.keys("cs:*")) == 10
    assert evidence.counters(HERE, FRIDAY) == {(GUARD, "turns"): 10}
    assert evidence.health(HERE)["streams:over_limit"] == 50
    day = any_store.hgetall(EvidenceKeys(HERE).day(FRIDAY))
    assert (int(day[b"crecords"]), int(day[b"cconforming"])) == (60, 10)

    assert send(evidence, "loud", point("s-0", 3, at=90), point("more", 9)).over_limit == 1
    assert send(evidence, "quiet", point("other", 100)).over_limit == 0
    assert evidence.counters(HERE, FRIDAY) == {(GUARD, "turns"): 10 + 2 + 100}
    assert evidence.health(HERE)["streams:over_limit"] == 51


def test_a_delta_beyond_the_bound_of_streams_adds_its_value(any_store, evidence):
    leave_streams(any_store, "loud", MOST_STREAMS)
    written = send(evidence, "loud", point("new", 7, is_cumulative=False))
    assert written == WriteResult(1, 0)
    assert any_store.keys("cs:*") == []
    assert evidence.counters(HERE, FRIDAY) == {(GUARD, "turns"): 7}
    assert evidence.health(HERE)["streams:over_limit"] == 1


def test_streams_that_ended_make_room_when_no_point_of_them_is_accepted(any_store, evidence):
    leave_streams(any_store, "loud", MOST_STREAMS)
    ended = SECOND + STREAM_ENDS_S
    assert send(evidence, "loud", point("early", 1), now=ended).over_limit == 1
    assert send(evidence, "loud", point("late", 1), now=ended + 1).over_limit == 0
    # Until a week is over it is known what they added, should one of them go on after all.
    assert any_store.zcard(f"sn:{{{HERE}:0}}:loud") == MOST_STREAMS + 1


def test_a_stream_that_rested_for_days_goes_on_from_what_it_added(evidence):
    rested = SECOND + STREAM_ENDS_S + 3_600
    send(evidence, "host", point("s", 5))
    send(evidence, "host", point("s", 8, at=rested - SECOND), now=rested)
    assert evidence.counters(HERE, FRIDAY) == {(GUARD, "turns"): 8}


def test_what_is_known_of_streams_that_ended_is_bounded_too(any_store, evidence):
    for later in range(4):
        leave_streams(any_store, "loud", MOST_KNOWN_STREAMS // 4, second=SECOND + later)
    ended, forgotten = SECOND + 3 + STREAM_ENDS_S + 1, SECOND + STREAM_KEPT_S + 1
    assert send(evidence, "loud", point("new", 1), now=ended).over_limit == 1
    assert send(evidence, "loud", point("newer", 1), now=forgotten).over_limit == 0


def test_streams_without_a_point_for_a_week_are_forgotten(any_store, evidence):
    leave_streams(any_store, "loud", 20)
    send(evidence, "loud", point("late", 1), now=SECOND + STREAM_KEPT_S + 1)
    assert any_store.zrange(f"sn:{{{HERE}:0}}:loud", 0, -1) == [b"late"]
    assert len(any_store.keys("cs:*")) == 1
