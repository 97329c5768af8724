"""What outlives its use: days without evidence, owners and sources not seen for long.

Most evidence ends by itself, a fixed time after its last write; this is about the rest.
"""

import json
from collections import Counter, defaultdict
from datetime import date

from redis import Redis

from control_plane.stores.cells import day_number
from control_plane.stores.connection import unavailable
from control_plane.stores.evidence import LAST_RECORD
from control_plane.stores.functions import call
from control_plane.stores.intake_health import LAST_HEARD
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.replies import octets, pair, text, whole
from control_plane.stores.shards import shard_count

_AT_ONCE = 1000


class RetentionStore:
    """Forgets, in all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    @unavailable()
    def forget_days(self, environment: str) -> int:
        """Forget the days whose evidence ended; answer how many, over all shards."""
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_days(keys) for keys in shards)

    def _forget_days(self, keys: EvidenceKeys) -> int:
        days = [text(day) for day in self._redis.smembers(keys.days)]
        pipe = self._redis.pipeline(transaction=False)
        for day in days:
            pipe.exists(keys.day(date.fromisoformat(day)))
        gone = [day for day, is_held in zip(days, pipe.execute(), strict=True) if not is_held]
        return whole(self._redis.srem(keys.days, *gone)) if gone else 0

    @unavailable()
    def forget_owners(self, environment: str, *, last_seen_before: date, cursor: int = 0) -> int:
        """Forget where and when owners were seen that were not since a day, a thousand at a time.

        What a person stated of an owner stays. Return the cursor to go on with, 0 at the end.
        """
        keys = EvidenceKeys(environment)
        arguments = (keys.slot, cursor, last_seen_before.isoformat(), _AT_ONCE)
        answer = call(self._redis, "gw_forget_owners", keys=[keys.sightings], arguments=arguments)
        return whole(pair(answer)[0])

    @unavailable()
    def forget_cells(self, environment: str, *, last_used_before: date) -> int:
        """Forget cells in which nothing was counted since a day; answer how many, by shard."""
        oldest = day_number(last_used_before)
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_cells(keys.cells, oldest) for keys in shards)

    def _forget_cells(self, key: str, oldest: int) -> int:
        cursor, forgotten = 0, 0
        while True:
            arguments = (cursor, oldest, _AT_ONCE)
            answer = pair(call(self._redis, "gw_forget_cells", keys=[key], arguments=arguments))
            cursor, forgotten = whole(answer[0]), forgotten + whole(answer[1])
            if not cursor:
                return forgotten

    @unavailable()
    def forget_sources(self, environment: str, *, before_second: int) -> int:
        """Forget versions of producers last heard of before; answer how many, by shard."""
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_sources(keys.sources, before_second) for keys in shards)

    def _forget_sources(self, key: str, before_second: int) -> int:
        fields: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        heard: Counter[tuple[str, str]] = Counter()
        for name, value in self._redis.hgetall(key).items():
            producer, version, counter = json.loads(name)
            fields[producer, version].append(octets(name))
            if counter in (LAST_RECORD, LAST_HEARD):
                heard[producer, version] = max(heard[producer, version], whole(value))
        old = [source for source in fields if heard[source] < before_second]
        for source in old:
            self._redis.hdel(key, *fields[source])
        return len(old)
