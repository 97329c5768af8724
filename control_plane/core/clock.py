"""Clock: wall time, or the faster time of a demo, made once per process and passed on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from guardwave.reducer.rollout.days import SEAL_DELAY

NANOSECONDS = 1_000_000_000

# In the demo, days pass in seconds. A day is sealed so many real seconds after its end, when the
# batches of the exporters have arrived.
DEMO_SEAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Maps wall-clock time to the time that rollouts and evidence live in.

    In production the two are the same. In the demo `moment = moment_origin + speed * (wall -
    wall_origin)`, in nanoseconds; leases, time-outs and heartbeats stay on wall time.
    """

    wall_ns: Callable[[], int] = field(default=time.time_ns)
    wall_origin_ns: int = 0
    moment_origin_ns: int = 0
    speed: float = 1.0

    def moment_ns(self, wall_ns: int) -> int:
        """Return the moment, in nanoseconds since 1970 UTC, of a wall-clock time."""
        if self.speed == 1.0:
            return wall_ns - self.wall_origin_ns + self.moment_origin_ns
        return self.moment_origin_ns + int((wall_ns - self.wall_origin_ns) * self.speed)

    def wall_ns_at(self, moment_ns: int) -> int:
        """Return the wall-clock time of a moment, both in nanoseconds since 1970 UTC."""
        return self.wall_origin_ns + int((moment_ns - self.moment_origin_ns) / self.speed)

    def wall_at(self, moment: datetime) -> float:
        """Return the wall-clock time of a moment, in seconds since 1970 UTC."""
        return self.wall_ns_at(to_ns(moment)) / NANOSECONDS

    def now_ns(self) -> int:
        """Return the present moment in nanoseconds since 1970 UTC."""
        return self.moment_ns(self.wall_ns())

    def now(self) -> datetime:
        """Return the present moment, UTC, to the microsecond."""
        return from_ns(self.now_ns())

    @property
    def seal_delay(self) -> timedelta:
        """The time from a day's end to its seal: 2 hours, in the demo 5 real seconds."""
        if self.speed == 1.0:
            return SEAL_DELAY
        return timedelta(seconds=DEMO_SEAL_SECONDS * self.speed)


def to_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970 UTC."""
    whole = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return whole * 1000


def from_ns(moment_ns: int) -> datetime:
    """Return the UTC time of nanoseconds since 1970, cut to the microsecond."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment_ns // 1000)


def fixed_clock(moment: datetime) -> Clock:
    """Return a clock that stands still, for imports of history and for tests."""
    return Clock(wall_ns=lambda: to_ns(moment))
