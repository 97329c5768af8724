"""Immediate violations: the invariants that one record or point breaks by itself."""

from collections.abc import Iterable
from functools import lru_cache

from guardwave.control_plane.commands.rollback import FoundViolation
from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.evidence.delta import EvidenceDelta, with_counters
from guardwave.control_plane.ingest.model.identity import digest63
from guardwave.control_plane.ingest.model.records import (
    CounterPoint,
    DurationPoint,
    FlagEvaluation,
    PromptEvent,
    Transition,
)
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.request import (
    UNVERIFIED_VIOLATION,
    RejectedEvent,
)
from guardwave.reducer.catalogue import CATALOGUE
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.invariants import TransitionFacts, immediate_violations
from guardwave.reducer.vocabulary import Decision, Invariant, Mode, ResetReason

_SENSITIVE = (Invariant.SENSITIVE_FIELD,)
_NOTHING_DECLARED: frozenset[Invariant] = frozenset()


def broken_invariants(
    record: PromptEvent | FlagEvaluation, assignment: Assignment | None
) -> tuple[Invariant, ...]:
    """Return the immediate invariants that a record breaks.

    `assignment` is None without a valid id: the assigned mode is then unknown, and a
    `mode_mismatch` cannot be found.
    """
    if not isinstance(record, Transition):
        return _SENSITIVE if record.has_body or record.deny_listed else ()
    facts = TransitionFacts(
        decision=record.decision,
        mode=record.mode,
        assigned_mode=None if assignment is None else assignment.mode,
        reset_reason=record.reset_reason,
        terminal_status=record.terminal_status,
        execution_status=record.execution_status,
        batch_complete=record.batch_complete,
        deny_listed=record.deny_listed,
        has_body=record.has_body,
    )
    return immediate_violations(facts, declares=declared_invariants(record.guard))


def declared_invariants(guard: str | None) -> frozenset[Invariant]:
    """Return the invariants that depend on how a guard counts, and that this one declares."""
    entry = CATALOGUE.get(guard or "")
    return _NOTHING_DECLARED if entry is None else entry.declares


def verified_violations(
    invariants: Iterable[Invariant], assignment: Assignment, *, identity: int
) -> tuple[FoundViolation, ...]:
    """Return the violations of a record with this identity under a verified assignment."""
    return tuple(
        FoundViolation(
            identity=f"{identity}:{invariant}",
            invariant=invariant,
            guard=assignment.guard,
            mode=assignment.mode,
            generation=assignment.generation,
        )
        for invariant in invariants
    )


_REMEMBERED = 4096


def with_violations(
    delta: EvidenceDelta, point: CounterPoint | DurationPoint, assignment: Assignment | None
) -> EvidenceDelta:
    """Return a point's delta together with the point's violations.

    Without a verified `assignment` a violation is only counted. A cumulative point repeats, at
    every export, the violations of earlier points: an event of its own carries them, which is new
    only when the stream counts more.
    """
    broken = broken_invariants_of_point(point, assignment)
    if not broken:
        return delta
    identity = violation_identity(point)
    if identity != point.identity:
        carrier = RejectedEvent(DedupeKey(identity, point.start_ns // NANOSECONDS))
        delta = delta._replace(events=(carrier, *delta.events))
    if assignment is not None:
        return delta._replace(violations=verified_violations(broken, assignment, identity=identity))
    first, *rest = delta.events
    return delta._replace(events=(with_counters(first, UNVERIFIED_VIOLATION, broken), *rest))


def broken_invariants_of_point(
    point: CounterPoint | DurationPoint, assignment: Assignment | None
) -> tuple[Invariant, ...]:
    """Return the invariants that a point breaks, by its labels or as reported by its host.

    An assignment of another guard does not apply to the point's mode. No point reports whether a
    batch was complete.
    """
    sensitive = (Invariant.SENSITIVE_FIELD,) if point.deny_listed else ()
    if not _counted(point):
        return sensitive
    labels = point.labels if isinstance(point, CounterPoint) else ()
    is_of_guard = assignment is not None and assignment.guard == point.guard
    mode = assignment.mode if assignment is not None and is_of_guard else None
    return sensitive + _invariants_of_labels(labels, point.guard, point.mode, mode)


def violation_identity(point: CounterPoint | DurationPoint) -> int:
    """Return the identity by which a point's violation is found again.

    A cumulative point counts everything since its start: it has a new violation when it counts more
    than before (OpenTelemetry metrics data model, temporality).
    """
    if not (point.is_cumulative and point.stream):
        return point.identity
    return digest63("shown", str(point.stream), str(point.start_ns), str(_counted(point)))


def _counted(point: CounterPoint | DurationPoint) -> int:
    return point.value if isinstance(point, CounterPoint) else point.count


@lru_cache(_REMEMBERED)
def _invariants_of_labels(
    labels: tuple[tuple[str, str], ...],
    guard: str | None,
    mode: Mode | None,
    assigned_mode: Mode | None,
) -> tuple[Invariant, ...]:
    reported = dict(labels)
    reset_reason = reported.get("reset.reason")
    facts = TransitionFacts(
        decision=Decision(reported.get("decision", Decision.RESET)),
        mode=mode or Mode.OFF,
        assigned_mode=assigned_mode,
        reset_reason=None if reset_reason is None else ResetReason(reset_reason),
        terminal_status=reported.get("terminal.status"),
        execution_status=reported.get("execution.status"),
    )
    by_host = (Invariant(reported["invariant"]),) if "invariant" in reported else ()
    broken = immediate_violations(facts, declares=declared_invariants(guard))
    return tuple(dict.fromkeys((*broken, *by_host)))
