"""Rejected items: their identities, and the content that they must not carry."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from hashlib import blake2b

from guardwave.control_plane.ingest.contract import (
    ALLOWED_ON_POINTS,
    EventType,
    SiftedAttributes,
    fields,
    sift_attributes,
)
from guardwave.control_plane.ingest.evidence.template_effects import volume_identity
from guardwave.control_plane.ingest.evidence.violations import (
    broken_invariants_of_point,
    violation_identity,
)
from guardwave.control_plane.ingest.model.identity import canonical, digest63, origin_identity
from guardwave.control_plane.ingest.model.otlp_values import Attributes, LogItem, OtherPoint, Point
from guardwave.control_plane.ingest.model.records import (
    ContentLeak,
    CounterPoint,
    DurationPoint,
    FlagEvaluation,
    LoopDetected,
    Origin,
    PromptEvent,
    Record,
    Transition,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection, RejectReason
from guardwave.control_plane.stores.evidence.delta.request import RejectedItems
from guardwave.reducer import contract
from guardwave.reducer.rollout.invariants import NEVER_ON_A_METRIC

_OF_A_CLOCK = frozenset({RejectReason.LATE, RejectReason.FUTURE})


def counter_prefix(reason: RejectReason) -> str:
    """Return how the counter in intake health begins for this reason."""
    return "quarantined" if reason.is_quarantine else "refused"


def group_rejections(
    rejected: Sequence[Rejection], *, body: bytes, today: date
) -> tuple[RejectedItems, ...]:
    """Group the rejected items of a body by version, reason and process, each with a digest.

    An item without an identity is recognised only in the same body. An item without environment or
    version counts as a record of today that does not conform.
    """
    digests: defaultdict[tuple[str, RejectReason, str], list[int]] = defaultdict(list)
    body_digest, without_content = "", 0
    for rejection in rejected:
        if rejection.content is not None:
            fields = [str(rejection.content)]
        else:
            body_digest = body_digest or blake2b(body, digest_size=16).hexdigest()
            fields = [body_digest, str(without_content)]
            without_content += 1
        reason = rejection.reason
        instance = rejection.instance if reason in _OF_A_CLOCK else ""
        digests[rejection.version, reason, instance].append(digest63("refused", reason, *fields))
    return tuple(
        RejectedItems(
            version,
            f"{counter_prefix(reason)}:{reason}",
            tuple(found),
            today if reason.is_quarantine else None,
            instance,
        )
        for (version, reason, instance), found in digests.items()
    )


def record_identity(record: Record) -> int:
    """Return the identity of a rejected record: as if it were accepted, with its assignment ids."""
    if isinstance(record, CounterPoint | DurationPoint):
        identity = record.identity
    else:
        guard = (
            record.guard if isinstance(record, Transition | LoopDetected | FlagEvaluation) else ""
        )
        mode = record.mode if isinstance(record, Transition | FlagEvaluation) else None
        identity = volume_identity(record, guard=guard or "", mode=mode)
    sender = origin_identity(record.origin)
    return digest63("record", str(sender), str(identity), *ids_of(record))


def ids_of(record: Record) -> tuple[str, ...]:
    """Return the assignment ids of a record, its own or its Resource's."""
    if isinstance(record, PromptEvent):
        return record.assignment_ids
    return record.origin.assignment_ids


def leak_of_event(item: LogItem, origin: Origin, event: EventType) -> ContentLeak | None:
    """Return the content leak of a rejected log event; None when it carried no content."""
    sifted = sift_attributes(item.attributes, event.allowed)
    if not (sifted.deny_listed or item.has_body) or _is_of_another_flag(sifted, event):
        return None
    leak = content_leak(item, origin, guard=_guard(sifted))
    return replace(leak, assignment_ids=_assignment_ids(sifted) or origin.assignment_ids)


def content_leak(item: LogItem, origin: Origin, *, guard: str | None) -> ContentLeak:
    """Return the leak of a log event that carried content, with the ids of its Resource."""
    time_ns = item.time_ns or item.observed_time_ns
    return ContentLeak(
        origin=origin,
        time_ns=time_ns,
        guard=guard,
        assignment_ids=origin.assignment_ids,
        identity=_identity(origin, str(time_ns), item.attributes),
    )


def leak_of_point(point: Point, origin: Origin) -> ContentLeak | None:
    """Return the content leak of a rejected point; None when it carried no content."""
    allowed = ALLOWED_ON_POINTS.get(point.metric)
    if allowed is None or isinstance(point, OtherPoint):
        return None
    sifted = sift_attributes(point.attributes, allowed, forbidden=NEVER_ON_A_METRIC)
    if not sifted.deny_listed:
        return None
    interval = f"{point.metric} {point.start_ns} {point.time_ns}"
    return ContentLeak(
        origin=origin,
        time_ns=point.time_ns,
        guard=_guard(sifted),
        assignment_ids=origin.assignment_ids,
        identity=_identity(origin, interval, point.attributes),
    )


def leak_of_record(record: Record) -> ContentLeak | None:
    """Return the leak of a record that its assignment ids reject; None without a violation."""
    if isinstance(record, CounterPoint | DurationPoint):
        return _leak_of_accepted_point(record)
    if not (record.deny_listed or record.has_body):
        return None
    return ContentLeak(
        origin=record.origin,
        time_ns=record.time_ns,
        guard=record.guard if isinstance(record, FlagEvaluation) else None,
        assignment_ids=ids_of(record),
        identity=digest63("exposed", str(record_identity(record))),
    )


def _leak_of_accepted_point(point: CounterPoint | DurationPoint) -> ContentLeak | None:
    broken = broken_invariants_of_point(point, None)
    if not broken:
        return None
    identity = violation_identity(point)
    return ContentLeak(
        origin=point.origin,
        time_ns=point.time_ns if identity == point.identity else point.start_ns,
        guard=point.guard,
        assignment_ids=point.origin.assignment_ids,
        identity=digest63("exposed", str(identity)),
        broken=broken,
    )


def _is_of_another_flag(sifted: SiftedAttributes, event: EventType) -> bool:
    return contract.FLAG_KEY in event.allowed and _flag(sifted) is None


def _flag(sifted: SiftedAttributes) -> str | None:
    """Return the guard that a flag evaluation is about; None for any other flag or event."""
    key = sifted.known.get(contract.FLAG_KEY)
    if not isinstance(key, str) or not key.startswith(contract.FLAG_PREFIX):
        return None
    return key.removeprefix(contract.FLAG_PREFIX)


def _guard(sifted: SiftedAttributes) -> str | None:
    guard = sifted.known.get(contract.GUARD)
    return guard if isinstance(guard, str) else _flag(sifted)


def _assignment_ids(sifted: SiftedAttributes) -> tuple[str, ...]:
    try:
        return fields.assignment_ids(sifted.known)
    except ItemRejected:
        return ()


def _identity(origin: Origin, when: str, attributes: Attributes) -> int:
    named = [text for key in sorted(attributes) for text in (key, canonical(attributes[key]))]
    return digest63("exposed", origin.environment, origin.instance_id, when, *named)
