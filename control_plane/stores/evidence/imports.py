"""Evidence import: exported evidence written into an environment that does not exist yet."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from redis import Redis

from guardwave.control_plane.stores.codec import pack
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import MOST
from guardwave.control_plane.stores.evidence.delta.points import COARSEST_SCALE, SCALE
from guardwave.control_plane.stores.evidence.delta.strata import Stratum, used_on
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay
from guardwave.control_plane.stores.evidence.pages import CounterTotal, StratumOwnerDay
from guardwave.control_plane.stores.evidence.shards import FIRST_SHARD, shard_count, shard_of_owner
from guardwave.control_plane.stores.evidence.store import KEPT_DAYS
from guardwave.control_plane.stores.keys import EnvironmentKeys, EvidenceKeys
from guardwave.control_plane.stores.server import translate_store_errors
from guardwave.reducer.rollout.pseudonym import pack as pack_pseudonym

# The field of a day that holds the time of its seal.
SEALED_AT = "sealed_at"
_KEPT_S = KEPT_DAYS * 86_400
_AT_ONCE = 1000
_LOCK_S = 60


class EvidenceImports:
    """Opens imports of evidence."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def open(self, environment: str, *, today: date) -> "EvidenceImport":
        """Return an import into this environment; its strata count as used today."""
        return EvidenceImport(self._redis, environment, today)


class EvidenceImport:
    """Writes the evidence of one environment that nobody reads yet."""

    def __init__(self, redis: Redis, environment: str, today: date) -> None:
        self._redis = redis
        self._used = used_on(today)
        self._lock = EnvironmentKeys(environment).import_lock
        self._count = shard_count(redis)
        self._shards = tuple(EvidenceKeys(environment, shard) for shard in range(self._count))
        self._strata: dict[tuple[int, str], int] = {}
        self._expiring: set[str] = set()

    @translate_store_errors()
    def hold(self, holder: str) -> bool:
        """Lock the environment against other imports for a minute; False when one holds it."""
        if self._redis.set(self._lock, holder, nx=True, ex=_LOCK_S):
            return True
        is_own = self._redis.get(self._lock) == holder.encode()
        return is_own and bool(self._redis.expire(self._lock, _LOCK_S))

    @translate_store_errors()
    def release(self) -> None:
        """Unlock the environment."""
        self._redis.delete(self._lock)

    @translate_store_errors()
    def clear(self) -> None:
        """Delete what an interrupted import left behind."""
        self._strata.clear()
        self._expiring.clear()
        for keys in self._shards:
            self._clear(keys)

    def _clear(self, keys: EvidenceKeys) -> None:
        # These two show that something is left, so they go last.
        last = (keys.days, keys.strata)
        if not self._redis.exists(*last):
            return
        names = self._redis.scan_iter(match=f"*:{keys.slot}*", count=_AT_ONCE)
        found = [name for name in names if name.decode() not in last]
        for start in range(0, len(found), _AT_ONCE):
            self._redis.unlink(*found[start : start + _AT_ONCE])
        self._redis.unlink(*last)

    @translate_store_errors()
    def add_day(self, day: date, fields: Mapping[str, str]) -> None:
        """Write the fields of a day: its seal, its sums and the rest, but no owner-days."""
        seal = {SEALED_AT: fields[SEALED_AT]} if SEALED_AT in fields else {}
        pipe = self._redis.pipeline(transaction=False)
        for keys in self._shards:
            pipe.sadd(keys.days, day.isoformat())
            # The sums are of the whole day and stand in one shard; every shard needs the seal.
            for name, value in (fields if keys.shard == FIRST_SHARD else seal).items():
                pipe.hset(keys.day(day), name, value)
            pipe.expire(keys.day(day), _KEPT_S)
        pipe.execute()

    @translate_store_errors()
    def add_counters(self, totals: Sequence[CounterTotal]) -> None:
        """Write counters of strata and days, all into the first shard."""
        keys = self._shards[FIRST_SHARD]
        self._intern((FIRST_SHARD, total.stratum) for total in totals)
        self._put(
            (keys.counters(self._number(FIRST_SHARD, stratum), day), counter, str(total).encode())
            for day, stratum, counter, total in totals
        )

    @translate_store_errors()
    def add_owner_days(self, owner_days: Sequence[StratumOwnerDay]) -> None:
        """Write owner-days, each into its owner's shard."""
        buckets = [pack_pseudonym(owner_day.row.owner)[0] for owner_day in owner_days]
        shards = [shard_of_owner(bucket, self._count) for bucket in buckets]
        self._intern(zip(shards, (owner_day.stratum for owner_day in owner_days), strict=True))
        self._put(
            (
                self._shards[shard].owner_days(self._number(shard, stratum), row.day, bucket),
                row.owner,
                pack_owner_day(row),
            )
            for shard, bucket, (stratum, row) in zip(shards, buckets, owner_days, strict=True)
        )

    def _number(self, shard: int, stratum: Stratum) -> int:
        return self._strata[shard, stratum.name]

    def _intern(self, strata: Iterable[tuple[int, Stratum]]) -> None:
        """Number the strata that are new to their shard."""
        pipe = self._redis.pipeline(transaction=False)
        for shard, stratum in strata:
            if (shard, stratum.name) in self._strata:
                continue
            number = self._strata[shard, stratum.name] = len(self._strata) + 1
            fields = {
                stratum.name: str(number),
                f"#{number}": stratum.name,
                "#": str(number),
                f"#{stratum.name}": self._used,
            }
            for name, value in fields.items():
                pipe.hset(self._shards[shard].strata, name, value)
        pipe.execute()

    def _put(self, writes: Iterable[tuple[str, str, bytes]]) -> None:
        pipe = self._redis.pipeline(transaction=False)
        for key, field, value in writes:
            pipe.hset(key, field, value)
            if key not in self._expiring:
                self._expiring.add(key)
                pipe.expire(key, _KEPT_S)
        pipe.execute()


def pack_owner_day(row: OwnerDay) -> bytes:
    """Return an owner's row in its stored form; `unpack_owner_day` reads it."""
    steps: list[int] = []
    before = 0
    for bucket, count in row.durations:
        steps += (bucket - before, count)
        before = bucket
    loops = () if row.loops is None else (row.loops,)
    return pack([*(getattr(row, name) for name in SUMS), SCALE - row.scale, *loops, *steps])


def check_owner_day(row: OwnerDay) -> None:
    """Check that the store's functions could have written an owner-day.

    Raises:
        ValueError: they could not; it names the field and its value.
    """
    pack_pseudonym(row.owner)
    counts = [(name, getattr(row, name)) for name in SUMS]
    if row.loops is not None:
        counts.append(("loops", row.loops))
    for name, count in counts:
        if not 0 <= count <= MOST:
            raise ValueError(f"{name} is {count}; it is from 0 to {MOST}")
    if not COARSEST_SCALE <= row.scale <= SCALE:
        raise ValueError(f"scale is {row.scale}; it is from {COARSEST_SCALE} to {SCALE}")
    buckets = [bucket for bucket, _ in row.durations]
    if buckets != sorted(set(buckets)):
        raise ValueError("durations names a bucket twice, or buckets are not in rising order")
    for bucket, count in row.durations:
        if not (1 <= count <= MOST and abs(bucket) <= MOST):
            raise ValueError(f"durations has {count} prompts in bucket {bucket}")
