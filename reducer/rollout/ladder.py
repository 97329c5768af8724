"""The rollout state machine: off, shadow, warn, enforce: up one step at a time, down at once."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from reducer.rollout.draw import BPS
from reducer.rollout.phases import COHORT_MODES, SETTABLE, TREATED
from reducer.rollout.state import Rollout, Wave
from reducer.vocabulary import Cohort, Mode


@dataclass(frozen=True, slots=True)
class Lowered:
    """A person set a cohort's mode lower."""

    cohort: Cohort
    mode: Mode


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person switched a rollout that was off back to shadow, which is free."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """One step up, after its gate was `within`; opens `wave` with its frozen roster."""

    wave: Wave


@dataclass(frozen=True, slots=True)
class WaveStarted:
    """The same phase and shares start again with a new wave (and perhaps a new pin)."""

    wave: Wave


@dataclass(frozen=True, slots=True)
class BegunAnew:
    """What was known before holds no more: a rollback, a violation, the release of a latch.

    Off stays off; from any other phase it is shadow, in a new wave. The generation moves from any
    phase, so that no evaluation made before it can promote after it.
    """


Event = Lowered | Resumed | Promoted | WaveStarted | BegunAnew


class RefusalCode(StrEnum):
    """Why an event cannot happen to a rollout, as a stable word."""

    UNKNOWN_COHORT = "unknown_cohort"
    GATE_REQUIRED = "gate_required"
    STEP_SKIPPED = "step_skipped"
    ABOVE_CEILING = "above_ceiling"
    ABOVE_COHORT = "above_cohort"
    WAVE_OUT_OF_ORDER = "wave_out_of_order"
    NOT_OFF = "not_off"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that the ladder does not allow, with a sentence that says what to do instead."""

    code: RefusalCode
    sentence: str


def apply(rollout: Rollout, event: Event) -> Rollout | Refusal:
    """Return the rollout after the event, the same object when nothing changes, or a refusal."""
    match event:
        case BegunAnew():
            return _begun_anew(rollout)
        case Lowered(cohort=cohort, mode=mode):
            return _lowered(rollout, cohort, mode)
        case Resumed():
            if rollout.phase is not Mode.OFF:
                return Refusal(RefusalCode.NOT_OFF, f"the rollout is in {rollout.phase}, not off")
            return _in_shadow(rollout)
        case Promoted(wave=wave):
            return _promoted(rollout, wave)
        case WaveStarted(wave=wave):
            return _restarted(rollout, wave)
        case _:
            assert_never(event)


def _in_shadow(rollout: Rollout) -> Rollout:
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


def _begun_anew(rollout: Rollout) -> Rollout:
    if rollout.phase is Mode.OFF:
        return _closed_at(rollout, Mode.OFF)
    return replace(_in_shadow(rollout), salt_epoch=rollout.salt_epoch + 1)


def _lowered(rollout: Rollout, cohort: Cohort, mode: Mode) -> Rollout | Refusal:
    modes = COHORT_MODES[rollout.phase]
    if cohort not in SETTABLE:
        return Refusal(
            RefusalCode.UNKNOWN_COHORT,
            f"{cohort} gets its mode from the phase; set one of {', '.join(sorted(SETTABLE))}",
        )
    held = modes.get(cohort)
    if held is None:
        return _lowered_while_absent(rollout, cohort, mode)
    if mode is held:
        return rollout
    if mode.rank > held.rank:
        return _raise_refused(rollout, cohort, mode)
    return _closed_at(rollout, mode)


def _closed_at(rollout: Rollout, mode: Mode) -> Rollout:
    keeps_roster = mode.rank > Mode.SHADOW.rank
    return replace(
        rollout,
        phase=mode,
        generation=rollout.generation + 1,
        wave=0,
        membership_wave=rollout.membership_wave if keeps_roster else 0,
        treated_bps=BPS,
    )


def _lowered_while_absent(rollout: Rollout, cohort: Cohort, mode: Mode) -> Rollout | Refusal:
    """A cohort of another phase, whose owners have at most this phase's mode now.

    Asking for that mode, or for shadow while off, again and again changes nothing: a retried call
    that lowers a mode is never refused.
    """
    if mode.rank > _highest(cohort).rank:
        return _raise_refused(rollout, cohort, mode)
    if mode.rank < rollout.phase.rank:
        return _closed_at(rollout, mode)
    if mode is rollout.phase or mode is Mode.SHADOW:
        return rollout
    return _raise_refused(rollout, cohort, mode)


def _highest(cohort: Cohort) -> Mode:
    held = (modes[cohort] for modes in COHORT_MODES.values() if cohort in modes)
    return max(held, key=lambda mode: mode.rank)


def _raise_refused(rollout: Rollout, cohort: Cohort, mode: Mode) -> Refusal:
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
            "from off to shadow the step is free: resume the rollout, which no lowering does",
        )
    return Refusal(
        RefusalCode.GATE_REQUIRED,
        f"raising {cohort} to {mode} is a promotion; name a gate evaluation with the verdict "
        "within, and its digest",
    )


def _promoted(rollout: Rollout, wave: Wave) -> Rollout | Refusal:
    to = wave.phase
    is_next_phase = to.rank == rollout.phase.rank + 1 and to.rank > Mode.SHADOW.rank
    is_larger_share = to is rollout.phase is Mode.ENFORCE and wave.treated_bps > rollout.treated_bps
    if not (is_next_phase or is_larger_share):
        return Refusal(
            RefusalCode.STEP_SKIPPED,
            f"from {rollout.phase} a promotion goes one step up or to a larger share, not to {to}",
        )
    if _exceeds_ceiling(rollout, wave):
        return _above_ceiling(rollout, wave)
    if wave.version_pin != rollout.version_pin:
        return Refusal(
            RefusalCode.WAVE_OUT_OF_ORDER,
            "the gate was evaluated for the versions "
            f"{', '.join(rollout.version_pin)}; start a wave with the new pin and evaluate again",
        )
    if wave.number != rollout.last_wave + 1:
        return _out_of_order(rollout, wave)
    return replace(_opened(rollout, wave), phase=to)


def _restarted(rollout: Rollout, wave: Wave) -> Rollout | Refusal:
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
        return _above_ceiling(rollout, wave)
    if wave.treated_bps > rollout.treated_bps:
        return Refusal(
            RefusalCode.GATE_REQUIRED,
            f"a restarted wave treats at most {rollout.treated_bps} basis points as before, not "
            f"{wave.treated_bps}; a larger share is a promotion and names a gate evaluation",
        )
    if wave.number != rollout.last_wave + 1:
        return _out_of_order(rollout, wave)
    return _opened(rollout, wave)


def _opened(rollout: Rollout, wave: Wave) -> Rollout:
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


def _above_ceiling(rollout: Rollout, wave: Wave) -> Refusal:
    return Refusal(
        RefusalCode.ABOVE_CEILING,
        f"{wave.treated_bps} basis points exceed the ceiling of {rollout.ceiling_bps}; only a "
        "capacity attestation lifts it",
    )


def _out_of_order(rollout: Rollout, wave: Wave) -> Refusal:
    return Refusal(
        RefusalCode.WAVE_OUT_OF_ORDER,
        f"the next wave is {rollout.last_wave + 1}, not {wave.number}; something changed meanwhile",
    )
