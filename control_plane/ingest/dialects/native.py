"""guardwave's own dialect: scope `agent.guard`, as docs/telemetry.md describes it."""

from dataclasses import replace

from control_plane.ingest import accepted
from control_plane.ingest.allow_list import sift
from control_plane.ingest.dialects.dialect import Arrival, Fate, Refused, Scopes, Taken
from control_plane.ingest.event_time import accepted_time
from control_plane.ingest.events import EVENTS, Event, Reading
from control_plane.ingest.exposed_items import exposed_by_event, exposed_by_point
from control_plane.ingest.otlp import LogItem, Point, Span
from control_plane.ingest.points import PointArrival, take_point
from control_plane.ingest.records import Transition
from control_plane.ingest.rejections import IgnoreReason, Refusal
from reducer import contract

_SCOPES = frozenset({contract.SCOPE})


class NativeDialect:
    """Events and counters of hosts that were written for guardwave; it reads no spans."""

    scopes = Scopes(logs=_SCOPES, points=_SCOPES)

    def contract_of(self, scope_version: str) -> int | None:
        """Return contract 1 for the versions that speak it."""
        return accepted.SCOPE_VERSIONS.get(scope_version)

    def read_log(self, item: LogItem, arrival: Arrival) -> Fate:
        """Read one of the contract's events."""
        # older SDKs have no field for the name and send it as an attribute
        name = item.event_name or item.attributes.get(accepted.EVENT_NAME)
        event = EVENTS.get(name) if isinstance(name, str) else None
        if event is None:
            return IgnoreReason.UNKNOWN_EVENT
        try:
            return _take_event(item, event, arrival)
        except Refusal as refusal:
            return Refused(refusal.rejected, exposed_by_event(item, arrival.origin, event))

    def read_point(self, point: Point, arrival: Arrival) -> Fate:
        """Read a point of one of the contract's counters or of its histogram."""
        is_early = arrival.scope_version == accepted.EARLY_SCOPE_VERSION
        shared = PointArrival(arrival.origin, arrival.now_ns, arrival.clock, is_early)
        try:
            taken = take_point(point, shared)
        except Refusal as refusal:
            return Refused(refusal.rejected, exposed_by_point(point, arrival.origin))
        if isinstance(taken, IgnoreReason):
            return taken
        return Taken((taken.record,), taken.dropped)

    def read_span(self, span: Span, arrival: Arrival) -> Fate:
        """Answer that the contract has no spans."""
        del span, arrival
        return IgnoreReason.UNKNOWN_EVENT


def _take_event(item: LogItem, event: Event, arrival: Arrival) -> Fate:
    happened = item.time_ns or item.observed_time_ns
    time_ns = accepted_time(happened, now_ns=arrival.now_ns, clock=arrival.clock)
    known, dropped, deny_listed = sift(item.attributes, event.allowed)
    record = event.build(Reading(arrival.origin, time_ns, known, deny_listed, item.has_body))
    if record is None:
        return IgnoreReason.OTHER_FLAG
    if isinstance(record, Transition) and arrival.scope_version == accepted.EARLY_SCOPE_VERSION:
        record = _numbered_from_one(record)
    return Taken((record,), dropped)


def _numbered_from_one(record: Transition) -> Transition:
    """Return a transition of before contract 1, when a prompt's sequence began at 0."""
    assert record.sequence is not None  # the event's builder refuses one without
    return replace(record, sequence=record.sequence + 1)
