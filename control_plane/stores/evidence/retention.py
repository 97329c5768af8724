"""Retention: empty days, strata without use, and owners and sources not seen for long.

Most evidence expires by itself, a fixed time after its last write; this module deletes the rest.
"""

import json
from collections import Counter, defaultdict
from datetime import date

from redis import Redis

from guardwave.control_plane.stores.evidence.delta.strata import day_number
from guardwave.control_plane.stores.evidence.intake_health import LAST_HEARD
from guardwave.control_plane.stores.evidence.shards import shard_count
from guardwave.control_plane.stores.evidence.store import LAST_RECORD
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import (
    call,
    reply_bytes,
    reply_int,
    reply_pair,
    reply_text,
    translate_store_errors,
)

_AT_ONCE = 1000


class RetentionStore:
    """Forgets old evidence in all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    @translate_store_errors()
    def forget_days(self, environment: str) -> int:
        """Forget the days whose evidence has expired; return how many, over all shards."""
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_days(keys) for keys in shards)

    def _forget_days(self, keys: EvidenceKeys) -> int:
        days = [reply_text(day) for day in self._redis.smembers(keys.days)]
        pipe = self._redis.pipeline(transaction=False)
        for day in days:
            pipe.exists(keys.day(date.fromisoformat(day)))
        expired = [day for day, exists in zip(days, pipe.execute(), strict=True) if not exists]
        return reply_int(self._redis.srem(keys.days, *expired)) if expired else 0

    @translate_store_errors()
    def forget_owners(self, environment: str, *, last_seen_before: date, cursor: int = 0) -> int:
        """Forget the activity of owners not seen since a day, a thousand at a time.

        Stated facts stay. Return the cursor of the next call, 0 at the end.
        """
        keys = EvidenceKeys(environment)
        arguments = (keys.slot, cursor, last_seen_before.isoformat(), _AT_ONCE)
        answer = call(self._redis, "gw_forget_owners", keys=[keys.activity], arguments=arguments)
        return reply_int(reply_pair(answer)[0])

    @translate_store_errors()
    def forget_strata(self, environment: str, *, last_used_before: date) -> int:
        """Forget strata without use since a day; return how many, over all shards."""
        oldest = day_number(last_used_before)
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_strata(keys.strata, oldest) for keys in shards)

    def _forget_strata(self, key: str, oldest: int) -> int:
        cursor, forgotten = 0, 0
        while True:
            arguments = (cursor, oldest, _AT_ONCE)
            answer = reply_pair(
                call(self._redis, "gw_forget_cells", keys=[key], arguments=arguments)
            )
            cursor, forgotten = reply_int(answer[0]), forgotten + reply_int(answer[1])
            if not cursor:
                return forgotten

    @translate_store_errors()
    def forget_sources(self, environment: str, *, before_second: int) -> int:
        """Forget versions of producers not heard of since; return how many, over all shards."""
        shards = (EvidenceKeys(environment, shard) for shard in range(self._count))
        return sum(self._forget_sources(keys.sources, before_second) for keys in shards)

    def _forget_sources(self, key: str, before_second: int) -> int:
        fields: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        heard: Counter[tuple[str, str]] = Counter()
        for name, value in self._redis.hgetall(key).items():
            producer, version, counter = json.loads(name)
            fields[producer, version].append(reply_bytes(name))
            if counter in (LAST_RECORD, LAST_HEARD):
                heard[producer, version] = max(heard[producer, version], reply_int(value))
        old = [source for source in fields if heard[source] < before_second]
        for source in old:
            self._redis.hdel(key, *fields[source])
        return len(old)
