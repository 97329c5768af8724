"""Owner-level evidence: written exactly once by one atomic call, read as owner-days."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.functions import call
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.owner_days import OwnerDay as OwnerDay  # noqa: PLC0414  # offered here too
from control_plane.stores.owner_days import unpacked, whole_prompts
from control_plane.stores.replies import pair, text, whole
from reducer.rollout.days import SealedDay
from reducer.rollout.state import EvidenceSource

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
    def sealed_days(
        self,
        environment: str,
        days: Iterable[date],
        source: EvidenceSource = EvidenceSource.EVENTS,
    ) -> tuple[SealedDay, ...]:
        """Return those of the days that are sealed, in the order given, as this source shows them.

        Counters do not tell which ended prompts are covered: by them none is. Where a host's
        transitions are not numbered, no more are covered than its counter shows records of.
        """
        wanted = list(days)
        asked = sorted({day - timedelta(days=back) for day in wanted for back in (0, 1)})
        pipe = self._redis.pipeline(transaction=False)
        for day in asked:
            pipe.hgetall(EvidenceKeys(environment).day(day))
        held = {day: _Fields(fields) for day, fields in zip(asked, pipe.execute(), strict=True)}
        return tuple(
            _sealed(day, held[day], held[day - timedelta(days=1)], source)
            for day in wanted
            if held[day].is_sealed
        )

    @unavailable()
    def cells(self, environment: str) -> tuple[tuple[int, Cell], ...]:
        """Return every cell of the environment with its number."""
        stored = self._redis.hgetall(EvidenceKeys(environment).cells)
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
        chosen = [
            (number, cell)
            for number, cell in self.cells(environment)
            if cell.guard == guard
            and cell.wave == wave
            and cell.cohort is not None
            and cell.source is source
        ]
        rows = sorted(self._rows(environment, chosen, days), key=_place)
        if source is EvidenceSource.EVENTS:
            return tuple(rows)
        return tuple(sorted(whole_prompts(rows), key=_place))

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
                    yield unpacked(text(owner), day, cell, packed)

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
            (cell, unpacked(pseudonym, day, cell, packed))
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


def _place(row: OwnerDay) -> tuple[date, str, str, str]:
    return row.day, row.owner, row.cohort, row.version


def _number(numbered: tuple[int, Cell]) -> int:
    return numbered[0]


class _Fields:
    """What the store holds of one day."""

    def __init__(self, held: Mapping[bytes, bytes]) -> None:
        self._held = held

    @property
    def is_sealed(self) -> bool:
        return b"sealed_at" in self._held

    @property
    def outage(self) -> bytes:
        return self._held.get(b"outage", b"")

    def count(self, name: str) -> int:
        return int(self._held.get(name.encode(), b"0"))


def _covered(fields: _Fields, before: _Fields) -> int:
    """Return the covered prompts: at most the share that records have of counted transitions.

    What happened just before midnight is counted after it, so records that the day before had too
    many of are none that this day is short of.
    """
    counted, recorded = fields.count("counted"), fields.count("unnumbered")
    early = max(before.count("unnumbered") - before.count("counted"), 0)
    missing = max(counted - recorded - early, 0)
    if not missing:
        return fields.count("covered")
    return min(fields.count("covered"), fields.count("ended") * (counted - missing) // counted)


def _sealed(day: date, fields: _Fields, before: _Fields, source: EvidenceSource) -> SealedDay:
    # What counters show has names of its own; seal and revision are of the day.
    is_of_events = source is EvidenceSource.EVENTS
    prefix, count, outage = "" if is_of_events else "c", fields.count, fields.outage
    return SealedDay(
        day=day,
        revision=count("revision"),
        hourly_prompts=tuple(count(f"{prefix}h{hour}") for hour in range(HOURS)),
        longest_outage_seconds=float(outage) if outage else None,
        ended=count(f"{prefix}ended"),
        covered=_covered(fields, before) if is_of_events else 0,
        records=count(f"{prefix}records"),
        conforming=count(f"{prefix}conforming"),
    )
