"""A stored gate evaluation as the pages read it: typed, immutable, parsed from its wire form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import TypeAdapter

from reducer.vocabulary import Cohort, Gate, Metric, Verdict

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)


class MetricKind(StrEnum):
    """How two cohorts are compared: treated minus reference, or treated over reference."""

    DIFFERENCE = "difference"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class IntervalView:
    """A two-sided interval in the metric's native units; `level` is its confidence, 0 to 1."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class CutView:
    """Where latency was cut, in ms, and the share of each cohort's prompts that were slower."""

    treated_ms: float
    reference_ms: float
    treated: float
    reference: float


@dataclass(frozen=True, slots=True)
class CupedView:
    """What the days before the wave left of the variance, and how many owners had such days."""

    variance_ratio: float
    owners_with_baseline: int
    owners_new: int
    days: int
    estimate: float | None = None
    interval: IntervalView | None = None


class Comparison(StrEnum):
    """What the metrics of a gate compare."""

    NONE = "none"
    CONCURRENT = "concurrent"
    BEFORE_AFTER = "before_after"


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric of a gate. None means that there is no such number, never zero.

    Estimates, margin, interval and bound are native: a difference as a fraction (0.01 is one
    percentage point), or a ratio. `bound` is the official one-sided bound towards harm.
    `tested_margin` is what the test could put; `without_cuped` says why the days before the wave
    were left out of it.
    """

    metric: Metric
    kind: MetricKind
    higher_is_better: bool
    informational: bool
    treated: float | None
    reference: float | None
    treated_owners: int
    reference_owners: int
    treated_trials: float
    reference_trials: float
    estimate: float | None
    margin: float | None
    interval: IntervalView | None
    standard_error: float | None
    df: float | None
    bound: float | None
    p_harm_at_margin: float | None
    permutations: int | None
    effective_owners_treated: float | None
    largest_owner_share_treated: float | None
    verdict: Verdict | None
    reason: str | None
    sentence: str
    tested_margin: float | None = None
    cut: CutView | None = None
    cuped: CupedView | None = None
    without_cuped: str | None = None

    @property
    def shown_interval(self) -> IntervalView | None:
        """The interval that the verdict agrees with: adjusted where CUPED is in the test."""
        adjusted = None if self.cuped is None else self.cuped.interval
        return self.interval if adjusted is None else adjusted

    @property
    def is_estimate_adjusted(self) -> bool:
        """Whether the shown estimate is the adjusted one; what CUPED makes of latency is none."""
        has_interval = self.cuped is not None and self.cuped.interval is not None
        return has_interval and self.metric is not Metric.LATENCY_P95

    @property
    def shown_estimate(self) -> float | None:
        """The estimate inside the shown interval; that of latency is as counted."""
        if self.cuped is None or not self.is_estimate_adjusted:
            return self.estimate
        return self.cuped.estimate


@dataclass(frozen=True, slots=True)
class NoteView:
    """Something to know that decides nothing; a warning asks to look before promoting."""

    topic: str
    is_warning: bool
    sentence: str
    numbers: Mapping[str, int | float | str | None]


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check beside the metrics, with the numbers that its sentence speaks of."""

    check: str
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, int | float | str | None]


@dataclass(frozen=True, slots=True)
class UncountedDay:
    """A day of the wave that does not count, and why."""

    day: date
    reason: str


@dataclass(frozen=True, slots=True)
class EvaluationDays:
    """The days of an evaluation: how many were asked for, complete, and exactly which were used."""

    declared: int
    complete: int
    used: tuple[date, ...]
    not_counted: tuple[UncountedDay, ...]


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """The immutable result of evaluating a gate, as `analysis` reported it (schema 1)."""

    schema: Literal[1]
    environment: str
    guard: str
    gate: Gate
    wave: int
    treated_cohort: Cohort
    reference_cohort: Cohort
    verdict: Verdict
    sentence: str
    alpha: float
    policy_version: str
    days: EvaluationDays
    owners: Mapping[Cohort, int]
    rostered: Mapping[Cohort, int]
    lost: int
    metrics: tuple[MetricView, ...]
    checks: tuple[CheckView, ...]
    notes: tuple[NoteView, ...] = ()
    comparison: Comparison = Comparison.CONCURRENT

    @property
    def days_before(self) -> int:
        """How many days before the wave the metrics are adjusted by; 0 when none is."""
        return max((each.cuped.days for each in self.metrics if each.cuped is not None), default=0)


_EVALUATION = TypeAdapter(EvaluationView)


def evaluation_view(wire: Mapping[str, JsonValue]) -> EvaluationView:
    """Parse the wire form of a gate evaluation.

    Raises ValueError that names each field that is missing or of the wrong type.
    """
    return _EVALUATION.validate_python(wire)
