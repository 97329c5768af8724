"""Recorded violations: the violated invariants of a guard, in pages."""

from guardwave.control_plane.core.state import Violation
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_rollout


def recorded_violations(
    context: Context, environment: str, guard: str, *, before: int | None, limit: int
) -> tuple[tuple[Violation, ...], str | None]:
    """Return up to `limit` violations, newest first, and the cursor of the next ones.

    `before` is the number of a violation; numbers count over all guards of the environment.

    Raises:
        NotFound: no such rollout.
    """
    load_rollout(context, environment, guard)
    found = [
        violation
        for violation in reversed(context.incidents.violations(environment))
        if violation.guard == guard and (before is None or violation.id < before)
    ]
    shown = tuple(found[:limit])
    return shown, str(shown[-1].id) if len(found) > limit else None
