"""Dialect protocol: the scopes that a dialect reads, and the result of reading one item."""

from typing import NamedTuple, Protocol, TypeAlias

from guardwave.control_plane.ingest.contract import Clock
from guardwave.control_plane.ingest.model.otlp_values import LogItem, Point, Span
from guardwave.control_plane.ingest.model.records import Origin, Record
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, Rejection

NO_SCOPES: frozenset[str] = frozenset()


class Scopes(NamedTuple):
    """The instrumentation scopes that a dialect reads, by signal; items of others are not decoded.

    Without a dialect that reads spans, a trace request is accepted unread.
    """

    logs: frozenset[str] = NO_SCOPES
    points: frozenset[str] = NO_SCOPES
    spans: frozenset[str] = NO_SCOPES


class ItemContext(NamedTuple):
    """The facts that all items of one Resource and scope share.

    `now_ns` is the environment's time; `clock` maps a sender's nanoseconds to it.
    """

    origin: Origin
    scope_version: str
    now_ns: int
    clock: Clock


class Accepted(NamedTuple):
    """The records that an item became, none or several, in the order in which they are counted.

    `dropped` counts attributes that the dialect does not know: they end here.
    """

    records: tuple[Record, ...]
    dropped: int = 0


# An item is accepted, rejected with a sentence for its sender, or ignored. A dialect may also raise
# `ItemRejected`.
ReadResult: TypeAlias = Accepted | Rejection | IgnoreReason


class Dialect(Protocol):
    """Telemetry of one kind of host.

    It reads item by item and keeps nothing between them: items come in any order, twice, and in
    other bodies. It recognises an item of its scopes by the name of the event, metric or span. For
    an unknown name it answers UNKNOWN_EVENT or UNKNOWN_METRIC, and the next dialect of the scope
    is asked. It passes assignment ids on and does not verify them.
    """

    @property
    def scopes(self) -> Scopes:
        """Return the scopes whose items it wants to see."""
        ...

    def contract_of(self, scope_version: str) -> int | None:
        """Return the telemetry contract of a scope's version; None rejects all of its items."""
        ...

    def read_log(self, item: LogItem, context: ItemContext) -> ReadResult:
        """Read a log record; may raise ItemRejected."""
        ...

    def read_point(self, point: Point, context: ItemContext) -> ReadResult:
        """Read a metric point; may raise ItemRejected."""
        ...

    def read_span(self, span: Span, context: ItemContext) -> ReadResult:
        """Read a span; may raise ItemRejected."""
        ...
