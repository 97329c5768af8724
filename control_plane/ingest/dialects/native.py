"""Native dialect: scope `agent.guard`, as docs/telemetry.md describes it."""

from dataclasses import replace

from guardwave.control_plane.ingest.contract import (
    EVENTS,
    EventType,
    IncomingEvent,
    PointContext,
    accept_point,
    accepted_time,
    limits,
    sift_attributes,
)
from guardwave.control_plane.ingest.dialects.dialect import (
    Accepted,
    ItemContext,
    ReadResult,
    Scopes,
)
from guardwave.control_plane.ingest.evidence import leak_of_event, leak_of_point
from guardwave.control_plane.ingest.model.otlp_values import LogItem, Point, Span
from guardwave.control_plane.ingest.model.records import Transition
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, ItemRejected
from guardwave.reducer import contract

_SCOPES = frozenset({contract.SCOPE})


class NativeDialect:
    """Events and counters of hosts that were written for guardwave; it reads no spans."""

    scopes = Scopes(logs=_SCOPES, points=_SCOPES)

    def contract_of(self, scope_version: str) -> int | None:
        """Return contract 1 for the versions that speak it."""
        return limits.SCOPE_VERSIONS.get(scope_version)

    def read_log(self, item: LogItem, context: ItemContext) -> ReadResult:
        """Read one of the contract's events."""
        # older SDKs have no field for the name and send it as an attribute
        name = item.event_name or item.attributes.get(limits.EVENT_NAME)
        event = EVENTS.get(name) if isinstance(name, str) else None
        if event is None:
            return IgnoreReason.UNKNOWN_EVENT
        try:
            return _read_event(item, event, context)
        except ItemRejected as error:
            leak = leak_of_event(item, context.origin, event)
            return replace(error.rejection, leak=leak)

    def read_point(self, point: Point, context: ItemContext) -> ReadResult:
        """Read a point of one of the contract's counters or of its histogram."""
        is_early = context.scope_version == limits.EARLY_SCOPE_VERSION
        shared = PointContext(context.origin, context.now_ns, context.clock, is_early)
        try:
            accepted = accept_point(point, shared)
        except ItemRejected as error:
            return replace(error.rejection, leak=leak_of_point(point, context.origin))
        if isinstance(accepted, IgnoreReason):
            return accepted
        return Accepted((accepted.record,), accepted.dropped)

    def read_span(self, span: Span, context: ItemContext) -> ReadResult:
        """Answer that the contract has no spans."""
        del span, context
        return IgnoreReason.UNKNOWN_EVENT


def _read_event(item: LogItem, event: EventType, context: ItemContext) -> ReadResult:
    happened = item.time_ns or item.observed_time_ns
    time_ns = accepted_time(happened, now_ns=context.now_ns, clock=context.clock)
    known, dropped, deny_listed = sift_attributes(item.attributes, event.allowed)
    record = event.build(IncomingEvent(context.origin, time_ns, known, deny_listed, item.has_body))
    if record is None:
        return IgnoreReason.OTHER_FLAG
    if isinstance(record, Transition) and context.scope_version == limits.EARLY_SCOPE_VERSION:
        record = _numbered_from_one(record)
    return Accepted((record,), dropped)


def _numbered_from_one(record: Transition) -> Transition:
    """Return a transition of a host before contract 1, whose sequences began at 0."""
    assert record.sequence is not None  # the event's builder rejects one without
    return replace(record, sequence=record.sequence + 1)
