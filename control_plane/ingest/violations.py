"""Immediate invariants that a record breaks, and violations that an assignment id vouches for."""

from collections.abc import Iterable

from control_plane.commands.rollback import FoundViolation
from control_plane.ingest.records import FlagEvaluation, PromptEvent, Transition
from reducer.catalogue import CATALOGUE
from reducer.rollout.assignment import Assignment
from reducer.rollout.invariants import TransitionFacts, immediate_violations
from reducer.vocabulary import Invariant

_SENSITIVE = (Invariant.SENSITIVE_FIELD,)
_NOTHING_DECLARED: frozenset[Invariant] = frozenset()


def broken_by(
    record: PromptEvent | FlagEvaluation, assigned: Assignment | None
) -> tuple[Invariant, ...]:
    """Return the immediate invariants that a record breaks; `assigned` is None without a valid id.

    Without an id no assigned mode is known, so no `mode_mismatch` is.
    """
    if not isinstance(record, Transition):
        return _SENSITIVE if record.has_body or record.deny_listed else ()
    facts = TransitionFacts(
        decision=record.decision,
        mode=record.mode,
        assigned_mode=None if assigned is None else assigned.mode,
        reset_reason=record.reset_reason,
        terminal_status=record.terminal_status,
        execution_status=record.execution_status,
        batch_complete=record.batch_complete,
        deny_listed=record.deny_listed,
        has_body=record.has_body,
    )
    return immediate_violations(facts, declares=declared_by(record.guard))


def declared_by(guard: str | None) -> frozenset[Invariant]:
    """Return the invariants that depend on how a guard counts, and that this one declares."""
    entry = CATALOGUE.get(guard or "")
    return _NOTHING_DECLARED if entry is None else entry.declares


def vouched(
    invariants: Iterable[Invariant], assigned: Assignment, *, identity: int
) -> tuple[FoundViolation, ...]:
    """Return the violations of a record, of this identity, that an assignment id vouches for."""
    return tuple(
        FoundViolation(
            identity=f"{identity}:{invariant}",
            invariant=invariant,
            guard=assigned.guard,
            mode=assigned.mode,
            generation=assigned.generation,
        )
        for invariant in invariants
    )
