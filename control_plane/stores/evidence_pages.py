"""Evidence as it lies in the store, read in small parts: for exports and pages of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.owner_days import OwnerDay, unpacked
from control_plane.stores.replies import text, whole
from control_plane.stores.shards import shard_count, shard_of_owner


class Place(NamedTuple):
    """Where owner-days lie: a day, and one of 256 buckets of owners."""

    day: date
    bucket: int

    @property
    def cursor(self) -> str:
        """The place as text; texts are in the order of places."""
        return f"{self.day.isoformat()}-{self.bucket:02x}"


class NumberedCell(NamedTuple):
    """A cell as one shard numbers it."""

    shard: int
    number: int
    cell: Cell


class PlacedOwnerDay(NamedTuple):
    """An owner-day and the cell that it lies in."""

    cell: Cell
    row: OwnerDay


class Counted(NamedTuple):
    """What one counter of a cell came to on a day."""

    day: date
    cell: Cell
    counter: str
    total: int


class EvidencePages:
    """Reads the evidence of all environments in parts that fit in memory."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    def _shards(self, environment: str) -> tuple[EvidenceKeys, ...]:
        return tuple(EvidenceKeys(environment, shard) for shard in range(self._count))

    @unavailable()
    def cells(self, environment: str) -> tuple[NumberedCell, ...]:
        """Return every cell of every shard, in the order of shards and numbers."""
        found = [
            NumberedCell(keys.shard, whole(number), Cell.named(text(name)))
            for keys in self._shards(environment)
            for name, number in self._redis.hgetall(keys.cells).items()
            if text(name)[0] != "#"
        ]
        return tuple(sorted(found, key=lambda each: each[:2]))

    @unavailable()
    def sizes(
        self, environment: str, cells: Sequence[NumberedCell], places: Sequence[Place]
    ) -> tuple[int, ...]:
        """Return how many owner-days of these cells lie in each of the places."""
        asked = [self._keys_at(environment, cells, place) for place in places]
        pipe = self._redis.pipeline(transaction=False)
        for keys in asked:
            for _, key in keys:
                pipe.hlen(key)
        found = iter(pipe.execute())
        return tuple(sum(whole(next(found)) for _ in keys) for keys in asked)

    @unavailable()
    def owner_days(
        self, environment: str, cells: Sequence[NumberedCell], place: Place
    ) -> tuple[PlacedOwnerDay, ...]:
        """Return the owner-days of these cells in one place, by owner and cell."""
        asked = self._keys_at(environment, cells, place)
        pipe = self._redis.pipeline(transaction=False)
        for _, key in asked:
            pipe.hgetall(key)
        found = [
            PlacedOwnerDay(cell, unpacked(text(owner), place.day, cell, packed))
            for (cell, _), held in zip(asked, pipe.execute(), strict=True)
            for owner, packed in held.items()
        ]
        return tuple(sorted(found, key=_order))

    def _keys_at(
        self, environment: str, cells: Sequence[NumberedCell], place: Place
    ) -> list[tuple[Cell, str]]:
        keys = EvidenceKeys(environment, shard_of_owner(place.bucket, self._count))
        return [
            (cell, keys.owner_days(number, place.day, place.bucket))
            for shard, number, cell in cells
            if shard == keys.shard
        ]

    @unavailable()
    def counters(
        self, environment: str, cells: Sequence[NumberedCell], day: date
    ) -> tuple[Counted, ...]:
        """Return all counters of these cells on a day, by cell and name."""
        pipe = self._redis.pipeline(transaction=False)
        for shard, number, _ in cells:
            pipe.hgetall(EvidenceKeys(environment, shard).counters(number, day))
        totals: Counter[tuple[Cell, str]] = Counter()
        for (_, _, cell), held in zip(cells, pipe.execute(), strict=True):
            for counter, total in held.items():
                totals[cell, text(counter)] += whole(total)
        ordered = sorted(totals.items(), key=lambda each: (each[0][0].name, each[0][1]))
        return tuple(Counted(day, cell, counter, total) for (cell, counter), total in ordered)

    @unavailable()
    def day_fields(self, environment: str, day: date) -> Mapping[str, str]:
        """Return all that is kept of a day beside owner-days and counters, by field.

        Whole numbers of several shards are added up, of anything else the first shard's stands. A
        day that is not sealed in every shard is not sealed.
        """
        held = [self._redis.hgetall(keys.day(day)) for keys in self._shards(environment)]
        found: dict[str, str] = {}
        for fields in held:
            for name, value in ((text(name), text(value)) for name, value in fields.items()):
                before = found.setdefault(name, "0" if value.isdecimal() else value)
                if value.isdecimal() and before.isdecimal():
                    found[name] = str(int(before) + int(value))
        if not all(b"sealed_at" in fields for fields in held):
            found.pop("sealed_at", None)
        return dict(sorted(found.items()))


def _order(found: PlacedOwnerDay) -> tuple[str, str]:
    return found.row.owner, found.cell.name
