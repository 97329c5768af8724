"""Read model of a gate evaluation: typed, immutable, parsed from the stored JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import TypeAdapter

from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)


class MetricKind(StrEnum):
    """The comparison of two cohorts: treated minus reference, or treated over reference."""

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
    """The latency cut in ms, and the share of each cohort's prompts that were slower."""

    treated_ms: float
    reference_ms: float
    treated: float
    reference: float


@dataclass(frozen=True, slots=True)
class CupedView:
    """The effect of CUPED: the variance left, and the owners with days before the wave."""

    variance_ratio: float
    owners_with_baseline: int
    owners_new: int
    days: int
    estimate: float | None = None
    interval: IntervalView | None = None


class Comparison(StrEnum):
    """The kind of comparison that the metrics of a gate make."""

    NONE = "none"
    CONCURRENT = "concurrent"
    BEFORE_AFTER = "before_after"


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric of a gate. None means that there is no such number, never zero.

    Estimates, margin, interval and bound are native: a difference as a fraction (0.01 is one
    percentage point), or a ratio. `bound` is the official one-sided bound towards harm.
    `tested_margin` is the margin as the test could realise it; `without_cuped` says why the test
    leaves out the days before the wave.
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
        """The interval that the verdict agrees with: adjusted if the test uses CUPED."""
        adjusted = None if self.cuped is None else self.cuped.interval
        return self.interval if adjusted is None else adjusted

    @property
    def is_estimate_adjusted(self) -> bool:
        """Whether the shown estimate is the adjusted one; latency has no adjusted estimate."""
        has_interval = self.cuped is not None and self.cuped.interval is not None
        return has_interval and self.metric is not Metric.LATENCY_P95

    @property
    def shown_estimate(self) -> float | None:
        """The estimate inside the shown interval; of latency the one without adjustment."""
        if self.cuped is None or not self.is_estimate_adjusted:
            return self.estimate
        return self.cuped.estimate


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note that decides nothing; a person should read a warning before promoting."""

    topic: str
    is_warning: bool
    sentence: str
    numbers: Mapping[str, int | float | str | None]


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check beside the metrics, with the numbers of its sentence."""

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
    """The days of an evaluation: the numbers declared and complete, and the days used."""

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
        """The number of days before the wave that adjust the metrics; 0 without adjustment."""
        return max(
            (metric.cuped.days for metric in self.metrics if metric.cuped is not None), default=0
        )


_EVALUATION = TypeAdapter(EvaluationView)


def evaluation_view(wire: Mapping[str, JsonValue]) -> EvaluationView:
    """Parse the wire form of a gate evaluation.

    Raises:
        ValueError: names each field that is missing or of the wrong type.
    """
    return _EVALUATION.validate_python(wire)
