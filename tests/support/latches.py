"""Latches: the latch of an environment, its recorded violations, and those without effect."""

from guardwave.control_plane.commands.rollback import acknowledge
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.state import Environment, Latch
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Invariant
from tests.support.worlds import ENVIRONMENT, OPERATOR, WHY, environment_of


def latch_of(context: Context, environment: str = ENVIRONMENT) -> Latch:
    """Return the latch that holds the environment."""
    latch = environment_of(context, environment).latch
    assert latch is not None
    return latch


def is_latched(context: Context) -> bool:
    """Return whether a latch holds the environment."""
    return environment_of(context).latch is not None


def recorded_invariants(context: Context) -> list[Invariant]:
    """Return the invariant of each recorded violation, in their order."""
    return [violation.invariant for violation in context.incidents.violations(ENVIRONMENT)]


def idle_violations(context: Context) -> dict[str, int]:
    """Return intake's counts of violations that change nothing."""
    counts = context.evidence.health(ENVIRONMENT)
    return {name: count for name, count in counts.items() if "_violation:" in name}


def release(context: Context, environment: str = ENVIRONMENT) -> Environment:
    """Acknowledge the newest violation of the latch that holds."""
    latch = latch_of(context, environment)
    return acknowledge(
        context,
        environment,
        latch.rollback,
        last_violation=latch.newest_violation,
        actor=OPERATOR,
        reason=WHY,
        if_match=environment_etag(environment_of(context, environment)),
    )
