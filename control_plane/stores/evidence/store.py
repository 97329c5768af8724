"""Evidence store: evidence of owners, written exactly once by atomic calls, read as owner-days."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from redis import Redis

from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.owner_days import (
    OwnerDay,
    unpack_owner_day,
    whole_prompts,
)
from guardwave.control_plane.stores.evidence.sealed_days import DayFields, StoredDays
from guardwave.control_plane.stores.evidence.shards import (
    buckets_of,
    shard_count,
    shard_of_owner,
    split,
)
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import (
    call,
    reply_int,
    reply_parts,
    reply_text,
    translate_store_errors,
)
from guardwave.reducer.rollout.days import SealedDay
from guardwave.reducer.rollout.state import EvidenceSource

# In real time since the last write; the Lua library holds the same.
KEPT_DAYS = 120
LAST_RECORD = "last_record_s"
_READ_AT_ONCE = 512
# The store serves nobody else during a call, and a worker has other work, too.
_LOST_AT_ONCE, _LOST_CALLS = 100, 20


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many events of a batch were new, and how many were duplicates.

    Two kinds of new points add nothing: those of streams beyond their producer's limit, and those
    of a stream's start that the store has forgotten.
    """

    new: int
    duplicate: int
    over_limit: int = 0
    forgotten: int = 0

    def __add__(self, other: "WriteResult") -> "WriteResult":
        return WriteResult(
            self.new + other.new,
            self.duplicate + other.duplicate,
            self.over_limit + other.over_limit,
            self.forgotten + other.forgotten,
        )


class EvidenceStore:
    """The evidence of all environments, each in one shard, or in 16 on a cluster."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    def _shards(self, environment: str) -> tuple[EvidenceKeys, ...]:
        return tuple(EvidenceKeys(environment, shard) for shard in range(self._count))

    @translate_store_errors()
    def write(self, environment: str, batch: EvidenceBatch) -> WriteResult:
        """Add a batch; events that are known already count as duplicates and add nothing.

        Safe to repeat after any failure: one call writes the identities and the sums of a shard.
        On a cluster a failure may come after the calls of some shards; a repetition then counts
        their events as duplicates and adds the others.
        """
        written = WriteResult(0, 0)
        for shard, part in split(batch, self._count):
            keys = EvidenceKeys(environment, shard)
            arguments = (keys.slot, part.packed())
            reply = call(self._redis, "gw_ingest", keys=[keys.days], arguments=arguments)
            written += WriteResult(*map(reply_int, reply_parts(reply, 4)))
        return written

    @translate_store_errors()
    def close_lost_prompts(
        self, environment: str, now: datetime, *, at_once: int = _LOST_AT_ONCE
    ) -> int:
        """Close prompts that had no end for 24 hours as lost; return how many.

        One call closes at most `at_once` prompts of a shard, and a shard gets 20 calls at most; the
        rest waits for the next time.
        """
        lost = 0
        for keys in self._shards(environment):
            arguments = (keys.slot, int(now.timestamp()), at_once)
            for _ in range(_LOST_CALLS):
                reply = call(self._redis, "gw_lose", keys=[keys.due], arguments=arguments)
                closed, due = map(reply_int, reply_parts(reply, 2))
                lost += closed
                if due < at_once:
                    break
        return lost

    @translate_store_errors()
    def days(self, environment: str) -> tuple[date, ...]:
        """Return all days with evidence, in order."""
        found = {
            reply_text(day)
            for keys in self._shards(environment)
            for day in self._redis.smembers(keys.days)
        }
        return tuple(sorted(map(date.fromisoformat, found)))

    @translate_store_errors()
    def seal(
        self, environment: str, day: date, *, at: datetime, longest_outage_seconds: float | None
    ) -> bool:
        """Seal a day in every shard; False when it was sealed before."""
        outage = "" if longest_outage_seconds is None else f"{longest_outage_seconds:.3f}"
        arguments = (day.isoformat(), at.isoformat(), outage)
        sealed = 0
        for keys in self._shards(environment):
            names = [keys.day(day), keys.days]
            sealed += reply_int(call(self._redis, "gw_seal", keys=names, arguments=arguments))
        return sealed > 0

    @translate_store_errors()
    def sealed_days(
        self,
        environment: str,
        days: Iterable[date],
        source: EvidenceSource = EvidenceSource.EVENTS,
    ) -> tuple[SealedDay, ...]:
        """Return the sealed ones of the days, in the order given (`StoredDays.sealed`)."""
        return self.stored_days(environment, days).sealed(source)

    @translate_store_errors()
    def stored_days(self, environment: str, days: Iterable[date]) -> StoredDays:
        """Read the fields of these days, and of the days beside them, in one round trip."""
        wanted = tuple(days)
        with_neighbours = {day + timedelta(days=by) for day in wanted for by in (-1, 0, 1)}
        return StoredDays(wanted, self._fields_of(environment, sorted(with_neighbours)))

    def _fields_of(self, environment: str, days: Sequence[date]) -> dict[date, DayFields]:
        shards = self._shards(environment)
        pipe = self._redis.pipeline(transaction=False)
        for day in days:
            for keys in shards:
                pipe.hgetall(keys.day(day))
        replies = pipe.execute()
        return {
            day: DayFields(replies[at * len(shards) : (at + 1) * len(shards)])
            for at, day in enumerate(days)
        }

    @translate_store_errors()
    def strata(self, environment: str) -> tuple[tuple[int, Stratum], ...]:
        """Return every stratum with its number; each shard has its own numbers."""
        return tuple(
            numbered for keys in self._shards(environment) for numbered in self._strata_of(keys)
        )

    def _strata_of(self, keys: EvidenceKeys) -> tuple[tuple[int, Stratum], ...]:
        stored = self._redis.hgetall(keys.strata)
        named = ((reply_text(name), number) for name, number in stored.items())
        # Names are JSON arrays; fields that begin with # hold their numbers, days and budgets.
        strata = (
            (reply_int(number), Stratum.from_name(name)) for name, number in named if name[0] != "#"
        )
        return tuple(sorted(strata, key=_number))

    @translate_store_errors()
    def owner_days(
        self,
        environment: str,
        guard: str,
        wave: int,
        days: Sequence[date],
        *,
        source: EvidenceSource = EvidenceSource.EVENTS,
    ) -> tuple[OwnerDay, ...]:
        """Return the wave's owner-days on these days, sorted by day and owner.

        An owner has several rows on a day when it reported with several versions or modes.
        """
        rows: list[OwnerDay] = []
        for keys in self._shards(environment):
            strata = [
                (number, stratum)
                for number, stratum in self._strata_of(keys)
                if stratum.guard == guard
                and stratum.wave == wave
                and stratum.cohort is not None
                and stratum.source is source
            ]
            rows += self._rows(keys, strata, days)
        rows.sort(key=_order)
        if source is EvidenceSource.EVENTS:
            return tuple(rows)
        return tuple(sorted(whole_prompts(rows), key=_order))

    def _rows(
        self, keys: EvidenceKeys, strata: Sequence[tuple[int, Stratum]], days: Sequence[date]
    ) -> Iterator[OwnerDay]:
        wanted = [
            (stratum, day, keys.owner_days(number, day, bucket))
            for number, stratum in strata
            for day in days
            for bucket in buckets_of(keys.shard, self._count)
        ]
        for start in range(0, len(wanted), _READ_AT_ONCE):
            part = wanted[start : start + _READ_AT_ONCE]
            pipe = self._redis.pipeline(transaction=False)
            for _, _, key in part:
                pipe.hgetall(key)
            for (stratum, day, _), stored in zip(part, pipe.execute(), strict=True):
                for owner, packed in stored.items():
                    yield unpack_owner_day(reply_text(owner), day, stratum, packed)

    @translate_store_errors()
    def owner_rows(
        self, environment: str, pseudonym: str, bucket: int, days: Sequence[date]
    ) -> tuple[tuple[Stratum, OwnerDay], ...]:
        """Return one owner's owner-days on these days, with the stratum of each."""
        keys = EvidenceKeys(environment, shard_of_owner(bucket, self._count))
        wanted = [
            (stratum, day, keys.owner_days(number, day, bucket))
            for number, stratum in self._strata_of(keys)
            if stratum.cohort is not None
            for day in days
        ]
        pipe = self._redis.pipeline(transaction=False)
        for _, _, key in wanted:
            pipe.hget(key, pseudonym)
        found = zip(wanted, pipe.execute(), strict=True)
        return tuple(
            (stratum, unpack_owner_day(pseudonym, day, stratum, packed))
            for (stratum, day, _), packed in found
            if packed is not None
        )

    @translate_store_errors()
    def counters(self, environment: str, day: date) -> dict[tuple[Stratum, str], int]:
        """Return the day's volume counters by stratum and counter name."""
        counted: Counter[tuple[Stratum, str]] = Counter()
        for keys in self._shards(environment):
            for number, stratum in self._strata_of(keys):
                for counter, value in self._redis.hgetall(keys.counters(number, day)).items():
                    counted[stratum, reply_text(counter)] += reply_int(value)
        return dict(counted)

    @translate_store_errors()
    def health(self, environment: str) -> dict[str, int]:
        """Return intake's counters of the environment; one that was never raised is absent."""
        counted: Counter[str] = Counter()
        newest = 0
        for keys in self._shards(environment):
            stored = {
                reply_text(name): value for name, value in self._redis.hgetall(keys.health).items()
            }
            newest = max(newest, reply_int(stored.pop(LAST_RECORD, None)))
            counted.update({name: reply_int(value) for name, value in stored.items()})
        return {**counted, LAST_RECORD: newest} if newest else dict(counted)


def _order(row: OwnerDay) -> tuple[date, str, str, str]:
    return row.day, row.owner, row.cohort, row.version


def _number(numbered: tuple[int, Stratum]) -> int:
    return numbered[0]
