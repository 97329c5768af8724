"""Rollout state: a rollout and its waves as frozen values, and the cohorts of each phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from guardwave.reducer.rollout.draw import ALGORITHM, BPS
from guardwave.reducer.vocabulary import Cohort, Gate, Mode

CEILING_BPS = 500
COHORT_MODES: Mapping[Mode, Mapping[Cohort, Mode]] = {
    Mode.OFF: {Cohort.EVERYONE: Mode.OFF},
    Mode.SHADOW: {Cohort.EVERYONE: Mode.SHADOW},
    Mode.WARN: {Cohort.WARNED: Mode.WARN, Cohort.HOLDBACK: Mode.SHADOW},
    Mode.ENFORCE: {Cohort.ENFORCED: Mode.ENFORCE, Cohort.CONTROL: Mode.WARN},
}
TREATED: Mapping[Mode, Cohort] = {
    Mode.OFF: Cohort.EVERYONE,
    Mode.SHADOW: Cohort.EVERYONE,
    Mode.WARN: Cohort.WARNED,
    Mode.ENFORCE: Cohort.ENFORCED,
}
REFERENCE: Mapping[Mode, Cohort] = {
    Mode.OFF: Cohort.EVERYONE,
    Mode.SHADOW: Cohort.EVERYONE,
    Mode.WARN: Cohort.HOLDBACK,
    Mode.ENFORCE: Cohort.CONTROL,
}
SETTABLE = frozenset(cohort for modes in COHORT_MODES.values() for cohort in modes)


def gate_for(phase: Mode) -> Gate | None:
    """Return the gate of the step up from a phase, None if that step needs no gate."""
    return {Mode.SHADOW: Gate.SHADOW, Mode.WARN: Gate.WARN, Mode.ENFORCE: Gate.ENFORCE}.get(phase)


class EvidenceSource(StrEnum):
    """Which telemetry the owners' evidence of a rollout comes from."""

    EVENTS = "events"
    COUNTERS = "counters"


@dataclass(frozen=True, slots=True)
class Wave:
    """One period of fixed assignment. A shadow wave has no roster: its size is 0."""

    number: int
    phase: Mode
    version_pin: tuple[str, ...]
    looks: tuple[int, ...]
    opened_at: datetime
    algorithm: str = ALGORITHM
    salt: str = ""
    treated_bps: int = BPS
    roster_size: int = 0
    treated: int = 0
    roster_digest: str = ""
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rollout:
    """One guard in one environment.

    `wave` is the number of the open wave, 0 without one. `membership_wave` is the wave whose
    roster divides the cohorts; it stays when lowering a mode closes the wave.
    """

    environment: str
    guard: str
    version_pin: tuple[str, ...]
    salt: str
    phase: Mode = Mode.SHADOW
    generation: int = 1
    evidence_source: EvidenceSource = EvidenceSource.EVENTS
    ceiling_bps: int = CEILING_BPS
    salt_epoch: int = 0
    wave: int = 1
    last_wave: int = 1
    membership_wave: int = 0
    treated_bps: int = BPS
