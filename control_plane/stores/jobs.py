"""The worker's queue per environment, under a fenced lease, and intake's heartbeats."""

from dataclasses import dataclass
from enum import StrEnum

from redis import Redis

from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EnvironmentKeys

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
        return int(
            self._redis.fcall("gw_lease", 1, EnvironmentKeys(environment).lease, holder, LEASE_MS)
        )

    @unavailable()
    def take(self, environment: str) -> Job | None:
        """Take the oldest job; it stays in the list of taken jobs until it is done."""
        keys = EnvironmentKeys(environment)
        stored = self._redis.lmove(keys.jobs, keys.taken_jobs, "RIGHT", "LEFT")
        return None if stored is None else decode(Job, stored)

    @unavailable()
    def done(self, environment: str, job: Job) -> None:
        """Forget a taken job."""
        self._redis.lrem(EnvironmentKeys(environment).taken_jobs, 1, encode(job).decode())

    @unavailable()
    def take_over(self, environment: str) -> int:
        """Queue again what a dead worker had taken; answer how many jobs that were."""
        keys = EnvironmentKeys(environment)
        moved = 0
        while self._redis.lmove(keys.taken_jobs, keys.jobs, "RIGHT", "RIGHT") is not None:
            moved += 1
        return moved

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
        """Return the longest time without a heartbeat within [start, end], wall-clock seconds.

        None when no heartbeat lies in or beside it: nothing shows that intake was up.
        """
        first, last = int(start // HEARTBEAT_S), int(end // HEARTBEAT_S)
        found = self._redis.zrange(
            EnvironmentKeys(environment).heartbeats, first, last, byscore=True
        )
        minutes = [int(minute) for minute in found]
        if not minutes:
            return None
        marks = [first - 1, *minutes, last + 1]
        gaps = (after - before - 1 for before, after in zip(marks, marks[1:], strict=False))
        return float(max(gaps) * HEARTBEAT_S)
