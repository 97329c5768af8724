"""The violated invariants of a guard, as they were recorded."""

from control_plane.commands.changes import load_rollout
from control_plane.context import Context
from control_plane.state import Violation


def recorded_violations(
    context: Context, environment: str, guard: str, *, before: int | None, limit: int
) -> tuple[tuple[Violation, ...], str | None]:
    """Return up to `limit` violations, newest first, and the cursor of those that follow.

    Their numbers count over all guards of the environment; `before` is one of them.

    Raises:
        NotFound: no such rollout.
    """
    load_rollout(context, environment, guard)
    found = [
        each
        for each in reversed(context.incidents.violations(environment))
        if each.guard == guard and (before is None or each.id < before)
    ]
    shown = tuple(found[:limit])
    return shown, str(shown[-1].id) if len(found) > limit else None
