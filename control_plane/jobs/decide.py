"""Delayed invariants: decided when no record explains a suspicion within two minutes."""

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.commands.violations import record_non_latching
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.delta.request import UNTRUSTED_VIOLATION
from guardwave.control_plane.stores.evidence.suspects import Severity, SuspectedViolation
from guardwave.reducer.catalogue import CATALOGUE
from guardwave.reducer.vocabulary import Invariant, Mode

# These hold only for guards that declare them; the others hold for every guard.
ONLY_IF_DECLARED = frozenset({Invariant.STOP_WITHOUT_WARN, Invariant.ENFORCED_ON_UNRELIABLE_INPUT})


def decide_overdue(context: Context, environment: str) -> tuple[SuspectedViolation, ...]:
    """Decide every suspicion whose time is over; return those that are violations.

    A violation from a trusted producer latches the environment or, if its host numbers no
    transitions, is recorded; from other producers it is only counted. A suspicion is marked as
    decided last: after a crash it is found again, and its identity is recorded once.
    """
    suspicions = context.suspects.overdue(environment, context.clock.now())
    violations = tuple(suspicion for suspicion in suspicions if _is_violation(suspicion))
    latching = [_found(item) for item in violations if item.severity is Severity.LATCHING]
    if latching:
        latch(context, environment, latching)
    unnumbered = [_found(item) for item in violations if item.severity is Severity.RECORDED]
    if unnumbered:
        record_non_latching(context, environment, unnumbered)
    for suspicion in suspicions:
        is_counted = suspicion in violations and suspicion.severity is Severity.COUNTED
        counter = f"{UNTRUSTED_VIOLATION}:{suspicion.invariant}" if is_counted else ""
        context.suspects.decide(environment, suspicion, counted_as=counter)
    return violations


def _is_violation(suspicion: SuspectedViolation) -> bool:
    if suspicion.invariant not in ONLY_IF_DECLARED:
        return True
    entry = CATALOGUE.get(suspicion.stratum.guard)
    return entry is not None and suspicion.invariant in entry.declares


def _found(suspicion: SuspectedViolation) -> FoundViolation:
    return FoundViolation(
        identity=suspicion.identity,
        invariant=suspicion.invariant,
        guard=suspicion.stratum.guard,
        mode=suspicion.stratum.mode or Mode.OFF,
        generation=suspicion.generation,
    )
