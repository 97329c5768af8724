"""What a dialect is: which scopes it reads, and how one item of them becomes records."""

from typing import NamedTuple, Protocol, TypeAlias

from control_plane.ingest.event_time import Clock
from control_plane.ingest.otlp import LogItem, Point, Span
from control_plane.ingest.records import Exposed, Origin, Record
from control_plane.ingest.rejections import IgnoreReason, Rejected

NO_SCOPES: frozenset[str] = frozenset()


class Scopes(NamedTuple):
    """The instrumentation scopes that a dialect reads, by signal; items of others are not decoded.

    Without a dialect that reads spans, a trace request is accepted unread.
    """

    logs: frozenset[str] = NO_SCOPES
    points: frozenset[str] = NO_SCOPES
    spans: frozenset[str] = NO_SCOPES


class Arrival(NamedTuple):
    """What all items of one Resource and scope share.

    `now_ns` is the environment's time; `clock` maps a sender's nanoseconds to it.
    """

    origin: Origin
    scope_version: str
    now_ns: int
    clock: Clock


class Taken(NamedTuple):
    """The records that an item told, none or several, in the order in which they are booked.

    `dropped` counts attributes that the dialect does not know: they end here.
    """

    records: tuple[Record, ...]
    dropped: int = 0


class Refused(NamedTuple):
    """An item that counts for nothing, and the content that it carried nevertheless."""

    rejected: Rejected
    exposed: Exposed | None = None


# An item is taken in, refused with a word to its sender, or nobody's business. A dialect may also
# raise `Refusal`, which is `Refused` without content.
Fate: TypeAlias = Taken | Refused | IgnoreReason


class Dialect(Protocol):
    """Telemetry of one kind of host.

    It reads item by item and keeps nothing between them: items come in any order, twice, and in
    other bodies. What an item of a known scope is, its names tell: one that the dialect does not
    know it answers UNKNOWN_EVENT or UNKNOWN_METRIC, and the next dialect of the scope is asked.
    Assignment ids are passed on and not verified.
    """

    @property
    def scopes(self) -> Scopes:
        """Return the scopes whose items it wants to see."""
        ...

    def contract_of(self, scope_version: str) -> int | None:
        """Return the telemetry contract of a scope's version; None refuses all of its items."""
        ...

    def read_log(self, item: LogItem, arrival: Arrival) -> Fate:
        """Return what became of a log record; raises Refusal to refuse it."""
        ...

    def read_point(self, point: Point, arrival: Arrival) -> Fate:
        """Return what became of a metric point; raises Refusal to refuse it."""
        ...

    def read_span(self, span: Span, arrival: Arrival) -> Fate:
        """Return what became of a span; raises Refusal to refuse it."""
        ...
