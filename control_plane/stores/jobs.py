"""Jobs: the worker's queue of each environment under a fenced lease, and intake's heartbeats."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from redis import Redis

from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server import call, reply_int, translate_store_errors

LEASE_MS = 5_000
# How often intake shows that it is up, which is the precision of an outage.
HEARTBEAT_S = 20
HEARTBEATS_KEPT_S = 3 * 86_400


class JobKind(StrEnum):
    """The kinds of work that the worker does."""

    EVALUATE = "evaluate"
    PROMOTE = "promote"
    LOOK = "look for harm"
    PLAN = "plan"


class IntakeDoor(StrEnum):
    """The doors of intake, each with heartbeats of its own."""

    HTTP = "http"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work; `number` is that of its evaluation, promotion, wave or plan."""

    kind: JobKind
    guard: str
    number: int


class JobStore:
    """Queues of all environments. A job is done at least once; its effect is committed once."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def put(self, environment: str, job: Job) -> None:
        """Queue a job."""
        self._redis.lpush(EnvironmentKeys(environment).jobs, encode(job))

    @translate_store_errors()
    def lease(self, environment: str, holder: str) -> int:
        """Take or renew the environment's lease for 5 s; return its fence, 0 if it is held."""
        names = [EnvironmentKeys(environment).lease]
        return reply_int(call(self._redis, "gw_lease", keys=names, arguments=(holder, LEASE_MS)))

    @translate_store_errors()
    def take(self, environment: str) -> Job | None:
        """Take the oldest job for the lease's holder; the job stays taken until it is complete.

        A holder works on one job at a time. If a job is taken already, the worker that took it
        died, or the reply to this worker was lost; the same job is returned again.
        """
        keys = EnvironmentKeys(environment)
        stored = self._redis.lindex(keys.taken_jobs, -1)
        if stored is None:
            stored = self._redis.lmove(keys.jobs, keys.taken_jobs, "RIGHT", "LEFT")
        return None if stored is None else decode(Job, stored)

    @translate_store_errors()
    def complete(self, environment: str, job: Job) -> None:
        """Remove a taken job."""
        self._redis.lrem(EnvironmentKeys(environment).taken_jobs, 1, encode(job).decode())

    @translate_store_errors()
    def release(self, environment: str) -> None:
        """Give up the environment's lease, and delete its jobs: their work is done."""
        keys = EnvironmentKeys(environment)
        self._redis.delete(keys.lease, keys.jobs, keys.taken_jobs)

    @translate_store_errors()
    def beat(
        self, environment: str, wall_second: int, *, door: IntakeDoor = IntakeDoor.HTTP
    ) -> None:
        """Record for three days that intake was up at a door in this wall-clock second."""
        key = _heartbeats(environment, door)
        pipe = self._redis.pipeline(transaction=False)
        pipe.zadd(key, {str(wall_second): wall_second})
        pipe.zremrangebyscore(key, "-inf", wall_second - HEARTBEATS_KEPT_S)
        pipe.execute()

    @translate_store_errors()
    def longest_outage(
        self, environment: str, start: float, end: float, *, now: float
    ) -> float | None:
        """Return the longest time between two heartbeats that touches [start, end), in seconds.

        All times are wall-clock seconds. A heartbeat proves its own second only: the result is at
        least as long as the outage, at most `HEARTBEAT_S` longer, and `HEARTBEAT_S` without one.
        An outage across a bound of the interval counts whole: from the last heartbeat up to
        `start` (or from `start` when there is none) to the first one from `end` on (or to `now`
        when there is none yet). None when there is no heartbeat before `end`: nothing shows that
        intake was up.

        The longer outage of HTTP and gRPC counts. gRPC need not be open: it has no outage in an
        interval without a heartbeat of it, and none before its first heartbeat in three days.
        """
        before, within, after = self._beats_around(environment, IntakeDoor.HTTP, start, end)
        if not before and not within:
            return None
        http = [*(before or [start]), *within, *(after or [max(now, end)])]
        before, within, after = self._beats_around(environment, IntakeDoor.GRPC, start, end)
        grpc = [*before, *within, *(after or [max(now, end)])] if within else []
        return max(later - earlier for beats in (http, grpc) for earlier, later in pairwise(beats))

    def _beats_around(
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
