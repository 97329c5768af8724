"""Evidence of one wave: what a gate is evaluated on, gathered by whoever may do I/O."""

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from guardwave.analysis.frames.baseline import Baseline, MatchedEvidence
from guardwave.analysis.frames.histograms import Durations
from guardwave.analysis.report import Check, Comparison
from guardwave.reducer.rollout.days import DayNote
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric


@dataclass(frozen=True, slots=True)
class WaveDay:
    """One UTC day of a wave; `reason` is the sentence why an incomplete one does not count.

    `notes` name what is inexact in the evidence of a day that counts.
    """

    day: dt.date
    is_complete: bool
    reason: str | None
    notes: tuple[DayNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, both counts. A whole of 0 means that there was nothing to count."""

    part: int
    whole: int

    def __post_init__(self) -> None:
        if not 0 <= self.part <= self.whole:
            raise ValueError(f"a share needs 0 <= part <= whole, not {self.part} of {self.whole}")


@dataclass(frozen=True, slots=True)
class DrawInputs:
    """The inputs of a wave's draw, so that anybody can make it again.

    `salt` is the wave's salt text (`salt_text` of `reducer.rollout.draw`), `owners` the frozen
    roster in any order.
    """

    algorithm: str
    salt: str
    share_bps: int
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WaveEvidence:
    """The evidence of one wave at one moment.

    None means that nobody reported a value; no check reads that as zero.

    - `owners` are owner totals (`owner_totals`) over exactly `days_used`. In the shadow gate both
      cohorts are `everyone` and no metric is compared.
    - `rostered` counts the owners of each cohort's roster; it is empty in shadow.
    - `coverage` is the covered part of the ended prompts on the days used.
    - `contract` is the conforming part of all records of the last complete day, or of a later day
      that only the contract keeps from counting.
    - `off_pin` counts, in each cohort compared, the prompts of versions that the wave does not pin,
      of all that started on the days used.
    - `violations` are those of this wave; `lost` are prompts without an end after 24 h.
    - `draw` is what the assignment is replayed from.
    - `guard_totals` (`owner_totals`) are what the guard did by owner on the days used, and
      `guard_totals_before` the same in the phase before.
    - `durations` are those of the days used, `baseline` the complete days before the wave. In a
      warn gate whose roster has no holdback the baseline is the shadow week that the wave is
      compared with, and `matched` holds both sides on the days of the same weekdays, where these
      are not all days.
    - `source` is the telemetry that all of it comes from: counters report no order and no coverage.
    - `exposure` counts, in each cohort compared, the prompts that ran at the cohort's mode, of all
      that started on the days used (`gate.exposure`).
    - `pinned` counts the prompts that each owner started on each pinned version on the days used
      (`gate.version_purity`).
    - `missing` counts by metric and cohort the ended prompts that did not report the metric
      (`missing_values`). For a metric that is not in it, whoever gives the evidence vouches that
      every prompt reported it.
    - `unknown` has a sentence for each check whose input this evidence lacks; for `coverage`,
      `contract` and `off_pin` it counts where they are None. With `dwell` in it nobody named the
      complete days: the first declared ones are compared as if they were complete. With
      `invariants` in it there may be more violations.
    """

    environment: str
    guard: str
    gate: Gate
    wave: int
    treated: Cohort
    reference: Cohort
    owners: pd.DataFrame
    rostered: Mapping[Cohort, int]
    days: tuple[WaveDay, ...]
    declared_days: int
    coverage: Share | None
    contract: Share | None
    off_pin: Mapping[Cohort, Share] | None
    violations: Mapping[Invariant, int]
    lost: int | None
    draw: DrawInputs | None = None
    guard_totals: pd.DataFrame | None = None
    guard_totals_before: pd.DataFrame | None = None
    durations: Durations | None = None
    baseline: Baseline | None = None
    matched: MatchedEvidence | None = None
    source: EvidenceSource = EvidenceSource.EVENTS
    exposure: Mapping[Cohort, Share] | None = None
    pinned: pd.DataFrame | None = None
    missing: Mapping[Metric, Mapping[Cohort, Share]] = field(default_factory=dict)
    unknown: Mapping[Check, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.declared_days < 1:
            raise ValueError(f"declared_days is {self.declared_days}; a look needs at least 1 day")
        if (self.lost or 0) < 0 or any(count < 0 for count in self.violations.values()):
            raise ValueError("lost prompts and violations are counts; none may be negative")
        if self.off_pin is not None and set(self.off_pin) != {self.treated, self.reference}:
            raise ValueError(
                f"off_pin names {', '.join(self.off_pin) or 'no cohort'}; give the shares of "
                f"{self.treated} and {self.reference}"
            )
        if self.exposure is not None and set(self.exposure) != {self.treated, self.reference}:
            raise ValueError(
                f"exposure names {', '.join(self.exposure) or 'no cohort'}; give the shares of "
                f"{self.treated} and {self.reference}"
            )
        days = [day.day for day in self.days]
        if any(later <= earlier for earlier, later in itertools.pairwise(days)):
            raise ValueError("the days of a wave must be in order, each once")
        is_alone = self.treated is self.reference
        if is_alone is not (self.gate is Gate.SHADOW):
            raise ValueError(
                f"the {self.gate} gate cannot compare {self.treated} with {self.reference}; "
                "give two cohorts, or everyone twice in the shadow gate"
            )


def days_used(evidence: WaveEvidence) -> tuple[dt.date, ...]:
    """Return the first `declared_days` complete days; later days are shown and never used."""
    return first_complete_days(evidence.days, evidence.declared_days)


def is_look_due(evidence: WaveEvidence, policy: GatePolicy) -> bool:
    """Whether as many days are complete as were declared and as the policy asks for."""
    return len(days_used(evidence)) >= max(evidence.declared_days, policy.dwell_days)


def first_complete_days(days: Iterable[WaveDay], declared: int) -> tuple[dt.date, ...]:
    """Return the first `declared` complete days."""
    return tuple(day.day for day in days if day.is_complete)[:declared]


def comparison_of(evidence: WaveEvidence) -> Comparison:
    """Return what the gate's metrics compare; a warn roster without holdback has only its past."""
    if evidence.gate is Gate.SHADOW:
        return Comparison.NONE
    is_alone = evidence.rostered.get(evidence.reference) == 0
    if evidence.gate is Gate.WARN and is_alone and evidence.rostered.get(evidence.treated, 0) > 0:
        return Comparison.BEFORE_AFTER
    return Comparison.CONCURRENT
