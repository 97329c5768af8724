"""Evidence written back as it was exported, into an environment that does not exist yet."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from redis import Redis

from control_plane.stores.cells import Cell, used_on
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence import KEPT_DAYS
from control_plane.stores.evidence_pages import Counted, PlacedOwnerDay
from control_plane.stores.evidence_points import COARSEST, SCALE
from control_plane.stores.keys import EnvironmentKeys, EvidenceKeys
from control_plane.stores.owner_days import SUMS, OwnerDay
from control_plane.stores.packing import pack
from control_plane.stores.shards import FIRST, shard_count, shard_of_owner
from reducer.rollout.pseudonym import pack as pack_pseudonym

# The store adds in doubles: beyond this one cannot tell neighbours apart.
LARGEST = 2**53 - 1
# The field of a day that says when it was sealed.
SEALED_AT = "sealed_at"
_KEPT_S = KEPT_DAYS * 86_400
_AT_ONCE = 1000
_HELD_S = 60


class EvidenceImports:
    """Where an import of an environment's evidence begins."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def into(self, environment: str, *, today: date) -> "EvidenceImport":
        """Return what writes the evidence of this environment; its cells count as used today."""
        return EvidenceImport(self._redis, environment, today)


class EvidenceImport:
    """Writes the evidence of one environment that nobody reads yet."""

    def __init__(self, redis: Redis, environment: str, today: date) -> None:
        self._redis = redis
        self._used = used_on(today)
        self._held = EnvironmentKeys(environment).importing
        self._count = shard_count(redis)
        self._shards = tuple(EvidenceKeys(environment, shard) for shard in range(self._count))
        self._cells: dict[tuple[int, str], int] = {}
        self._expiring: set[str] = set()

    @unavailable()
    def hold(self, holder: str) -> bool:
        """Keep other imports into the environment out for the next minute; False: one is there."""
        if self._redis.set(self._held, holder, nx=True, ex=_HELD_S):
            return True
        is_own = self._redis.get(self._held) == holder.encode()
        return is_own and bool(self._redis.expire(self._held, _HELD_S))

    @unavailable()
    def release(self) -> None:
        """Let other imports in."""
        self._redis.delete(self._held)

    @unavailable()
    def clear(self) -> None:
        """Delete what an import that was cut short left behind."""
        self._cells.clear()
        self._expiring.clear()
        for keys in self._shards:
            self._clear(keys)

    def _clear(self, keys: EvidenceKeys) -> None:
        # By these is seen that something is left, so they go last.
        last = (keys.days, keys.cells)
        if not self._redis.exists(*last):
            return
        names = self._redis.scan_iter(match=f"*:{keys.slot}*", count=_AT_ONCE)
        found = [name for name in names if name.decode() not in last]
        for start in range(0, len(found), _AT_ONCE):
            self._redis.unlink(*found[start : start + _AT_ONCE])
        self._redis.unlink(*last)

    @unavailable()
    def add_day(self, day: date, held: Mapping[str, str]) -> None:
        """Write what is kept of a day beside owner-days and counters."""
        seal = {SEALED_AT: held[SEALED_AT]} if SEALED_AT in held else {}
        pipe = self._redis.pipeline(transaction=False)
        for keys in self._shards:
            pipe.sadd(keys.days, day.isoformat())
            # The sums are of the whole day and stand in one shard; a seal is looked for in each.
            fields = held if keys.shard == FIRST else seal
            for name, value in fields.items():
                pipe.hset(keys.day(day), name, value)
            pipe.expire(keys.day(day), _KEPT_S)
        pipe.execute()

    @unavailable()
    def add_counters(self, counted: Sequence[Counted]) -> None:
        """Write counters of cells and days; they stand in one shard."""
        keys = self._shards[FIRST]
        self._intern((FIRST, each.cell) for each in counted)
        self._put(
            (keys.counters(self._number(FIRST, cell), day), counter, str(total).encode())
            for day, cell, counter, total in counted
        )

    @unavailable()
    def add_owner_days(self, placed: Sequence[PlacedOwnerDay]) -> None:
        """Write owner-days, each in its owner's shard."""
        buckets = [pack_pseudonym(each.row.owner)[0] for each in placed]
        shards = [shard_of_owner(bucket, self._count) for bucket in buckets]
        self._intern(zip(shards, (each.cell for each in placed), strict=True))
        self._put(
            (
                self._shards[shard].owner_days(self._number(shard, cell), row.day, bucket),
                row.owner,
                packed(row),
            )
            for shard, bucket, (cell, row) in zip(shards, buckets, placed, strict=True)
        )

    def _number(self, shard: int, cell: Cell) -> int:
        return self._cells[shard, cell.name]

    def _intern(self, cells: Iterable[tuple[int, Cell]]) -> None:
        """Number the cells that are new to their shard."""
        pipe = self._redis.pipeline(transaction=False)
        for shard, cell in cells:
            if (shard, cell.name) in self._cells:
                continue
            number = self._cells[shard, cell.name] = len(self._cells) + 1
            named = {cell.name: str(number), f"#{number}": cell.name, "#": str(number)}
            for name, value in {**named, f"#{cell.name}": self._used}.items():
                pipe.hset(self._shards[shard].cells, name, value)
        pipe.execute()

    def _put(self, writes: Iterable[tuple[str, str, bytes]]) -> None:
        pipe = self._redis.pipeline(transaction=False)
        for key, field, value in writes:
            pipe.hset(key, field, value)
            if key not in self._expiring:
                self._expiring.add(key)
                pipe.expire(key, _KEPT_S)
        pipe.execute()


def packed(row: OwnerDay) -> bytes:
    """Return an owner's row as the store holds it: what `unpacked` reads."""
    steps: list[int] = []
    before = 0
    for bucket, count in row.durations:
        steps += (bucket - before, count)
        before = bucket
    told = () if row.loops is None else (row.loops,)
    return pack([*(getattr(row, name) for name in SUMS), SCALE - row.scale, *told, *steps])


def check_owner_day(row: OwnerDay) -> None:
    """Refuse an owner-day that no function of the store can have written.

    Raises:
        ValueError: naming the field and its value.
    """
    pack_pseudonym(row.owner)
    counts = [(name, getattr(row, name)) for name in SUMS]
    if row.loops is not None:
        counts.append(("loops", row.loops))
    for name, count in counts:
        if not 0 <= count <= LARGEST:
            raise ValueError(f"{name} is {count}; it is from 0 to {LARGEST}")
    if not COARSEST <= row.scale <= SCALE:
        raise ValueError(f"scale is {row.scale}; it is from {COARSEST} to {SCALE}")
    buckets = [bucket for bucket, _ in row.durations]
    if buckets != sorted(set(buckets)):
        raise ValueError("durations names a bucket twice, or buckets are not in rising order")
    for bucket, count in row.durations:
        if not (1 <= count <= LARGEST and abs(bucket) <= LARGEST):
            raise ValueError(f"durations has {count} prompts in bucket {bucket}")
