"""Loading: the environment and the rollout that a command or a query names."""

from dataclasses import replace

from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.rollout.state import Rollout


def load_environment(context: Context, name: str) -> Environment:
    """Return the environment.

    Raises:
        NotFound: no such environment.
    """
    found = context.environments.load(name)
    if found is None:
        raise NotFound(
            f"there is no environment {name!r}; an admin creates it with PUT /environments/{{name}}"
        )
    return found


def load_rollout(context: Context, environment: str, guard: str) -> Rollout:
    """Return the rollout under the ceiling that binds it now, for answers and offers.

    Raises:
        NotFound: the guard has no rollout in this environment.
    """
    return with_policy_ceiling(context, stored_rollout(context, environment, guard))


def with_policy_ceiling(context: Context, rollout: Rollout) -> Rollout:
    """Return the rollout with the policy's ceiling if that is lower than its own."""
    ceiling_bps = context.policies.of(rollout.environment).ceiling_bps
    return replace(rollout, ceiling_bps=min(rollout.ceiling_bps, ceiling_bps))


def stored_rollout(context: Context, environment: str, guard: str) -> Rollout:
    """Return the rollout as it is stored, for changes.

    Raises:
        NotFound: the guard has no rollout in this environment.
    """
    found = context.environments.rollout(environment, guard)
    if found is None:
        raise NotFound(
            f"guard {guard!r} has no rollout in environment {environment!r}; create it with PUT "
            f"/environments/{environment}/guards/{guard}"
        )
    return found
