"""Read models of the overview and rollout pages: immutable data, filled by one query a page."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from guardwave.reducer.rollout.days import DayNote
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric, Mode, Verdict


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of every page. `as_of` is the control plane's clock, UTC.

    `is_demo_clock` says that this clock runs faster than wall time; the page then says so.
    """

    as_of: datetime
    environments: tuple[str, ...]
    version: str
    policy_version: str
    is_demo_clock: bool = False


class TelemetryState(StrEnum):
    """Whether records arrive, in one word."""

    FLOWING = "flowing"
    SILENT = "silent"
    NO_RECORDS = "no_records"


@dataclass(frozen=True, slots=True)
class TelemetryHealth:
    """Intake of one environment. The age is None until a record arrives.

    Violations without a valid assignment id, and those of untrusted producers, change nothing.
    `remedies` say what to do about items that do not count, or report less than they could.
    """

    state: TelemetryState
    last_record_age_seconds: float | None
    accepted: int
    refused: int
    unvouched_violations: int = 0
    untrusted_violations: int = 0
    remedies: tuple[str, ...] = ()

    @property
    def idle_violations(self) -> int:
        """The number of reported violations that change nothing."""
        return self.unvouched_violations + self.untrusted_violations


@dataclass(frozen=True, slots=True)
class LatchView:
    """An automatic rollback that nobody has acknowledged yet."""

    rollback_id: int
    reason: str
    at: datetime
    newest_violation: int


@dataclass(frozen=True, slots=True)
class CohortLine:
    """One cohort: its mode and its number of owners (None if nobody counts them)."""

    cohort: Cohort
    mode: Mode
    owners: int | None
    share_bps: int | None = None

    @property
    def lower_modes(self) -> tuple[Mode, ...]:
        """Modes that may be set without a gate, nearest first."""
        return tuple(mode for mode in reversed(Mode) if mode.rank < self.mode.rank)


@dataclass(frozen=True, slots=True)
class WaveProgress:
    """The running wave, and how many of its declared complete days have passed.

    `final_days` is its last declared look: no gate uses a day after it.
    """

    number: int
    complete_days: int
    declared_days: int
    final_days: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class GateSummary:
    """One gate evaluation in one line. `days_used` is the number of complete days behind it."""

    evaluation_id: int
    gate: Gate
    wave: int
    days_used: int
    verdict: Verdict
    sentence: str
    evaluated_at: datetime


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step up, and, when it is not allowed now, the reason as one sentence.

    `to` is None at the top of the ladder; `share_bps` is the share an enforce step would have.
    """

    to: Mode | None
    share_bps: int | None
    is_allowed: bool
    why_not: str | None


@dataclass(frozen=True, slots=True)
class GuardCard:
    """The summary of one rollout. Shares are basis points of the roster.

    `nobody_treated` is the sentence that the roster is too small for the share.
    """

    environment: str
    guard: str
    generation: int
    phase: Mode
    cohorts: tuple[CohortLine, ...]
    enforced_share_bps: int | None
    ceiling_bps: int
    version_pin: tuple[str, ...]
    wave: WaveProgress | None
    telemetry: TelemetryHealth
    open_violations: int
    latch: LatchView | None
    gate: GateSummary | None
    next_step: NextStep
    nobody_treated: str | None = None

    @property
    def is_of_running_wave(self) -> bool:
        """Whether the newest evaluation is of the wave that is open."""
        wave = None if self.wave is None else self.wave.number
        return self.gate is not None and self.gate.wave == wave

    @property
    def waits_in_vain(self) -> bool:
        """Whether another evaluation of the running wave would use the same days.

        That is so once it used all declared days; one that is within or beyond needs no other.
        """
        return (
            self.gate is not None
            and self.wave is not None
            and self.is_of_running_wave
            and self.gate.verdict not in {Verdict.WITHIN, Verdict.BEYOND}
            and self.gate.days_used >= self.wave.final_days
        )


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """Every rollout of every environment that exists."""

    frame: Frame
    cards: tuple[GuardCard, ...]


@dataclass(frozen=True, slots=True)
class WaveDayLine:
    """One UTC day of the running wave; `reason` says why a day does not count (yet).

    `notes` name inexact counts of the day, complete or not.
    """

    day: date
    is_complete: bool
    reason: str | None
    notes: tuple[DayNote, ...] = ()


@dataclass(frozen=True, slots=True)
class RosterView:
    """The frozen roster of a wave, with the algorithm of its draw."""

    owners: int
    digest: str
    algorithm: str


@dataclass(frozen=True, slots=True)
class ViolationCount:
    """How often an invariant was violated in the running wave."""

    invariant: Invariant
    count: int


@dataclass(frozen=True, slots=True)
class LookLine:
    """One look for harm: its number of complete days, and the alarms that it raised.

    `sentences` are those of the raised alarms, or of every metric without an alarm. `lowered` says
    that enforce was lowered to warn. `untold` lists the metrics with too many missing values, whose
    sentences are always there.
    """

    wave: int
    days: int
    through: date
    is_raised: bool
    lowered: bool
    sentences: tuple[str, ...]
    untold: tuple[Metric, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardPage:
    """One rollout in full; evaluations newest first. `etag` is the rollout's, as `If-Match`."""

    frame: Frame
    card: GuardCard
    etag: str
    roster: RosterView | None
    days: tuple[WaveDayLine, ...]
    violations: tuple[ViolationCount, ...]
    evaluations: tuple[GateSummary, ...]
    looks: tuple[LookLine, ...] = ()
