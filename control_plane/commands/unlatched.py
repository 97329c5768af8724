"""Violations that are recorded and hold nothing: of hosts that do not number their transitions."""

from collections.abc import Sequence
from dataclasses import replace

from control_plane.commands.changes import Decision, Unchanged, change
from control_plane.commands.rollback import (
    OPEN_VIOLATIONS,
    FoundViolation,
    recorded,
    unknown_of,
)
from control_plane.context import Context
from control_plane.state import Environment, Violation


def record_unlatched(
    context: Context, environment: str, found: Sequence[FoundViolation]
) -> tuple[Violation, ...]:
    """Record violations that count in gates and never latch; return those not known before.

    Each makes earlier evaluations stale. At most `OPEN_VIOLATIONS` are recorded under one latch,
    or, without one, since a wave of the environment was opened last: one is enough for a gate.
    """
    told = [replace(each, latches=False) for each in found]

    def decide(before: Environment) -> Decision[tuple[Violation, ...]]:
        violations = unknown_of(context, before, told, room=_room(context, before))
        return recorded(before, violations, answer=violations) if violations else Unchanged(())

    return change(context, environment, decide)


def _room(context: Context, before: Environment) -> int:
    if before.latch is not None:
        return max(OPEN_VIOLATIONS - before.latch.open_violations, 0)
    waves = (
        context.environments.wave(before.name, rollout.guard, rollout.wave)
        for rollout in context.environments.rollouts(before)
    )
    opened = max((wave.opened_at for wave in waves if wave is not None), default=None)
    taken = sum(
        not each.latches and (opened is None or each.at > opened)
        for each in context.incidents.violations(before.name)
    )
    return max(OPEN_VIOLATIONS - taken, 0)
