"""Immediate invariants that a metric point shows: by its labels, or as its host reports them."""

from functools import lru_cache

from control_plane.clock import NANOSECONDS
from control_plane.ingest.booked import Booked, counting
from control_plane.ingest.identity import digest63
from control_plane.ingest.records import CounterPoint, DurationPoint
from control_plane.ingest.violations import declared_by, vouched
from control_plane.stores.evidence_events import UNVOUCHED_VIOLATION, RefusedEvent
from control_plane.stores.seen import Seen
from reducer.rollout.assignment import Assignment
from reducer.rollout.invariants import TransitionFacts, immediate_violations
from reducer.vocabulary import Decision, Invariant, Mode, ResetReason

_REMEMBERED = 4096


def with_violations(
    booked: Booked, point: CounterPoint | DurationPoint, assigned: Assignment | None
) -> Booked:
    """Return what a point adds with what it violates.

    `assigned` is what vouches for the point; without it a violation is counted and no more. A
    cumulative point shows again, at every export, what earlier ones showed: that is told by an
    event of its own, which is new only when the stream counts more.
    """
    broken = shown_by(point, assigned)
    if not broken:
        return booked
    identity = violation_identity(point)
    if identity != point.identity:
        shown = RefusedEvent(Seen(identity, point.start_ns // NANOSECONDS))
        booked = booked._replace(events=(shown, *booked.events))
    if assigned is not None:
        return booked._replace(violations=vouched(broken, assigned, identity=identity))
    first, *rest = booked.events
    return booked._replace(events=(counting(first, UNVOUCHED_VIOLATION, broken), *rest))


def shown_by(
    point: CounterPoint | DurationPoint, assigned: Assignment | None
) -> tuple[Invariant, ...]:
    """Return what a point violates by what it counts, and what its host reports by count.

    An assignment of another guard says nothing of the point's mode. Whether a batch was complete
    is on no point.
    """
    sensitive = (Invariant.SENSITIVE_FIELD,) if point.deny_listed else ()
    if not _counted(point):
        return sensitive
    labels = point.labels if isinstance(point, CounterPoint) else ()
    is_own = assigned is not None and assigned.guard == point.guard
    mode = assigned.mode if assigned is not None and is_own else None
    return sensitive + _broken_by(labels, point.guard, point.mode, mode)


def violation_identity(point: CounterPoint | DurationPoint) -> int:
    """Return what makes a point's violation the same when it is found again.

    A cumulative point tells all that was counted since its start: it shows a new violation when it
    counts more than before (OpenTelemetry metrics data model, temporality).
    """
    if not (point.is_cumulative and point.stream):
        return point.identity
    return digest63("shown", str(point.stream), str(point.start_ns), str(_counted(point)))


def _counted(point: CounterPoint | DurationPoint) -> int:
    return point.value if isinstance(point, CounterPoint) else point.count


@lru_cache(_REMEMBERED)
def _broken_by(
    labels: tuple[tuple[str, str], ...],
    guard: str | None,
    mode: Mode | None,
    assigned_mode: Mode | None,
) -> tuple[Invariant, ...]:
    told = dict(labels)
    reset_reason = told.get("reset.reason")
    facts = TransitionFacts(
        decision=Decision(told.get("decision", Decision.RESET)),
        mode=mode or Mode.OFF,
        assigned_mode=assigned_mode,
        reset_reason=None if reset_reason is None else ResetReason(reset_reason),
        terminal_status=told.get("terminal.status"),
        execution_status=told.get("execution.status"),
    )
    reported = (Invariant(told["invariant"]),) if "invariant" in told else ()
    broken = immediate_violations(facts, declares=declared_by(guard))
    return tuple(dict.fromkeys((*broken, *reported)))
