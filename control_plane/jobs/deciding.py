"""Deciding delayed invariants: two minutes after the records that show one, none explains it."""

from control_plane.commands.rollback import FoundViolation, latch
from control_plane.commands.unlatched import record_unlatched
from control_plane.context import Context
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION
from control_plane.stores.suspects import Suspicion, Worth
from reducer.catalogue import CATALOGUE
from reducer.vocabulary import Invariant, Mode

# Whether these hold depends on how a guard counts; the rest holds for every guard.
ONLY_IF_DECLARED = frozenset({Invariant.STOP_WITHOUT_WARN, Invariant.ENFORCED_ON_UNRELIABLE_INPUT})


def decide_overdue(context: Context, environment: str) -> tuple[Suspicion, ...]:
    """Decide every suspicion whose time is over; return those that are violations.

    Those that trusted producers showed latch the environment, or, of a host that numbers nothing,
    are recorded, before they are marked as decided: a crash in between finds them again, and their
    identity counts them once. Others are counted.
    """
    found = context.suspects.overdue(environment, context.clock.now())
    violations = tuple(each for each in found if _is_violation(each))
    latching = [_found(each) for each in violations if each.worth is Worth.LATCHING]
    if latching:
        latch(context, environment, latching)
    unnumbered = [_found(each) for each in violations if each.worth is Worth.RECORDED]
    if unnumbered:
        record_unlatched(context, environment, unnumbered)
    for each in found:
        is_counted = each in violations and each.worth is Worth.COUNTED
        counter = f"{UNTRUSTED_VIOLATION}:{each.invariant}" if is_counted else ""
        context.suspects.decide(environment, each, counted_as=counter)
    return violations


def _is_violation(suspicion: Suspicion) -> bool:
    if suspicion.invariant not in ONLY_IF_DECLARED:
        return True
    entry = CATALOGUE.get(suspicion.cell.guard)
    return entry is not None and suspicion.invariant in entry.declares


def _found(suspicion: Suspicion) -> FoundViolation:
    return FoundViolation(
        identity=suspicion.identity,
        invariant=suspicion.invariant,
        guard=suspicion.cell.guard,
        mode=suspicion.cell.mode or Mode.OFF,
        generation=suspicion.generation,
    )
