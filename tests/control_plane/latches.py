"""What violations did to an environment: its latch, what is recorded, and what changed nothing."""

from control_plane.commands.rollback import acknowledge
from control_plane.context import Context
from control_plane.etags import environment_etag
from control_plane.state import Environment, Latch
from reducer.vocabulary import Invariant
from tests.control_plane.worlds import ENVIRONMENT, OPERATOR, WHY, environment_of


def latch_of(context: Context, environment: str = ENVIRONMENT) -> Latch:
    """Return the latch that holds the environment."""
    held = environment_of(context, environment).latch
    assert held is not None
    return held


def is_latched(context: Context) -> bool:
    """Return whether a latch holds the environment."""
    return environment_of(context).latch is not None


def violated(context: Context) -> list[Invariant]:
    """Return the invariant of each recorded violation, in their order."""
    return [each.invariant for each in context.incidents.violations(ENVIRONMENT)]


def idle_violations(context: Context) -> dict[str, int]:
    """Return what intake counted of violations that change nothing."""
    counted = context.evidence.health(ENVIRONMENT)
    return {name: count for name, count in counted.items() if "_violation:" in name}


def release(context: Context, environment: str = ENVIRONMENT) -> Environment:
    """Acknowledge the newest violation of the latch that holds."""
    held = latch_of(context, environment)
    return acknowledge(
        context,
        environment,
        held.rollback,
        last_violation=held.newest_violation,
        actor=OPERATOR,
        reason=WHY,
        if_match=environment_etag(environment_of(context, environment)),
    )
