"""The worker's queue per environment, under a fenced lease, and intake's heartbeats."""

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
# How often intake shows that it is up: the refresher's period, and what an outage is told within.
HEARTBEAT_S = 20
HEARTBEATS_KEPT_S = 3 * 86_400


class JobKind(StrEnum):
    """What the worker can be asked to do."""

    EVALUATE = "evaluate"
    PROMOTE = "promote"
    LOOK = "look for harm"
    PLAN = "plan"


class IntakeDoor(StrEnum):
    """Where telemetry comes in: by which process a heartbeat is."""

    HTTP = "http"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work: the number is of the evaluation, promotion, wave or plan it is about."""

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
    def beat(
        self, environment: str, wall_second: int, *, door: IntakeDoor = IntakeDoor.HTTP
    ) -> None:
        """Remember for three days that intake was up at a door in this wall-clock second."""
        key = _heartbeats(environment, door)
        pipe = self._redis.pipeline(transaction=False)
        pipe.zadd(key, {str(wall_second): wall_second})
        pipe.zremrangebyscore(key, "-inf", wall_second - HEARTBEATS_KEPT_S)
        pipe.execute()

    @unavailable()
    def longest_outage(
        self, environment: str, start: float, end: float, *, now: float
    ) -> float | None:
        """Return the longest time between two heartbeats that touches [start, end), in seconds.

        All times are wall-clock seconds. A heartbeat vouches for its own second and no more: to the
        second, an outage is told as at least as long as it was and at most `HEARTBEAT_S` longer,
        and where there was none that is `HEARTBEAT_S`. One over a bound of the interval counts
        whole: from the last heartbeat up to `start`, or from `start` when there is none, to the
        first one from `end` on, or to `now` when there is none yet. None when there is no heartbeat
        before `end`: nothing shows that intake was up.

        The longer one of HTTP and gRPC stands. gRPC need not be open: in an interval without a
        heartbeat of it none is missing, and before its first one in three days none is, either.
        """
        before, within, after = self._around(environment, IntakeDoor.HTTP, start, end)
        if not before and not within:
            return None
        beats = [*(before or [start]), *within, *(after or [max(now, end)])]
        before, within, after = self._around(environment, IntakeDoor.GRPC, start, end)
        optional = [*before, *within, *(after or [max(now, end)])] if within else []
        return max(
            later - earlier for each in (beats, optional) for earlier, later in pairwise(each)
        )

    def _around(
        self, environment: str, door: IntakeDoor, start: float, end: float
    ) -> tuple[list[float], list[float], list[float]]:
        """Return the last heartbeat up to `start`, all up to `end`, and the first from `end` on."""
        key = _heartbeats(environment, door)
        pipe = self._redis.pipeline(transaction=False)
        oldest = start - HEARTBEATS_KEPT_S if door is IntakeDoor.GRPC else "-inf"
        pipe.zrange(key, start, oldest, byscore=True, desc=True, offset=0, num=1)
        pipe.zrange(key, f"({start}", f"({end}", byscore=True)
        pipe.zrange(key, end, "+inf", byscore=True, offset=0, num=1)
        before, within, after = ([float(beat) for beat in found] for found in pipe.execute())
        return before, within, after


def _heartbeats(environment: str, door: IntakeDoor) -> str:
    keys = EnvironmentKeys(environment)
    match door:
        case IntakeDoor.HTTP:
            return keys.heartbeats
        case IntakeDoor.GRPC:
            return keys.grpc_heartbeats
