"""Owner-level evidence: written exactly once by one atomic call, read as owner-days."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.functions import call
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.owner_days import OwnerDay, unpacked, whole_prompts
from control_plane.stores.replies import parts, text, whole
from control_plane.stores.sealed_days import DayFields, HeldDays
from control_plane.stores.shards import buckets_of, shard_count, shard_of_owner, split
from reducer.rollout.days import SealedDay
from reducer.rollout.state import EvidenceSource

# In real time since the last write; evidence.lua holds the same.
KEPT_DAYS = 120
LAST_RECORD = "last_record_s"
_READ_AT_ONCE = 512
# The store serves nobody else during a call, and a worker has other work, too.
_LOST_AT_ONCE, _LOST_CALLS = 100, 20


@dataclass(frozen=True, slots=True)
class Written:
    """How many events of a batch were new, and how many had been seen before.

    Of the new ones these are points that add nothing: those of streams beyond what their producer
    may keep, and those of starts of a stream that were forgotten.
    """

    new: int
    duplicate: int
    over_limit: int = 0
    forgotten: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(
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

    @unavailable()
    def write(self, environment: str, batch: EvidenceBatch) -> Written:
        """Add a batch; what was seen before is counted as duplicate and adds nothing.

        Safe to repeat after any failure: the identities and the sums of a shard are written by one
        call. On a cluster a failure may come after the calls of some shards; a repetition then
        counts their events as duplicates and adds the others.
        """
        written = Written(0, 0)
        for shard, part in split(batch, self._count):
            keys = EvidenceKeys(environment, shard)
            arguments = (keys.slot, part.packed())
            reply = call(self._redis, "gw_ingest", keys=[keys.days], arguments=arguments)
            written += Written(*map(whole, parts(reply, 4)))
        return written

    @unavailable()
    def lose_overdue(self, environment: str, now: datetime, *, at_once: int = _LOST_AT_ONCE) -> int:
        """Close prompts that had no end for 24 hours as lost; answer how many.

        One call of the store closes at most `at_once` of a shard, and 20 calls are made while there
        are more; what is due after them is left for the next time.
        """
        lost = 0
        for keys in self._shards(environment):
            arguments = (keys.slot, int(now.timestamp()), at_once)
            for _ in range(_LOST_CALLS):
                reply = call(self._redis, "gw_lose", keys=[keys.due], arguments=arguments)
                closed, due = map(whole, parts(reply, 2))
                lost += closed
                if due < at_once:
                    break
        return lost

    @unavailable()
    def days(self, environment: str) -> tuple[date, ...]:
        """Return all days that hold anything, in order."""
        found = {
            text(day)
            for keys in self._shards(environment)
            for day in self._redis.smembers(keys.days)
        }
        return tuple(sorted(map(date.fromisoformat, found)))

    @unavailable()
    def seal(
        self, environment: str, day: date, *, at: datetime, longest_outage_seconds: float | None
    ) -> bool:
        """Seal a day in every shard; False when it was sealed before."""
        outage = "" if longest_outage_seconds is None else f"{longest_outage_seconds:.3f}"
        arguments = (day.isoformat(), at.isoformat(), outage)
        sealed = 0
        for keys in self._shards(environment):
            names = [keys.day(day), keys.days]
            sealed += whole(call(self._redis, "gw_seal", keys=names, arguments=arguments))
        return sealed > 0

    @unavailable()
    def sealed_days(
        self,
        environment: str,
        days: Iterable[date],
        source: EvidenceSource = EvidenceSource.EVENTS,
    ) -> tuple[SealedDay, ...]:
        """Return those of the days that are sealed, in the order given, as this source shows them.

        What counters do not tell is said at `HeldDays.sealed`.
        """
        return self.held_days(environment, days).sealed(source)

    @unavailable()
    def held_days(self, environment: str, days: Iterable[date]) -> HeldDays:
        """Read all that is held of these days, once, whatever is asked of them then."""
        wanted = tuple(days)
        around = {day + timedelta(days=by) for day in wanted for by in (-1, 0, 1)}
        return HeldDays(wanted, self._fields_of(environment, around))

    def _fields_of(self, environment: str, days: Iterable[date]) -> dict[date, DayFields]:
        asked, shards = sorted(days), self._shards(environment)
        pipe = self._redis.pipeline(transaction=False)
        for day in asked:
            for keys in shards:
                pipe.hgetall(keys.day(day))
        found = pipe.execute()
        return {
            day: DayFields(found[at * len(shards) : (at + 1) * len(shards)])
            for at, day in enumerate(asked)
        }

    @unavailable()
    def cells(self, environment: str) -> tuple[tuple[int, Cell], ...]:
        """Return every cell of the environment with its number; each shard has its own numbers."""
        return tuple(
            numbered for keys in self._shards(environment) for numbered in self._cells_of(keys)
        )

    def _cells_of(self, keys: EvidenceKeys) -> tuple[tuple[int, Cell], ...]:
        stored = self._redis.hgetall(keys.cells)
        named = ((text(name), number) for name, number in stored.items())
        cells = ((whole(number), Cell.named(name)) for name, number in named if name[0] != "#")
        return tuple(sorted(cells, key=_number))

    @unavailable()
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

        One owner has two rows on a day when it reported with two versions or in two modes.
        """
        rows: list[OwnerDay] = []
        for keys in self._shards(environment):
            chosen = [
                (number, cell)
                for number, cell in self._cells_of(keys)
                if cell.guard == guard
                and cell.wave == wave
                and cell.cohort is not None
                and cell.source is source
            ]
            rows += self._rows(keys, chosen, days)
        rows.sort(key=_place)
        if source is EvidenceSource.EVENTS:
            return tuple(rows)
        return tuple(sorted(whole_prompts(rows), key=_place))

    def _rows(
        self, keys: EvidenceKeys, cells: Sequence[tuple[int, Cell]], days: Sequence[date]
    ) -> Iterator[OwnerDay]:
        wanted = [
            (cell, day, keys.owner_days(number, day, bucket))
            for number, cell in cells
            for day in days
            for bucket in buckets_of(keys.shard, self._count)
        ]
        for start in range(0, len(wanted), _READ_AT_ONCE):
            part = wanted[start : start + _READ_AT_ONCE]
            pipe = self._redis.pipeline(transaction=False)
            for _, _, key in part:
                pipe.hgetall(key)
            for (cell, day, _), held in zip(part, pipe.execute(), strict=True):
                for owner, packed in held.items():
                    yield unpacked(text(owner), day, cell, packed)

    @unavailable()
    def owner_rows(
        self, environment: str, pseudonym: str, bucket: int, days: Sequence[date]
    ) -> tuple[tuple[Cell, OwnerDay], ...]:
        """Return one owner's owner-days on these days, with the cell of each."""
        keys = EvidenceKeys(environment, shard_of_owner(bucket, self._count))
        wanted = [
            (cell, day, keys.owner_days(number, day, bucket))
            for number, cell in self._cells_of(keys)
            if cell.cohort is not None
            for day in days
        ]
        pipe = self._redis.pipeline(transaction=False)
        for _, _, key in wanted:
            pipe.hget(key, pseudonym)
        found = zip(wanted, pipe.execute(), strict=True)
        return tuple(
            (cell, unpacked(pseudonym, day, cell, packed))
            for (cell, day, _), packed in found
            if packed is not None
        )

    @unavailable()
    def counters(self, environment: str, day: date) -> dict[tuple[Cell, str], int]:
        """Return the day's volume counters by cell and counter name."""
        counted: Counter[tuple[Cell, str]] = Counter()
        for keys in self._shards(environment):
            for number, cell in self._cells_of(keys):
                for counter, value in self._redis.hgetall(keys.counters(number, day)).items():
                    counted[cell, text(counter)] += whole(value)
        return dict(counted)

    @unavailable()
    def health(self, environment: str) -> dict[str, int]:
        """Return intake's counters of the environment; absent ones were never counted."""
        counted: Counter[str] = Counter()
        newest = 0
        for keys in self._shards(environment):
            stored = {text(name): value for name, value in self._redis.hgetall(keys.health).items()}
            newest = max(newest, whole(stored.pop(LAST_RECORD, None)))
            counted.update({name: whole(value) for name, value in stored.items()})
        return {**counted, LAST_RECORD: newest} if newest else dict(counted)


def _place(row: OwnerDay) -> tuple[date, str, str, str]:
    return row.day, row.owner, row.cohort, row.version


def _number(numbered: tuple[int, Cell]) -> int:
    return numbered[0]
