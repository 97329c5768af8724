"""The worker's queue per environment, under a fenced lease, and intake's heartbeats."""

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from redis import Redis

from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.functions import call
from control_plane.stores.keys import EnvironmentKeys
from control_plane.stores.replies import whole

LEASE_MS = 5_000
HEARTBEAT_S = 60


class JobKind(StrEnum):
    """What the worker can be asked to do."""

    EVALUATE = "evaluate"
    PROMOTE = "promote"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work: the number is of the evaluation or promotion it is about."""

    kind: JobKind
    guard: str
    number: int


class JobStore:
    """Queues of all environments. A job is done at least once; its effect is committed once."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def put(self, environment: str, job: Job) -> None:
        """Queue a job."""
        self._redis.lpush(EnvironmentKeys(environment).jobs, encode(job))

    @unavailable()
    def lease(self, environment: str, holder: str) -> int:
        """Hold or renew the environment's lease for 5 s; its fence, or 0 when another holds it."""
        names = [EnvironmentKeys(environment).lease]
        return whole(call(self._redis, "gw_lease", keys=names, arguments=(holder, LEASE_MS)))

    @unavailable()
    def take(self, environment: str) -> Job | None:
        """Take the oldest job, for the lease's holder; it stays taken until it is done.

        A holder works on one job at a time, so one that is taken already was begun by a worker
        that died, or its taking was lost on the way to this one: it is answered again.
        """
        keys = EnvironmentKeys(environment)
        stored = self._redis.lindex(keys.taken_jobs, -1)
        if stored is None:
            stored = self._redis.lmove(keys.jobs, keys.taken_jobs, "RIGHT", "LEFT")
        return None if stored is None else decode(Job, stored)

    @unavailable()
    def done(self, environment: str, job: Job) -> None:
        """Forget a taken job."""
        self._redis.lrem(EnvironmentKeys(environment).taken_jobs, 1, encode(job).decode())

    @unavailable()
    def release(self, environment: str) -> None:
        """Give the environment's lease up, with whatever jobs were queued meanwhile done."""
        keys = EnvironmentKeys(environment)
        self._redis.delete(keys.lease, keys.jobs, keys.taken_jobs)

    @unavailable()
    def beat(self, environment: str, wall_second: int) -> None:
        """Remember that intake was up in this wall-clock minute, for three days."""
        key = EnvironmentKeys(environment).heartbeats
        minute = wall_second // HEARTBEAT_S
        pipe = self._redis.pipeline(transaction=False)
        pipe.zadd(key, {str(minute): minute})
        pipe.zremrangebyscore(key, "-inf", minute - 3 * 24 * 60)
        pipe.execute()

    @unavailable()
    def longest_outage(self, environment: str, start: float, end: float) -> float | None:
        """Return the longest time without a heartbeat within [start, end), wall-clock seconds.

        A heartbeat vouches for its whole minute; of a minute without one, only the part that lies
        in the interval counts. None when no minute of the interval has a heartbeat: nothing shows
        that intake was up.
        """
        first, last = int(start // HEARTBEAT_S), math.ceil(end / HEARTBEAT_S) - 1
        key = EnvironmentKeys(environment).heartbeats
        up = [whole(minute) for minute in self._redis.zrange(key, first, last, byscore=True)]
        if not up:
            return None
        return max(
            max(0.0, min(after * HEARTBEAT_S, end) - max((before + 1) * HEARTBEAT_S, start))
            for before, after in pairwise([first - 1, *up, last + 1])
        )
