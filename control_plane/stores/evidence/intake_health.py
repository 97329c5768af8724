"""Intake health: counters by producer, version and process, and records under treatment."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from redis import Redis

from guardwave.control_plane.stores.evidence.shards import shard_count
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import reply_int, reply_text, translate_store_errors
from guardwave.reducer.vocabulary import Mode

# A counter of intake: records whose Resource names no instance, so processes look like one.
WEAK_IDENTITY = "weak_identity"
# Counters of a source that hold a last value, as `SourceCounts` describes.
LAST_HEARD = "last_heard_s"
GAUGES = ("last_record_s", LAST_HEARD, "ahead_s")


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Intake's counters for one producer (the id of its token) and one service version.

    The version is empty when items named none. Some `counts` are last values: `last_record_s` is
    when the last record came, `last_heard_s` when the last request without a new record came,
    `ahead_s` how many seconds the newest record of the last request was ahead of the clock here
    (negative: behind it).
    """

    producer: str
    version: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """One process's records rejected as `late` or `future`, and gaps between its deltas.

    `instance` is the 64-bit BLAKE2b of its `service.instance.id`, hexadecimal. Each shard keeps
    the 32 processes with the newest such records, for 7 days after `last_second`.
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
        """The time of the last rejected record or gap."""
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
    """The count of records under one kind of assignment id, and the second of the last one."""

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

    @translate_store_errors()
    def sources(self, environment: str) -> tuple[SourceCounts, ...]:
        """Return the counters of each producer and version, sorted by them."""
        merged: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for shard in range(self._count):
            for source, counts in self._sources_of(EvidenceKeys(environment, shard)).items():
                merged[source] = _merge_counts(merged[source], counts)
        return tuple(SourceCounts(*source, counts) for source, counts in sorted(merged.items()))

    def _sources_of(self, keys: EvidenceKeys) -> Mapping[tuple[str, str], Mapping[str, int]]:
        counted: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for name, value in self._redis.hgetall(keys.sources).items():
            producer, version, counter = json.loads(name)
            counted[producer, version][counter] = reply_int(value)
        return counted

    @translate_store_errors()
    def instances(self, environment: str) -> tuple[InstanceCounts, ...]:
        """Return the processes whose clock may be wrong or whose deltas have gaps, worst first."""
        found: dict[str, InstanceCounts] = {}
        for shard in range(self._count):
            stored = self._redis.hgetall(EvidenceKeys(environment, shard).instances)
            for name, packed in stored.items():
                counts = _instance(reply_text(name), json.loads(packed))
                other = found.get(counts.instance)
                found[counts.instance] = counts if other is None else _merge(other, counts)
        return tuple(sorted(found.values(), key=_least_wrong, reverse=True))

    @translate_store_errors()
    def treated_records(self, environment: str) -> tuple[TreatedRecords, ...]:
        """Return the records under assignment ids above shadow, by guard, mode and generation."""
        found: defaultdict[str, TreatedCounts] = defaultdict(TreatedCounts)
        for shard in range(self._count):
            stored = self._redis.hgetall(EvidenceKeys(environment, shard).treated)
            for name, value in stored.items():
                treatment, _, part = reply_text(name).rpartition("|")
                found[treatment] = found[treatment].with_part(part, reply_int(value))
        return tuple(
            _treated(treatment, counts)
            for treatment, counts in sorted(found.items())
            # Beyond its bound the store counts all others under one name without these parts.
            if "|" in treatment
        )

    @translate_store_errors()
    def forget_treated(self, environment: str, *, before_second: int) -> int:
        """Forget treatments whose last record is older; return how many."""
        names = [
            f"{found.guard}|{found.mode}|{found.generation}"
            for found in self.treated_records(environment)
            if found.last_second < before_second
        ]
        if names:
            parts = [f"{name}|{part}" for name in names for part in ("records", "last")]
            for shard in range(self._count):
                self._redis.hdel(EvidenceKeys(environment, shard).treated, *parts)
        return len(names)


def _merge_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Add up the counts of two shards; of last values, keep those of the newer shard."""
    newer, older = other, one
    if one.get("last_record_s", 0) > other.get("last_record_s", 0):
        newer, older = one, other
    return {
        name: newer.get(name, older.get(name, 0))
        if name in GAUGES
        else one.get(name, 0) + other.get(name, 0)
        for name in one.keys() | other.keys()
    }


def _instance(name: str, stored: Mapping[str, str | int]) -> InstanceCounts:
    counts = (int(stored[counter]) for counter in ("late", "future", "gap", "at"))
    return InstanceCounts(name, str(stored["producer"]), str(stored["version"]), *counts)


def _merge(one: InstanceCounts, other: InstanceCounts) -> InstanceCounts:
    older, newer = sorted((one, other), key=lambda counts: counts.last_second)
    return replace(
        newer,
        late=older.late + newer.late,
        future=older.future + newer.future,
        gaps=older.gaps + newer.gaps,
    )


def _least_wrong(counts: InstanceCounts) -> tuple[int, str]:
    return counts.late + counts.future + counts.gaps, counts.instance


def _treated(treatment: str, counts: TreatedCounts) -> TreatedRecords:
    guard, mode, generation = treatment.split("|")
    return TreatedRecords(guard, Mode(mode), int(generation), counts.records, counts.last)
