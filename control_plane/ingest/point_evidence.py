"""What a metric point adds: volume, and, where one owner is behind it, evidence by counters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from control_plane.clock import NANOSECONDS
from control_plane.ingest.booked import Backing, known_guard, owner_bucket
from control_plane.ingest.event_time import utc_day, utc_hour
from control_plane.ingest.identity import instance_digest
from control_plane.ingest.records import CounterPoint, DurationPoint
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import ENDED_PLACE, STARTED_PLACE, VolumeEvent
from control_plane.stores.evidence_parts import OUTCOME_PLACES
from control_plane.stores.evidence_points import (
    EXPLICIT_BOUNDS_POINT,
    OVERFLOW_POINT,
    PointEvent,
    PointOwner,
    Stream,
)
from control_plane.stores.seen import Seen
from reducer import contract
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Decision, ResetReason

# Places in an owner-day row; the Lua library holds the same.
_DISRUPTED, _TOKENS, _TURNS = 8, 9, 10
_WOULD_STOPPED, _STOPPED, _UNRELIABLE = 11, 12, 14
_WHOLE: Mapping[str, int] = {
    contract.TOKENS_METRIC: _TOKENS,
    contract.TURNS_METRIC: _TURNS,
    contract.DISRUPTIONS_METRIC: _DISRUPTED,
}
_DECIDED: Mapping[str, int] = {
    Decision.WOULD_STOP: _WOULD_STOPPED,
    Decision.WOULD_SUSPEND: _WOULD_STOPPED,
    Decision.STOPPED: _STOPPED,
    Decision.SUSPENDED: _STOPPED,
}
_OUTCOMES: Mapping[str, int] = {outcome.value: place for outcome, place in OUTCOME_PLACES.items()}
_MICROSECOND_NS = 1000


def counter_of(point: CounterPoint | DurationPoint) -> str:
    """Return the name that the point's volume is counted under: the metric and its labels."""
    labels = point.labels if isinstance(point, CounterPoint) else ()
    if point.is_overflow:
        labels = (*labels, ("overflow", "true"))
    shown = ",".join(f"{key}={value}" for key, value in labels)
    return f"{point.metric}{{{shown}}}" if shown else point.metric


def places_of(point: CounterPoint | DurationPoint) -> tuple[int, ...]:
    """Return the sums of an owner-day that the point's value is added to; none for most points."""
    if isinstance(point, DurationPoint):
        return ()
    if point.metric in _WHOLE:
        return (_WHOLE[point.metric],)
    labels = dict(point.labels)
    if point.metric == contract.PROMPTS_METRIC:
        if labels.get("prompt.stage") == "start":
            return (STARTED_PLACE,)
        outcome = _OUTCOMES.get(labels.get("prompt.outcome", ""))
        return () if outcome is None else (outcome, ENDED_PLACE)
    if point.metric == contract.TRANSITIONS_METRIC:
        decided = _DECIDED.get(labels.get("decision", ""))
        is_unreliable = labels.get("reset.reason") == ResetReason.UNRELIABLE_INPUT
        return (() if decided is None else (decided,)) + ((_UNRELIABLE,) if is_unreliable else ())
    return ()


def counted_point(
    point: CounterPoint | DurationPoint, backings: Sequence[Backing]
) -> tuple[PointEvent | VolumeEvent, PointOwner | None]:
    """Return what the point adds, and whose evidence by counters it is, None for nobody's.

    `backings` are what the ids of its Resource vouch for.
    """
    owner = _owner_of(point, backings)
    mode = owner.cell.mode if point.mode is None and owner is not None else point.mode
    cell = Cell(known_guard(point.guard), point.origin.service_version, mode=mode)
    if not point.stream:
        return volume_of(point, cell=cell), None
    is_missed = is_missed_in_evidence(point) and bool(backings)
    return point_event(point, cell=cell, owner=owner, is_missed=is_missed), owner


def _owner_of(
    point: CounterPoint | DurationPoint, backings: Sequence[Backing]
) -> PointOwner | None:
    """Return whose evidence by counters the point is, by an id of its Resource for its guard."""
    if not point.stream:
        return None
    is_unnumbered = isinstance(point, CounterPoint) and point.is_unnumbered
    is_transition = point.metric == contract.TRANSITIONS_METRIC
    for assigned, cell in backings:
        if assigned.guard == point.guard:
            return PointOwner(
                assigned.pseudonym,
                owner_bucket(assigned.pseudonym),
                replace(cell, source=EvidenceSource.COUNTERS),
                places_of(point),
                counts_unnumbered=is_unnumbered and is_transition,
                is_witness=is_unnumbered and not is_transition,
            )
    return None


def is_missed_in_evidence(point: CounterPoint | DurationPoint) -> bool:
    """Whether the evidence of whoever it is of lacks what the point's SDK counted beyond its limit.

    Tool executions are volume, whatever their attributes.
    """
    return point.is_overflow and point.metric != contract.EXECUTIONS_METRIC


def point_event(
    point: CounterPoint | DurationPoint,
    *,
    cell: Cell,
    owner: PointOwner | None,
    is_missed: bool = False,
) -> PointEvent:
    """Return what the store adds of the point: the store knows what came of its stream before.

    `is_missed` as `PointEvent.is_missed`.
    """
    # A point tells of the interval before its time: midnight belongs to the day before.
    last_ns = point.time_ns - 1
    return PointEvent(
        seen=Seen(point.identity, point.time_ns // NANOSECONDS),
        day=utc_day(last_ns),
        hour=utc_hour(last_ns),
        cell=cell,
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


def volume_of(point: CounterPoint | DurationPoint, *, cell: Cell) -> VolumeEvent:
    """Return what a point adds that is of no stream: what it counts, and no evidence."""
    return VolumeEvent(
        seen=Seen(point.identity, point.time_ns // NANOSECONDS),
        day=utc_day(point.time_ns - 1),
        cell=cell,
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
