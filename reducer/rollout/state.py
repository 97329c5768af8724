"""What a rollout and its waves are, as frozen values; the ladder says how they change."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reducer.rollout.draw import ALGORITHM, BPS
from reducer.vocabulary import Mode

CEILING_BPS = 500


class EvidenceSource(StrEnum):
    """Which telemetry the owners' evidence of a rollout comes from."""

    EVENTS = "events"
    COUNTERS = "counters"


@dataclass(frozen=True, slots=True)
class Wave:
    """One period of fixed assignment. A shadow wave has no roster: size 0, digest empty."""

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

    `wave` is the number of the open wave, 0 when none is; `membership_wave` the wave whose roster
    still tells cohorts apart, which outlives a wave closed by lowering a mode.
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
