"""What a gate is evaluated on: the evidence of one wave, gathered by whoever may do I/O."""

import datetime as dt
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from analysis.baseline import Baseline
from analysis.histograms import Durations
from analysis.report import Check, Comparison
from analysis.weekdays import MatchedEvidence
from reducer.rollout.days import DayNote
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Gate, Invariant, Metric


@dataclass(frozen=True, slots=True)
class WaveDay:
    """One UTC day of a wave; `reason` says in words why an incomplete one does not count.

    `notes` say what is not exact of the evidence that counts on it.
    """

    day: dt.date
    is_complete: bool
    reason: str | None
    notes: tuple[DayNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, both counts. A whole of 0 means that nothing was there to look at."""

    part: int
    whole: int

    def __post_init__(self) -> None:
        if not 0 <= self.part <= self.whole:
            raise ValueError(f"a share needs 0 <= part <= whole, not {self.part} of {self.whole}")


@dataclass(frozen=True, slots=True)
class DrawInputs:
    """What the draw of a wave was made from, so that anybody can make it again.

    `salt` is the wave's salt text (reducer.rollout.draw.salt_text), `owners` the frozen roster in
    any order.
    """

    algorithm: str
    salt: str
    share_bps: int
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WaveEvidence:
    """The evidence of one wave at one moment.

    `owners` are owner totals (analysis.frames) over exactly `days_used`. In the shadow gate both
    cohorts are `everyone` and no metric is compared. `rostered` counts the owners of each
    cohort's roster, and is empty in shadow. `coverage` is covered of ended prompts over the days
    used, `contract` conforming of all records of the last complete day, or of a later one that it
    keeps from counting; None says that nobody reported it. `off_pin` counts, in each cohort
    compared, the prompts that started with a version the wave does not pin, of all that started on
    the days used; None says that nobody reported it too. `violations` are those of this wave;
    `lost` are prompts without an end after 24 h, None where that is not told.

    What follows `lost` is None when nobody reported it, which no check reads as zero: `draw` is
    what the assignment is replayed from; `guard_totals` (analysis.guard_totals) are what the guard
    did by owner over the days used, `guard_totals_before` the same over the phase before;
    `durations` are those of the days used, `baseline` the complete days before the wave. In a warn
    gate whose roster has no holdback the baseline is the shadow week that the wave is compared to,
    and `matched` has both sides on the days of the same weekdays where those are not all days.
    `source` is the telemetry that all of it comes from: counters tell no order and no coverage.
    `exposure` counts, in each cohort compared, the prompts that ran at the cohort's mode, of all
    that started on the days used (analysis.exposure). `pinned` counts the prompts that each owner
    started on each pinned version on the days used (analysis.pinned.pinned_prompts). `untold`
    counts by metric and cohort the ended prompts that did not tell it (analysis.untold): of a
    metric that it does not name, whoever gives the evidence vouches that all told it.

    `unknown` says in words what a check asks for and this evidence cannot tell; of `coverage`,
    `contract` and `off_pin` that counts where they are None. With `dwell` nobody said which days
    are complete: the first declared ones are compared as if they were. With `invariants` the
    violations may not be all there are.
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
    untold: Mapping[Metric, Mapping[Cohort, Share]] = field(default_factory=dict)
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
    """Return the first `declared_days` complete days; later ones are shown, never used."""
    return first_complete(evidence.days, evidence.declared_days)


def is_look(evidence: WaveEvidence, policy: GatePolicy) -> bool:
    """Whether there are as many days as were declared, and as the policy asks for."""
    return len(days_used(evidence)) >= max(evidence.declared_days, policy.dwell_days)


def first_complete(days: Iterable[WaveDay], declared: int) -> tuple[dt.date, ...]:
    """Return the first `declared` complete days."""
    return tuple(day.day for day in days if day.is_complete)[:declared]


def comparison_of(evidence: WaveEvidence) -> Comparison:
    """Return what the gate's metrics compare: a warn roster without holdback leaves only before."""
    if evidence.gate is Gate.SHADOW:
        return Comparison.NONE
    is_alone = evidence.rostered.get(evidence.reference) == 0
    if evidence.gate is Gate.WARN and is_alone and evidence.rostered.get(evidence.treated, 0) > 0:
        return Comparison.BEFORE_AFTER
    return Comparison.CONCURRENT
