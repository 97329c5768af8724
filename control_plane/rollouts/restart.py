"""Restarts: the rollouts that a rollback lowers, or restarts in a new shadow wave."""

from collections.abc import Sequence

from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.rollout.draw import salt_text
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Mode


def rollouts_to_restart(
    context: Context, before: Environment, *, guards: Sequence[str]
) -> tuple[Rollout, ...]:
    """Return the rollouts of these guards that a rollback lowers or restarts.

    Under a latch shadow stays as it is: the release restarts every rollout.
    """
    is_latched = before.latch is not None
    return tuple(
        rollout
        for rollout in context.environments.rollouts(before)
        if rollout.guard in guards
        and rollout.phase is not Mode.OFF
        and (rollout.phase is not Mode.SHADOW or not (is_latched or _is_fresh(context, rollout)))
    )


def _is_fresh(context: Context, rollout: Rollout) -> bool:
    """Whether a restart would change nothing: the wave is of today and the salt drew no roster."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None or wave.opened_at.date() < context.clock.now().date():
        return False
    salt = salt_text(rollout.salt, rollout.salt_epoch)
    earlier = (
        context.environments.wave(rollout.environment, rollout.guard, number)
        for number in range(wave.number - 1, 0, -1)
    )
    return not any(old is not None and old.salt == salt for old in earlier)
