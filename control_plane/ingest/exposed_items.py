"""What a refused item carried that must never be sent: that counts, whatever else is wrong."""

from dataclasses import replace

from control_plane.ingest import fields
from control_plane.ingest.allow_list import Sifted, sift
from control_plane.ingest.events import Event
from control_plane.ingest.identity import canonical, digest63
from control_plane.ingest.otlp import Attributes, LogItem, OtherPoint, Point
from control_plane.ingest.point_violations import shown_by, violation_identity
from control_plane.ingest.points import ALLOWED_ON_POINTS
from control_plane.ingest.records import (
    CounterPoint,
    DurationPoint,
    Exposed,
    FlagEvaluation,
    Origin,
    Record,
)
from control_plane.ingest.refused_identities import ids_of, record_identity
from control_plane.ingest.rejections import Refusal
from reducer import contract
from reducer.rollout.invariants import NEVER_ON_A_METRIC


def exposed_by_event(item: LogItem, origin: Origin, event: Event) -> Exposed | None:
    """Return the content that a refused log event carried; None when it carried none."""
    sifted = sift(item.attributes, event.allowed)
    if not (sifted.deny_listed or item.has_body) or _is_of_another_flag(sifted, event):
        return None
    exposed = exposed_in(item, origin, guard=_guard(sifted))
    return replace(exposed, assignment_ids=_assignment_ids(sifted) or origin.assignment_ids)


def exposed_in(item: LogItem, origin: Origin, *, guard: str | None) -> Exposed:
    """Return a refused log event as one that carried content, under the ids of its Resource."""
    time_ns = item.time_ns or item.observed_time_ns
    return Exposed(
        origin=origin,
        time_ns=time_ns,
        guard=guard,
        assignment_ids=origin.assignment_ids,
        identity=_identity(origin, str(time_ns), item.attributes),
    )


def exposed_by_point(point: Point, origin: Origin) -> Exposed | None:
    """Return the content that a refused point carried; None when it carried none."""
    allowed = ALLOWED_ON_POINTS.get(point.metric)
    if allowed is None or isinstance(point, OtherPoint):
        return None
    sifted = sift(point.attributes, allowed, forbidden=NEVER_ON_A_METRIC)
    if not sifted.deny_listed:
        return None
    interval = f"{point.metric} {point.start_ns} {point.time_ns}"
    return Exposed(
        origin=origin,
        time_ns=point.time_ns,
        guard=_guard(sifted),
        assignment_ids=origin.assignment_ids,
        identity=_identity(origin, interval, point.attributes),
    )


def exposed_by_record(record: Record) -> Exposed | None:
    """Return what a record violates that is refused for its assignment ids; None for nothing."""
    if isinstance(record, CounterPoint | DurationPoint):
        return _shown_by_point(record)
    if not (record.deny_listed or record.has_body):
        return None
    return Exposed(
        origin=record.origin,
        time_ns=record.time_ns,
        guard=record.guard if isinstance(record, FlagEvaluation) else None,
        assignment_ids=ids_of(record),
        identity=digest63("exposed", str(record_identity(record))),
    )


def _shown_by_point(point: CounterPoint | DurationPoint) -> Exposed | None:
    broken = shown_by(point, None)
    if not broken:
        return None
    identity = violation_identity(point)
    return Exposed(
        origin=point.origin,
        time_ns=point.time_ns if identity == point.identity else point.start_ns,
        guard=point.guard,
        assignment_ids=point.origin.assignment_ids,
        identity=digest63("exposed", str(identity)),
        broken=broken,
    )


def _is_of_another_flag(sifted: Sifted, event: Event) -> bool:
    return contract.FLAG_KEY in event.allowed and _flag(sifted) is None


def _flag(sifted: Sifted) -> str | None:
    """Return the guard that a flag evaluation is about; None for any other flag or event."""
    key = sifted.known.get(contract.FLAG_KEY)
    if not isinstance(key, str) or not key.startswith(contract.FLAG_PREFIX):
        return None
    return key.removeprefix(contract.FLAG_PREFIX)


def _guard(sifted: Sifted) -> str | None:
    guard = sifted.known.get(contract.GUARD)
    return guard if isinstance(guard, str) else _flag(sifted)


def _assignment_ids(sifted: Sifted) -> tuple[str, ...]:
    try:
        return fields.assignment_ids(sifted.known)
    except Refusal:
        return ()


def _identity(origin: Origin, when: str, attributes: Attributes) -> int:
    named = [text for key in sorted(attributes) for text in (key, canonical(attributes[key]))]
    return digest63("exposed", origin.environment, origin.instance_id, when, *named)
