"""What intake counted, by producer and version, and which treatment its records still show."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from redis import Redis

from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.replies import text, whole
from control_plane.stores.shards import shard_count
from reducer.vocabulary import Mode

# A counter of intake: records whose Resource names no instance. Processes may then look like one.
WEAK_IDENTITY = "weak_identity"
# What of a source's counters is no count, as `SourceCounts` says.
LAST_HEARD = "last_heard_s"
NO_COUNTS = ("last_record_s", LAST_HEARD, "ahead_s")


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What came from one producer, by the id of its token, with one service version.

    An empty version says that the items named none. `counts` are counters of intake; some of
    them are no counts: `last_record_s` is when the last record came, `last_heard_s` when something
    came of which nothing new was accepted, `ahead_s` how many seconds the newest record of the last
    request lay ahead of the clock here, negative behind it.
    """

    producer: str
    version: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """What of one process was refused as `late` or `future`, and the gaps between its deltas.

    `instance` is a digest of what it calls itself: the 64-bit BLAKE2b of its
    `service.instance.id`, hexadecimal. It is known for 7 days after `last_second`, and the 32 that
    showed something last, of each shard, are known at all.
    """

    instance: str
    producer: str
    version: str
    late: int
    future: int
    gaps: int
    last_second: int

    @property
    def last_at(self) -> datetime:
        """When it last showed that something is wrong."""
        return datetime.fromtimestamp(self.last_second, UTC)


@dataclass(frozen=True, slots=True)
class TreatedRecords:
    """Records of prompts under assignment ids of one mode above shadow and one generation."""

    guard: str
    mode: Mode
    generation: int
    records: int
    last_second: int


class TreatedCounts(NamedTuple):
    """How many records came under one kind of assignment id, and the second of the last one."""

    records: int = 0
    last: int = 0

    def with_part(self, part: str, value: int) -> "TreatedCounts":
        """Return the counts with a shard's part added."""
        if part == "records":
            return self._replace(records=self.records + value)
        return self._replace(last=max(self.last, value))


class IntakeHealthStore:
    """Intake's health of all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    @unavailable()
    def sources(self, environment: str) -> tuple[SourceCounts, ...]:
        """Return what was counted of each producer and version, sorted by them."""
        merged: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for shard in range(self._count):
            for of, counts in self._sources_of(EvidenceKeys(environment, shard)).items():
                merged[of] = _merged(merged[of], counts)
        return tuple(SourceCounts(*of, counts) for of, counts in sorted(merged.items()))

    def _sources_of(self, keys: EvidenceKeys) -> Mapping[tuple[str, str], Mapping[str, int]]:
        counted: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for name, value in self._redis.hgetall(keys.sources).items():
            producer, version, counter = json.loads(name)
            counted[producer, version][counter] = whole(value)
        return counted

    @unavailable()
    def instances(self, environment: str) -> tuple[InstanceCounts, ...]:
        """Return the processes whose clock may be wrong or whose deltas have gaps, worst first."""
        found: dict[str, InstanceCounts] = {}
        for shard in range(self._count):
            for name, told in self._redis.hgetall(
                EvidenceKeys(environment, shard).instances
            ).items():
                counts = _instance(text(name), json.loads(told))
                held = found.get(counts.instance)
                found[counts.instance] = counts if held is None else _together(held, counts)
        return tuple(sorted(found.values(), key=_least_wrong, reverse=True))

    @unavailable()
    def treated(self, environment: str) -> tuple[TreatedRecords, ...]:
        """Return how many records came under ids that give more than shadow, and when the last."""
        told: defaultdict[str, TreatedCounts] = defaultdict(TreatedCounts)
        for shard in range(self._count):
            stored = self._redis.hgetall(EvidenceKeys(environment, shard).treated)
            for name, value in stored.items():
                which, _, part = text(name).rpartition("|")
                told[which] = told[which].with_part(part, whole(value))
        return tuple(
            _treated(which, counts) for which, counts in sorted(told.items()) if "|" in which
        )

    @unavailable()
    def forget_treated(self, environment: str, *, before_second: int) -> int:
        """Forget ids whose last record is older; answer of how many."""
        old = [each for each in self.treated(environment) if each.last_second < before_second]
        names = [f"{each.guard}|{each.mode}|{each.generation}" for each in old]
        if names:
            parts = [f"{name}|{part}" for name in names for part in ("records", "last")]
            for shard in range(self._count):
                self._redis.hdel(EvidenceKeys(environment, shard).treated, *parts)
        return len(old)


def _merged(held: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, int]:
    """Add up what two shards counted; of what is no count, the newer shard's stands."""
    newer, older = counts, held
    if held.get("last_record_s", 0) > counts.get("last_record_s", 0):
        newer, older = held, counts
    return {
        name: newer.get(name, older.get(name, 0))
        if name in NO_COUNTS
        else held.get(name, 0) + counts.get(name, 0)
        for name in held.keys() | counts.keys()
    }


def _instance(name: str, told: Mapping[str, str | int]) -> InstanceCounts:
    counts = (int(told[each]) for each in ("late", "future", "gap", "at"))
    return InstanceCounts(name, str(told["producer"]), str(told["version"]), *counts)


def _together(one: InstanceCounts, other: InstanceCounts) -> InstanceCounts:
    older, newer = sorted((one, other), key=lambda each: each.last_second)
    return replace(
        newer,
        late=older.late + newer.late,
        future=older.future + newer.future,
        gaps=older.gaps + newer.gaps,
    )


def _least_wrong(counts: InstanceCounts) -> tuple[int, str]:
    return counts.late + counts.future + counts.gaps, counts.instance


def _treated(which: str, counts: TreatedCounts) -> TreatedRecords:
    guard, mode, generation = which.split("|")
    return TreatedRecords(guard, Mode(mode), int(generation), counts.records, counts.last)
