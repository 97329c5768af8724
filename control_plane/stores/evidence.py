"""Owner-level evidence: written exactly once by one atomic call, read as owner-days."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import msgpack
from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.keys import EvidenceKeys
from reducer.rollout.days import SealedDay
from reducer.vocabulary import Cohort

OWNER_BUCKETS = 256
HOURS = 24
_READ_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Written:
    """How many events of a batch were new, and how many had been seen before."""

    new: int
    duplicate: int


@dataclass(frozen=True, slots=True)
class OwnerDay:
    """What one owner's prompts of one day added up to, in one cell.

    `started` counts prompts; every other count is of those. `durations` holds pairs of a base-2
    exponential bucket at scale 7 (seconds) and its count.
    """

    owner: str
    day: date
    cohort: Cohort
    started: int
    cancelled: int
    completed: int
    failed: int
    guard_stopped: int
    limit: int
    lost: int
    disrupted: int
    tokens: int
    turns: int
    would_stopped: int
    stopped: int
    calls_after_would_stop: int
    unreliable: int
    covered: int
    ended: int
    durations: tuple[tuple[int, int], ...] = ()


_SUMS = 16


class EvidenceStore:
    """The evidence of all environments. One shard stands in each until clusters are supported."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def write(self, environment: str, batch: EvidenceBatch) -> Written:
        """Add a batch atomically; what was seen before is counted as duplicate and adds nothing.

        Safe to repeat after any failure: the identities and the sums are written by one call.
        """
        keys = EvidenceKeys(environment)
        new, duplicate = self._redis.fcall("gw_ingest", 1, keys.days, keys.slot, batch.packed())
        return Written(int(new), int(duplicate))

    @unavailable()
    def lose_overdue(self, environment: str, now: datetime, *, at_most: int = 1000) -> int:
        """Close prompts that had no end for 24 hours as lost; answer how many."""
        keys = EvidenceKeys(environment)
        second = int(now.timestamp())
        return int(self._redis.fcall("gw_lose", 1, keys.due, keys.slot, second, at_most))

    @unavailable()
    def days(self, environment: str) -> tuple[date, ...]:
        """Return all days that hold anything, in order."""
        found = self._redis.smembers(EvidenceKeys(environment).days)
        return tuple(sorted(date.fromisoformat(day.decode()) for day in found))

    @unavailable()
    def seal(
        self, environment: str, day: date, *, at: datetime, longest_outage_seconds: float | None
    ) -> bool:
        """Seal a day; False when it was sealed before."""
        keys = EvidenceKeys(environment)
        outage = "" if longest_outage_seconds is None else f"{longest_outage_seconds:.3f}"
        numbers = [day.isoformat(), at.isoformat(), outage]
        return bool(self._redis.fcall("gw_seal", 2, keys.day(day), keys.days, *numbers))

    @unavailable()
    def sealed_days(self, environment: str, days: Iterable[date]) -> tuple[SealedDay, ...]:
        """Return those of the days that are sealed, in the order given."""
        wanted = list(days)
        pipe = self._redis.pipeline(transaction=False)
        for day in wanted:
            pipe.hgetall(EvidenceKeys(environment).day(day))
        held = zip(wanted, pipe.execute(), strict=True)
        return tuple(_sealed(day, fields) for day, fields in held if b"sealed_at" in fields)

    @unavailable()
    def switched(self, environment: str, days: Iterable[date]) -> int:
        """Return how many prompts of these days were seen in two cells."""
        pipe = self._redis.pipeline(transaction=False)
        for day in days:
            pipe.hget(EvidenceKeys(environment).day(day), "switched")
        return sum(int(count or 0) for count in pipe.execute())

    @unavailable()
    def cells(self, environment: str) -> tuple[tuple[int, Cell], ...]:
        """Return every cell of the environment with its number."""
        stored = self._redis.hgetall(EvidenceKeys(environment).cells)
        named = ((int(number), name.decode()) for name, number in stored.items() if name != b"#")
        return tuple(sorted(((number, Cell.named(name)) for number, name in named), key=_number))

    @unavailable()
    def owner_days(
        self, environment: str, guard: str, wave: int, days: Sequence[date]
    ) -> tuple[OwnerDay, ...]:
        """Return the wave's owner-days on these days, sorted by day and owner.

        One owner has two rows on a day when it reported with two versions or in two modes.
        """
        chosen = [
            (number, cell)
            for number, cell in self.cells(environment)
            if cell.guard == guard and cell.wave == wave and cell.cohort is not None
        ]
        rows = self._rows(environment, chosen, days)
        return tuple(sorted(rows, key=lambda row: (row.day, row.owner, row.cohort)))

    def _rows(
        self, environment: str, cells: Sequence[tuple[int, Cell]], days: Sequence[date]
    ) -> Iterator[OwnerDay]:
        keys = EvidenceKeys(environment)
        wanted = [
            (cell.cohort, day, keys.owner_days(number, day, bucket))
            for number, cell in cells
            for day in days
            for bucket in range(OWNER_BUCKETS)
        ]
        for start in range(0, len(wanted), _READ_AT_ONCE):
            part = wanted[start : start + _READ_AT_ONCE]
            pipe = self._redis.pipeline(transaction=False)
            for _, _, key in part:
                pipe.hgetall(key)
            for (cohort, day, _), held in zip(part, pipe.execute(), strict=True):
                for owner, packed in held.items():
                    assert cohort is not None  # cells without a cohort hold no owner-days
                    yield _owner_day(owner.decode(), day, cohort, packed)

    @unavailable()
    def owner_rows(
        self, environment: str, pseudonym: str, bucket: int, days: Sequence[date]
    ) -> tuple[tuple[Cell, OwnerDay], ...]:
        """Return one owner's owner-days on these days, with the cell of each."""
        keys = EvidenceKeys(environment)
        wanted = [
            (cell, day, keys.owner_days(number, day, bucket))
            for number, cell in self.cells(environment)
            if cell.cohort is not None
            for day in days
        ]
        pipe = self._redis.pipeline(transaction=False)
        for _, _, key in wanted:
            pipe.hget(key, pseudonym)
        found = zip(wanted, pipe.execute(), strict=True)
        return tuple(
            (cell, _owner_day(pseudonym, day, cell.cohort, packed))
            for (cell, day, _), packed in found
            if packed is not None and cell.cohort is not None
        )

    @unavailable()
    def counters(self, environment: str, day: date) -> dict[tuple[Cell, str], int]:
        """Return the day's volume counters by cell and counter name."""
        keys = EvidenceKeys(environment)
        counted: dict[tuple[Cell, str], int] = {}
        for number, cell in self.cells(environment):
            for counter, value in self._redis.hgetall(keys.counters(number, day)).items():
                counted[cell, counter.decode()] = int(value)
        return counted

    @unavailable()
    def health(self, environment: str) -> dict[str, int]:
        """Return intake's counters of the environment; absent ones were never counted."""
        stored = self._redis.hgetall(EvidenceKeys(environment).health)
        return {name.decode(): int(value) for name, value in stored.items()}


def _number(numbered: tuple[int, Cell]) -> int:
    return numbered[0]


def _owner_day(owner: str, day: date, cohort: Cohort, packed: bytes) -> OwnerDay:
    values = [int(value) for value in msgpack.unpackb(packed)]
    tail = values[_SUMS:]
    durations = tuple(sorted(zip(tail[::2], tail[1::2], strict=True)))
    (started, cancelled, completed, failed, guard_stopped, limit, lost, disrupted) = values[:8]
    (tokens, turns, would_stopped, stopped, calls_after, unreliable, covered, ended) = values[8:16]
    return OwnerDay(
        owner=owner,
        day=day,
        cohort=cohort,
        started=started,
        cancelled=cancelled,
        completed=completed,
        failed=failed,
        guard_stopped=guard_stopped,
        limit=limit,
        lost=lost,
        disrupted=disrupted,
        tokens=tokens,
        turns=turns,
        would_stopped=would_stopped,
        stopped=stopped,
        calls_after_would_stop=calls_after,
        unreliable=unreliable,
        covered=covered,
        ended=ended,
        durations=durations,
    )


def _sealed(day: date, fields: dict[bytes, bytes]) -> SealedDay:
    def count(name: str) -> int:
        return int(fields.get(name.encode(), b"0"))

    outage = fields.get(b"outage", b"")
    return SealedDay(
        day=day,
        revision=count("revision"),
        hourly_prompts=tuple(count(f"h{hour}") for hour in range(HOURS)),
        longest_outage_seconds=float(outage) if outage else None,
        ended=count("ended"),
        covered=count("covered"),
        records=count("records"),
        conforming=count("conforming"),
    )
