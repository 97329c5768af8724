"""Metric points as evidence: volume, and evidence by counters where an owner is verified."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.contract import utc_day, utc_hour
from guardwave.control_plane.ingest.evidence.delta import (
    VerifiedAssignment,
    known_guard,
    owner_bucket,
)
from guardwave.control_plane.ingest.model.identity import instance_digest
from guardwave.control_plane.ingest.model.records import CounterPoint, DurationPoint
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import (
    EXPLICIT_BOUNDS_POINT,
    OVERFLOW_POINT,
    PointEvent,
    PointOwner,
    Stream,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import OUTCOME_PLACES
from guardwave.control_plane.stores.evidence.delta.request import (
    ENDED_PLACE,
    STARTED_PLACE,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer import contract
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Decision, ResetReason

# Places in an owner-day row; the Lua library holds the same.
_DISRUPTED, _TOKENS, _TURNS = 8, 9, 10
_WOULD_STOPPED, _STOPPED, _UNRELIABLE = 11, 12, 14
_PLACE_OF_METRIC: Mapping[str, int] = {
    contract.TOKENS_METRIC: _TOKENS,
    contract.TURNS_METRIC: _TURNS,
    contract.DISRUPTIONS_METRIC: _DISRUPTED,
}
_PLACE_OF_DECISION: Mapping[str, int] = {
    Decision.WOULD_STOP: _WOULD_STOPPED,
    Decision.WOULD_SUSPEND: _WOULD_STOPPED,
    Decision.STOPPED: _STOPPED,
    Decision.SUSPENDED: _STOPPED,
}
_PLACE_OF_OUTCOME: Mapping[str, int] = {
    outcome.value: place for outcome, place in OUTCOME_PLACES.items()
}
_MICROSECOND_NS = 1000


def counter_of(point: CounterPoint | DurationPoint) -> str:
    """Return the counter of the point's volume: the metric and its labels."""
    labels = point.labels if isinstance(point, CounterPoint) else ()
    if point.is_overflow:
        labels = (*labels, ("overflow", "true"))
    shown = ",".join(f"{key}={value}" for key, value in labels)
    return f"{point.metric}{{{shown}}}" if shown else point.metric


def places_of(point: CounterPoint | DurationPoint) -> tuple[int, ...]:
    """Return the places of an owner-day row that take the point's value; none for most points."""
    if isinstance(point, DurationPoint):
        return ()
    if point.metric in _PLACE_OF_METRIC:
        return (_PLACE_OF_METRIC[point.metric],)
    labels = dict(point.labels)
    if point.metric == contract.PROMPTS_METRIC:
        if labels.get("prompt.stage") == "start":
            return (STARTED_PLACE,)
        outcome = _PLACE_OF_OUTCOME.get(labels.get("prompt.outcome", ""))
        return () if outcome is None else (outcome, ENDED_PLACE)
    if point.metric == contract.TRANSITIONS_METRIC:
        decided = _PLACE_OF_DECISION.get(labels.get("decision", ""))
        is_unreliable = labels.get("reset.reason") == ResetReason.UNRELIABLE_INPUT
        return (() if decided is None else (decided,)) + ((_UNRELIABLE,) if is_unreliable else ())
    return ()


def count_point(
    point: CounterPoint | DurationPoint, assignments: Sequence[VerifiedAssignment]
) -> tuple[PointEvent | VolumeEvent, PointOwner | None]:
    """Return the point's event and its owner, None for a point that is no evidence by counters.

    `assignments` are those of the point's Resource.
    """
    owner = _owner_of(point, assignments)
    mode = owner.stratum.mode if point.mode is None and owner is not None else point.mode
    stratum = Stratum(known_guard(point.guard), point.origin.service_version, mode=mode)
    if not point.stream:
        return volume_of(point, stratum=stratum), None
    is_missed = is_missed_in_evidence(point) and bool(assignments)
    return point_event(point, stratum=stratum, owner=owner, is_missed=is_missed), owner


def _owner_of(
    point: CounterPoint | DurationPoint, assignments: Sequence[VerifiedAssignment]
) -> PointOwner | None:
    """Return the owner of the point, by an id of its Resource for its guard."""
    if not point.stream:
        return None
    is_unnumbered = isinstance(point, CounterPoint) and point.is_unnumbered
    is_transition = point.metric == contract.TRANSITIONS_METRIC
    for assignment, stratum in assignments:
        if assignment.guard == point.guard:
            return PointOwner(
                assignment.pseudonym,
                owner_bucket(assignment.pseudonym),
                replace(stratum, source=EvidenceSource.COUNTERS),
                places_of(point),
                counts_unnumbered=is_unnumbered and is_transition,
                is_witness=is_unnumbered and not is_transition,
            )
    return None


def is_missed_in_evidence(point: CounterPoint | DurationPoint) -> bool:
    """Whether an owner's evidence lacks what the point's SDK counted beyond its limit.

    Tool executions are volume, whatever their attributes.
    """
    return point.is_overflow and point.metric != contract.EXECUTIONS_METRIC


def point_event(
    point: CounterPoint | DurationPoint,
    *,
    stratum: Stratum,
    owner: PointOwner | None,
    is_missed: bool = False,
) -> PointEvent:
    """Return the event of a point in a stream; the store knows the earlier points of the stream.

    `is_missed` is as in `PointEvent`.
    """
    # A point covers the interval before its time: midnight belongs to the day before.
    last_ns = point.time_ns - 1
    return PointEvent(
        dedupe_key=DedupeKey(point.identity, point.time_ns // NANOSECONDS),
        day=utc_day(last_ns),
        hour=utc_hour(last_ns),
        stratum=stratum,
        counter=counter_of(point),
        stream=Stream(
            f"{point.stream & (2**64 - 1):016x}",
            point.is_cumulative,
            point.start_ns // _MICROSECOND_NS,
            point.time_ns // _MICROSECOND_NS,
        ),
        value=point.value if isinstance(point, CounterPoint) else point.count,
        histogram=point.buckets if isinstance(point, DurationPoint) else None,
        owner=owner,
        is_conforming=_is_conforming(point),
        health=_health_of(point),
        began_on=utc_day(point.start_ns) if point.start_ns else None,
        is_overflow=point.is_overflow,
        is_missed=is_missed,
        instance=instance_digest(point.origin.instance_id),
        counts_starts=STARTED_PLACE in places_of(point),
    )


def _health_of(point: CounterPoint | DurationPoint) -> tuple[str, ...]:
    overflow = (OVERFLOW_POINT,) if point.is_overflow else ()
    if isinstance(point, DurationPoint) and point.buckets is None:
        return (*overflow, EXPLICIT_BOUNDS_POINT)
    return overflow


def volume_of(point: CounterPoint | DurationPoint, *, stratum: Stratum) -> VolumeEvent:
    """Return the volume of a point without a stream; it is no evidence."""
    return VolumeEvent(
        dedupe_key=DedupeKey(point.identity, point.time_ns // NANOSECONDS),
        day=utc_day(point.time_ns - 1),
        stratum=stratum,
        counter=counter_of(point),
        by=point.value if isinstance(point, CounterPoint) else point.count,
    )


def _is_conforming(point: CounterPoint | DurationPoint) -> bool | None:
    """Whether the point reports what the gate needs of its kind (the contract check)."""
    if isinstance(point, DurationPoint):
        return None
    labels = dict(point.labels)
    if point.metric != contract.TRANSITIONS_METRIC:
        return True
    return "execution.status" in labels or labels.get("decision") == Decision.RESET
