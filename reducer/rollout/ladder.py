"""The ladder: a rollout goes up one step at a time and down at once."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from guardwave.reducer.rollout.draw import BPS
from guardwave.reducer.rollout.state import COHORT_MODES, SETTABLE, TREATED, Rollout, Wave
from guardwave.reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class ModeLowered:
    """A person lowered a cohort's mode."""

    cohort: Cohort
    mode: Mode


@dataclass(frozen=True, slots=True)
class RolloutResumed:
    """A person switched a rollout from off to shadow, which needs no gate."""


@dataclass(frozen=True, slots=True)
class RolloutPromoted:
    """One step up, after its gate was `within`. It opens `wave` with its frozen roster."""

    wave: Wave


@dataclass(frozen=True, slots=True)
class WaveStarted:
    """A new wave of the same phase and shares, perhaps with a new version pin."""

    wave: Wave


@dataclass(frozen=True, slots=True)
class Restarted:
    """A restart: after a rollback, a violation or the release of a latch, nothing earlier counts.

    Off stays off; any other phase becomes shadow, in a new wave. The generation always moves, so
    that no earlier evaluation can promote.
    """


Event = ModeLowered | RolloutResumed | RolloutPromoted | WaveStarted | Restarted


class RefusalCode(StrEnum):
    """The reason why the ladder refuses an event, as a stable word."""

    UNKNOWN_COHORT = "unknown_cohort"
    GATE_REQUIRED = "gate_required"
    STEP_SKIPPED = "step_skipped"
    ABOVE_CEILING = "above_ceiling"
    ABOVE_COHORT = "above_cohort"
    WAVE_OUT_OF_ORDER = "wave_out_of_order"
    NOT_OFF = "not_off"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of an event, with a sentence that names the alternative."""

    code: RefusalCode
    sentence: str


def apply(rollout: Rollout, event: Event) -> Rollout | Refusal:
    """Return the rollout after the event, the same object when nothing changes, or a refusal."""
    match event:
        case Restarted():
            return _restart(rollout)
        case ModeLowered(cohort=cohort, mode=mode):
            return _lower(rollout, cohort, mode)
        case RolloutResumed():
            if rollout.phase is not Mode.OFF:
                return Refusal(RefusalCode.NOT_OFF, f"the rollout is in {rollout.phase}, not off")
            return _open_shadow_wave(rollout)
        case RolloutPromoted(wave=wave):
            return _promote(rollout, wave)
        case WaveStarted(wave=wave):
            return _start_wave(rollout, wave)
        case _:
            assert_never(event)


def _open_shadow_wave(rollout: Rollout) -> Rollout:
    number = rollout.last_wave + 1
    return replace(
        rollout,
        phase=Mode.SHADOW,
        generation=rollout.generation + 1,
        wave=number,
        last_wave=number,
        membership_wave=0,
        treated_bps=BPS,
    )


def _restart(rollout: Rollout) -> Rollout:
    if rollout.phase is Mode.OFF:
        return _close_wave(rollout, Mode.OFF)
    return replace(_open_shadow_wave(rollout), salt_epoch=rollout.salt_epoch + 1)


def _lower(rollout: Rollout, cohort: Cohort, mode: Mode) -> Rollout | Refusal:
    modes = COHORT_MODES[rollout.phase]
    if cohort not in SETTABLE:
        return Refusal(
            RefusalCode.UNKNOWN_COHORT,
            f"{cohort} gets its mode from the phase; set one of {', '.join(sorted(SETTABLE))}",
        )
    present = modes.get(cohort)
    if present is None:
        return _lower_absent_cohort(rollout, cohort, mode)
    if mode is present:
        return rollout
    if mode.rank > present.rank:
        return _refuse_raise(rollout, cohort, mode)
    return _close_wave(rollout, mode)


def _close_wave(rollout: Rollout, mode: Mode) -> Rollout:
    keeps_roster = mode.rank > Mode.SHADOW.rank
    return replace(
        rollout,
        phase=mode,
        generation=rollout.generation + 1,
        wave=0,
        membership_wave=rollout.membership_wave if keeps_roster else 0,
        treated_bps=BPS,
    )


def _lower_absent_cohort(rollout: Rollout, cohort: Cohort, mode: Mode) -> Rollout | Refusal:
    """Lower a cohort of another phase, whose owners now have at most this phase's mode.

    A repeated request for that mode, or for shadow while off, changes nothing: a retried call that
    lowers a mode is never refused.
    """
    if mode.rank > _highest(cohort).rank:
        return _refuse_raise(rollout, cohort, mode)
    if mode.rank < rollout.phase.rank:
        return _close_wave(rollout, mode)
    if mode is rollout.phase or mode is Mode.SHADOW:
        return rollout
    return _refuse_raise(rollout, cohort, mode)


def _highest(cohort: Cohort) -> Mode:
    possible = (modes[cohort] for modes in COHORT_MODES.values() if cohort in modes)
    return max(possible, key=lambda mode: mode.rank)


def _refuse_raise(rollout: Rollout, cohort: Cohort, mode: Mode) -> Refusal:
    highest = _highest(cohort)
    if mode.rank > highest.rank:
        return Refusal(
            RefusalCode.ABOVE_COHORT, f"{cohort} never gets more than {highest}, asked for {mode}"
        )
    if mode.rank > rollout.phase.rank + 1 or cohort is not TREATED[mode]:
        following = list(Mode)[rollout.phase.rank + 1]
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            f"no step is skipped: from {rollout.phase} the next one sets {TREATED[following]} to "
            f"{following}, not {cohort} to {mode}",
        )
    if mode is Mode.SHADOW:
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            "from off to shadow the step is free: resume the rollout instead of lowering a mode",
        )
    return Refusal(
        RefusalCode.GATE_REQUIRED,
        f"raising {cohort} to {mode} is a promotion; name a gate evaluation with the verdict "
        "within, and its digest",
    )


def _promote(rollout: Rollout, wave: Wave) -> Rollout | Refusal:
    to = wave.phase
    is_next_phase = to.rank == rollout.phase.rank + 1 and to.rank > Mode.SHADOW.rank
    is_larger_share = to is rollout.phase is Mode.ENFORCE and wave.treated_bps > rollout.treated_bps
    if not (is_next_phase or is_larger_share):
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            f"from {rollout.phase} a promotion goes one step up or to a larger share, not to {to}",
        )
    if _exceeds_ceiling(rollout, wave):
        return _refuse_ceiling(rollout, wave)
    if wave.version_pin != rollout.version_pin:
        return Refusal(
            RefusalCode.WAVE_OUT_OF_ORDER,
            "the gate was evaluated for the versions "
            f"{', '.join(rollout.version_pin)}; start a wave with the new pin and evaluate again",
        )
    if wave.number != rollout.last_wave + 1:
        return _refuse_order(rollout, wave)
    return replace(_open_wave(rollout, wave), phase=to)


def _start_wave(rollout: Rollout, wave: Wave) -> Rollout | Refusal:
    if rollout.phase is Mode.OFF:
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            "off has no wave to restart; set the mode of the cohort everyone to shadow, which "
            "opens one",
        )
    if wave.phase is not rollout.phase:
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            f"a wave restarts the phase {rollout.phase}; only a promotion leads to {wave.phase}",
        )
    if _exceeds_ceiling(rollout, wave):
        return _refuse_ceiling(rollout, wave)
    if wave.treated_bps > rollout.treated_bps:
        return Refusal(
            RefusalCode.GATE_REQUIRED,
            f"a restarted wave treats at most {rollout.treated_bps} basis points as before, not "
            f"{wave.treated_bps}; a larger share is a promotion and names a gate evaluation",
        )
    if wave.number != rollout.last_wave + 1:
        return _refuse_order(rollout, wave)
    return _open_wave(rollout, wave)


def _open_wave(rollout: Rollout, wave: Wave) -> Rollout:
    has_roster = wave.phase.rank > Mode.SHADOW.rank
    return replace(
        rollout,
        generation=rollout.generation + 1,
        version_pin=wave.version_pin,
        wave=wave.number,
        last_wave=wave.number,
        membership_wave=wave.number if has_roster else 0,
        treated_bps=wave.treated_bps,
    )


def _exceeds_ceiling(rollout: Rollout, wave: Wave) -> bool:
    return wave.phase is Mode.ENFORCE and wave.treated_bps > rollout.ceiling_bps


def _refuse_ceiling(rollout: Rollout, wave: Wave) -> Refusal:
    return Refusal(
        RefusalCode.ABOVE_CEILING,
        f"{wave.treated_bps} basis points exceed the ceiling of {rollout.ceiling_bps}; only a "
        "capacity attestation lifts it",
    )


def _refuse_order(rollout: Rollout, wave: Wave) -> Refusal:
    return Refusal(
        RefusalCode.WAVE_OUT_OF_ORDER,
        f"the next wave is {rollout.last_wave + 1}, not {wave.number}; something changed meanwhile",
    )
