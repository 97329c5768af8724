"""Owner-level evidence: written exactly once by one atomic call, read as owner-days."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.functions import call
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.packing import unpack
from control_plane.stores.replies import octets, pair, text, whole
from reducer.rollout.days import SealedDay
from reducer.vocabulary import Cohort

OWNER_BUCKETS = 256
# In real time since the last write; evidence.lua holds the same.
KEPT_DAYS = 120
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

    The counts, from `started` to `switched`, lie in the order of the stored row. `tokens`, `turns`
    and `calls_after_would_stop` are sums over prompts, `would_stopped` and `stopped` count
    decisions, every other one counts prompts; `switched` those that were told with two modes or
    cohorts, whether or not a start or an end of them is known. `version` is that of the prompts'
    earliest records. `durations` holds pairs of a base-2
    exponential bucket at scale 7 (milliseconds) and its count.
    """

    owner: str
    day: date
    cohort: Cohort
    version: str
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
    switched: int
    durations: tuple[tuple[int, int], ...] = ()


_SUMS = 17


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
        arguments = (keys.slot, batch.packed())
        new, duplicate = pair(call(self._redis, "gw_ingest", keys=[keys.days], arguments=arguments))
        return Written(whole(new), whole(duplicate))

    @unavailable()
    def lose_overdue(self, environment: str, now: datetime, *, at_most: int = 1000) -> int:
        """Close prompts that had no end for 24 hours as lost; answer how many."""
        keys = EvidenceKeys(environment)
        arguments = (keys.slot, int(now.timestamp()), at_most)
        return whole(call(self._redis, "gw_lose", keys=[keys.due], arguments=arguments))

    @unavailable()
    def days(self, environment: str) -> tuple[date, ...]:
        """Return all days that hold anything, in order."""
        found = self._redis.smembers(EvidenceKeys(environment).days)
        return tuple(sorted(date.fromisoformat(text(day)) for day in found))

    @unavailable()
    def seal(
        self, environment: str, day: date, *, at: datetime, longest_outage_seconds: float | None
    ) -> bool:
        """Seal a day; False when it was sealed before."""
        keys = EvidenceKeys(environment)
        outage = "" if longest_outage_seconds is None else f"{longest_outage_seconds:.3f}"
        arguments = (day.isoformat(), at.isoformat(), outage)
        names = [keys.day(day), keys.days]
        return bool(whole(call(self._redis, "gw_seal", keys=names, arguments=arguments)))

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
    def cells(self, environment: str) -> tuple[tuple[int, Cell], ...]:
        """Return every cell of the environment with its number."""
        stored = self._redis.hgetall(EvidenceKeys(environment).cells)
        named = ((text(name), number) for name, number in stored.items())
        cells = ((whole(number), Cell.named(name)) for name, number in named if name[0] != "#")
        return tuple(sorted(cells, key=_number))

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
        return tuple(sorted(rows, key=lambda row: (row.day, row.owner, row.cohort, row.version)))

    def _rows(
        self, environment: str, cells: Sequence[tuple[int, Cell]], days: Sequence[date]
    ) -> Iterator[OwnerDay]:
        keys = EvidenceKeys(environment)
        wanted = [
            (cell, day, keys.owner_days(number, day, bucket))
            for number, cell in cells
            for day in days
            for bucket in range(OWNER_BUCKETS)
        ]
        for start in range(0, len(wanted), _READ_AT_ONCE):
            part = wanted[start : start + _READ_AT_ONCE]
            pipe = self._redis.pipeline(transaction=False)
            for _, _, key in part:
                pipe.hgetall(key)
            for (cell, day, _), held in zip(part, pipe.execute(), strict=True):
                for owner, packed in held.items():
                    yield _owner_day(text(owner), day, cell, packed)

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
            (cell, _owner_day(pseudonym, day, cell, packed))
            for (cell, day, _), packed in found
            if packed is not None
        )

    @unavailable()
    def counters(self, environment: str, day: date) -> dict[tuple[Cell, str], int]:
        """Return the day's volume counters by cell and counter name."""
        keys = EvidenceKeys(environment)
        counted: dict[tuple[Cell, str], int] = {}
        for number, cell in self.cells(environment):
            for counter, value in self._redis.hgetall(keys.counters(number, day)).items():
                counted[cell, text(counter)] = whole(value)
        return counted

    @unavailable()
    def health(self, environment: str) -> dict[str, int]:
        """Return intake's counters of the environment; absent ones were never counted."""
        stored = self._redis.hgetall(EvidenceKeys(environment).health)
        return {text(name): whole(value) for name, value in stored.items()}


def _number(numbered: tuple[int, Cell]) -> int:
    return numbered[0]


def _owner_day(owner: str, day: date, cell: Cell, packed: object) -> OwnerDay:
    assert cell.cohort is not None  # cells without a cohort hold no owner-days
    row = unpack(octets(packed))
    if not isinstance(row, list):
        raise TypeError(f"an owner-day row is stored as {type(row).__name__}, not as a list")
    tail = row[_SUMS:]
    durations = tuple(sorted(zip(tail[::2], tail[1::2], strict=True)))
    return OwnerDay(owner, day, cell.cohort, cell.version, *(*row[:_SUMS], durations))


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
