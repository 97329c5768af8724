"""Evidence pages: the stored evidence in parts that fit in memory, for exports and pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from redis import Redis

from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay, unpack_owner_day
from guardwave.control_plane.stores.evidence.shards import shard_count, shard_of_owner
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import reply_int, reply_text, translate_store_errors


class DayBucket(NamedTuple):
    """One of the 256 owner buckets of a day."""

    day: date
    bucket: int

    @property
    def cursor(self) -> str:
        """Day and bucket as text, in the same order."""
        return f"{self.day.isoformat()}-{self.bucket:02x}"


class NumberedStratum(NamedTuple):
    """A stratum as one shard numbers it."""

    shard: int
    number: int
    stratum: Stratum


class StratumOwnerDay(NamedTuple):
    """An owner-day and its stratum."""

    stratum: Stratum
    row: OwnerDay


class CounterTotal(NamedTuple):
    """The total of one counter of a stratum on a day."""

    day: date
    stratum: Stratum
    counter: str
    total: int


class EvidencePages:
    """Reads the evidence of all environments in parts that fit in memory."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    def _shards(self, environment: str) -> tuple[EvidenceKeys, ...]:
        return tuple(EvidenceKeys(environment, shard) for shard in range(self._count))

    @translate_store_errors()
    def strata(self, environment: str) -> tuple[NumberedStratum, ...]:
        """Return every stratum of every shard, in the order of shards and numbers."""
        found = [
            NumberedStratum(keys.shard, reply_int(number), Stratum.from_name(reply_text(name)))
            for keys in self._shards(environment)
            for name, number in self._redis.hgetall(keys.strata).items()
            if reply_text(name)[0] != "#"
        ]
        return tuple(sorted(found, key=lambda numbered: (numbered.shard, numbered.number)))

    @translate_store_errors()
    def sizes(
        self, environment: str, strata: Sequence[NumberedStratum], buckets: Sequence[DayBucket]
    ) -> tuple[int, ...]:
        """Return how many owner-days of these strata each bucket holds."""
        keys_by_bucket = [self._keys_in(environment, strata, bucket) for bucket in buckets]
        pipe = self._redis.pipeline(transaction=False)
        for keys in keys_by_bucket:
            for _, key in keys:
                pipe.hlen(key)
        lengths = iter(pipe.execute())
        return tuple(sum(reply_int(next(lengths)) for _ in keys) for keys in keys_by_bucket)

    @translate_store_errors()
    def owner_days(
        self, environment: str, strata: Sequence[NumberedStratum], bucket: DayBucket
    ) -> tuple[StratumOwnerDay, ...]:
        """Return the owner-days of these strata in one bucket, by owner and stratum."""
        keys = self._keys_in(environment, strata, bucket)
        pipe = self._redis.pipeline(transaction=False)
        for _, key in keys:
            pipe.hgetall(key)
        found = [
            StratumOwnerDay(
                stratum, unpack_owner_day(reply_text(owner), bucket.day, stratum, packed)
            )
            for (stratum, _), rows in zip(keys, pipe.execute(), strict=True)
            for owner, packed in rows.items()
        ]
        return tuple(sorted(found, key=_order))

    def _keys_in(
        self, environment: str, strata: Sequence[NumberedStratum], bucket: DayBucket
    ) -> list[tuple[Stratum, str]]:
        keys = EvidenceKeys(environment, shard_of_owner(bucket.bucket, self._count))
        return [
            (stratum, keys.owner_days(number, bucket.day, bucket.bucket))
            for shard, number, stratum in strata
            if shard == keys.shard
        ]

    @translate_store_errors()
    def counters(
        self, environment: str, strata: Sequence[NumberedStratum], day: date
    ) -> tuple[CounterTotal, ...]:
        """Return all counters of these strata on a day, by stratum and name."""
        pipe = self._redis.pipeline(transaction=False)
        for shard, number, _ in strata:
            pipe.hgetall(EvidenceKeys(environment, shard).counters(number, day))
        totals: Counter[tuple[Stratum, str]] = Counter()
        for (_, _, stratum), fields in zip(strata, pipe.execute(), strict=True):
            for counter, total in fields.items():
                totals[stratum, reply_text(counter)] += reply_int(total)
        found = (
            CounterTotal(day, stratum, counter, total)
            for (stratum, counter), total in totals.items()
        )
        return tuple(sorted(found, key=lambda total: (total.stratum.name, total.counter)))

    @translate_store_errors()
    def day_fields(self, environment: str, day: date) -> Mapping[str, str]:
        """Return the fields of a day: its seal, its sums and the rest, but no owner-days.

        Whole numbers of several shards are added up; of other values the first shard's counts. A
        day that is not sealed in every shard is not sealed.
        """
        by_shard = [self._redis.hgetall(keys.day(day)) for keys in self._shards(environment)]
        merged: dict[str, str] = {}
        for fields in by_shard:
            for stored_name, stored in fields.items():
                name, value = reply_text(stored_name), reply_text(stored)
                before = merged.setdefault(name, "0" if value.isdecimal() else value)
                if value.isdecimal() and before.isdecimal():
                    merged[name] = str(int(before) + int(value))
        if not all(b"sealed_at" in fields for fields in by_shard):
            merged.pop("sealed_at", None)
        return dict(sorted(merged.items()))


def _order(found: StratumOwnerDay) -> tuple[str, str]:
    return found.row.owner, found.stratum.name
