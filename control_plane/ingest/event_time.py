"""When something happened, on the environment's clock, and whether that is still accepted."""

from collections.abc import Callable
from datetime import date
from functools import lru_cache

from control_plane.ingest.accepted import NEWEST_NS, OLDEST_NS, SECOND_NS
from control_plane.ingest.rejections import Refusal, RejectReason

Clock = Callable[[int], int]

HOUR_NS = 3600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
_FIRST_DAY = date(1970, 1, 1).toordinal()


def sender_clock(time_ns: int) -> int:
    """Return the time unchanged: outside the demo, sender and environment share UTC."""
    return time_ns


def accepted_time(time_ns: int, *, now_ns: int, clock: Clock) -> int:
    """Return the time on the environment's clock, or refuse the item as late or future.

    Accepted is from 48 hours before `now_ns` to 5 minutes after it, both included; `now_ns` is
    on the environment's clock already. A time of 0 is unset.
    """
    if not time_ns:
        raise Refusal(RejectReason.NO_TIME, "neither time nor observed time is set")
    mapped = clock(time_ns)
    if mapped < now_ns - OLDEST_NS:
        hours = (now_ns - mapped) / (3600 * SECOND_NS)
        raise Refusal(RejectReason.LATE, f"the time is {hours:.1f} hours ago")
    if mapped > now_ns + NEWEST_NS:
        ahead = (mapped - now_ns) / SECOND_NS
        raise Refusal(RejectReason.FUTURE, f"the time is {ahead:.0f} seconds ahead")
    return mapped


def utc_day(time_ns: int) -> date:
    """Return the UTC day of nanoseconds since 1970."""
    return _day(time_ns // DAY_NS)


@lru_cache(maxsize=64)
def _day(number: int) -> date:
    return date.fromordinal(_FIRST_DAY + number)


def utc_hour(time_ns: int) -> int:
    """Return the hour, 0 to 23, of its UTC day of nanoseconds since 1970."""
    return time_ns % DAY_NS // HOUR_NS
