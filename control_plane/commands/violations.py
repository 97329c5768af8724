"""Non-latching violations: recorded and counted, from hosts that number no transitions."""

from collections.abc import Sequence
from dataclasses import replace

from guardwave.control_plane.commands.rollback import (
    MAX_OPEN_VIOLATIONS,
    FoundViolation,
    new_violations,
    violations_change,
)
from guardwave.control_plane.core.state import Environment, Violation
from guardwave.control_plane.rollouts.changes import Decision, Unchanged, change
from guardwave.control_plane.rollouts.context import Context


def record_non_latching(
    context: Context, environment: str, found: Sequence[FoundViolation]
) -> tuple[Violation, ...]:
    """Record violations that count in gates and never latch; return the new ones.

    Each makes earlier evaluations stale. At most `MAX_OPEN_VIOLATIONS` are recorded under one
    latch or, without a latch, since the newest wave of the environment opened: one is enough for a
    gate.
    """
    non_latching = [replace(violation, latches=False) for violation in found]

    def decide(before: Environment) -> Decision[tuple[Violation, ...]]:
        violations = new_violations(context, before, non_latching, room=_room(context, before))
        return (
            violations_change(before, violations, answer=violations)
            if violations
            else Unchanged(())
        )

    return change(context, environment, decide)


def _room(context: Context, before: Environment) -> int:
    if before.latch is not None:
        return max(MAX_OPEN_VIOLATIONS - before.latch.open_violations, 0)
    waves = (
        context.environments.wave(before.name, rollout.guard, rollout.wave)
        for rollout in context.environments.rollouts(before)
    )
    opened = max((wave.opened_at for wave in waves if wave is not None), default=None)
    taken = sum(
        not violation.latches and (opened is None or violation.at > opened)
        for violation in context.incidents.violations(before.name)
    )
    return max(MAX_OPEN_VIOLATIONS - taken, 0)
