"""Which rollouts a rollback moves: those above shadow, and those whose shadow wave has days."""

from collections.abc import Sequence

from control_plane.context import Context
from control_plane.state import Environment
from reducer.rollout.draw import salt_text
from reducer.rollout.state import Rollout
from reducer.vocabulary import Mode


def to_begin_anew(
    context: Context, before: Environment, *, guards: Sequence[str]
) -> tuple[Rollout, ...]:
    """Return the rollouts of these guards that a rollback lowers or lets begin anew.

    Under a latch shadow stays as it is: its release lets every rollout begin anew.
    """
    is_latched = before.latch is not None
    return tuple(
        rollout
        for rollout in context.environments.rollouts(before)
        if rollout.guard in guards
        and rollout.phase is not Mode.OFF
        and (
            rollout.phase is not Mode.SHADOW
            or not (is_latched or _has_just_begun(context, rollout))
        )
    )


def _has_just_begun(context: Context, rollout: Rollout) -> bool:
    """Whether its wave has no day to lose and its salt drew no roster: a repeat changes nothing."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None or wave.opened_at.date() < context.clock.now().date():
        return False
    salt = salt_text(rollout.salt, rollout.salt_epoch)
    earlier = (
        context.environments.wave(rollout.environment, rollout.guard, number)
        for number in range(wave.number - 1, 0, -1)
    )
    return not any(each is not None and each.salt == salt for each in earlier)
