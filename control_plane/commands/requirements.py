"""What an environment requires of others before a step: that each passed it and still stands."""

from typing import NamedTuple

from control_plane.context import Context
from control_plane.errors import StateConflict
from control_plane.state import Environment
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Mode


class Step(NamedTuple):
    """A step up of a guard: the phase, the share of its owners, and the versions that are raised.

    `share_bps` counts in enforce alone, where a larger share is a step of its own.
    """

    guard: str
    to: Mode
    share_bps: int
    versions: tuple[str, ...]

    def __str__(self) -> str:
        """Return the step in words."""
        return f"enforce for {self.share_bps} basis points" if self.has_share else str(self.to)

    @property
    def has_share(self) -> bool:
        """Whether the share tells this step from others to the same phase."""
        return self.to is Mode.ENFORCE


def check_requirements(context: Context, environment: Environment, step: Step) -> None:
    """Check that each required environment took the step, treated somebody, and stands there.

    Each is another environment, which no commit of this one compares: this is a condition beside
    the gate, and no evidence.

    Raises:
        StateConflict: naming the first one that does not, and what is missing there.
    """
    policy = context.policies.of(environment.name)
    for required in sorted({*environment.requires, *policy.requires}):
        missing = _missing(context, required, step)
        if missing is not None:
            raise StateConflict(
                f"{environment.name} requires that {required} took the step to {step} first and "
                f"stands there; {missing}"
            )


def _missing(context: Context, required: str, step: Step) -> str | None:
    held = context.environments.load(required)
    other = context.environments.rollout(required, step.guard)
    if held is None or other is None:
        return f"{step.guard} has no rollout there"
    if held.latch is not None:
        return f"{required} is latched by rollback {held.latch.rollback}"
    if other.phase.rank < step.to.rank:
        return f"{step.guard} there is in {other.phase}"
    wave = _newest_wave(context, other, step.to)
    if wave is None or wave.treated == 0:
        number = "" if wave is None else f" {wave.number}"
        return f"the {step.to} wave{number} there treats nobody"
    if step.has_share and wave.treated_bps < step.share_bps:
        return f"wave {wave.number} there is enforce for {wave.treated_bps} basis points"
    return _unpinned(f"wave {wave.number} there pins", wave.version_pin, step) or _unpinned(
        # What it left out of its pin since, it does not stand for any more.
        f"the rollout there, in {other.phase}, now pins",
        other.version_pin,
        step,
    )


def _unpinned(who: str, pin: tuple[str, ...], step: Step) -> str | None:
    lacking = [version for version in step.versions if version not in pin]
    return f"{who} {', '.join(pin)}, without {', '.join(lacking)}" if lacking else None


def _newest_wave(context: Context, rollout: Rollout, phase: Mode) -> Wave | None:
    """Return the newest wave in a phase, which the rollout may have left upwards."""
    for number in range(rollout.last_wave, 0, -1):
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is not None and wave.phase is phase:
            return wave
    return None
