"""Report: a gate evaluation as plain data, and its JSON form, stored and answered."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeAlias

from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
SCHEMA = 1


class MetricReason(StrEnum):
    """Why a metric is not within: a code for machines beside the sentence for people."""

    NO_BASELINE = "no_baseline"
    NO_DURATIONS = "no_durations"
    MISSING_VALUES = "untold"
    BUCKETS_TOO_WIDE = "buckets_too_wide"
    EMPTY_COHORT = "empty_cohort"
    ZERO_RATIO = "zero_ratio"
    DWELL = "dwell"
    MINIMUM_DATA = "minimum_data"
    MARGIN_NOT_EXCLUDED = "margin_not_excluded"
    BEYOND_MARGIN = "beyond_margin"
    NO_SPREAD = "no_spread"


class Check(StrEnum):
    """A requirement of a gate beside its metrics."""

    DWELL = "dwell"
    COVERAGE = "coverage"
    CONTRACT = "contract"
    INVARIANTS = "invariants"
    VERSION_PURITY = "version_purity"
    BALANCE = "balance"
    EXPOSURE = "exposure"
    STOP_CONSISTENCY = "stop_consistency"


class Topic(StrEnum):
    """The subject of a note, which stands beside a gate and decides nothing."""

    BASELINE_BALANCE = "baseline_balance"
    CONTROL_MOVED = "control_moved"
    EXPOSURE = "exposure"
    OTHER_PROTECTIONS = "other_protections"
    POWER = "power"
    SAVED_CALLS = "saved_calls"
    SUPPORTED_HOSTS = "supported_hosts"
    MISSED_CARRIERS = "unseen_owners"


class Comparison(StrEnum):
    """The kind of comparison that the metrics of a gate make."""

    NONE = "none"
    CONCURRENT = "concurrent"
    BEFORE_AFTER = "before_after"


@dataclass(frozen=True, slots=True)
class Side:
    """One cohort in one metric: its value in native units and what it rests on.

    `value` is a fraction for rates and an amount per prompt for tokens and turns.
    """

    value: float | None
    owners: int
    trials: int
    effective_owners: float | None
    largest_owner_share: float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval in native units."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """Owner-clustered standard errors of treated - reference, in native units.

    Those of a ratio metric belong to the difference of the two amounts per prompt, those of latency
    to the difference of the shares of slow prompts at its cut.
    """

    cr0: float
    cr1: float
    cr2: float
    cr3: float


@dataclass(frozen=True, slots=True)
class Fieller:
    """The score of a ratio at its margin: treated - margin x reference, and its CR2 error.

    For information, as E. C. Fieller (1954) tests a ratio without dividing. Below zero is better
    than the margin.
    """

    score: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Cuped:
    """The effect of the days before the wave on the noise, where the test used them.

    `variance_ratio` is the variance of the adjusted estimate by that of the plain one (both CR2).
    `owners_new` had no comparable baseline and count as new. `estimate` is the adjusted estimate in
    native units, and `standard_error` its CR2 error, that of the logarithm for a ratio; both belong
    to the difference of the shares of slow prompts for latency. `interval` is the one that the
    verdict agrees with, in native units of the metric, and `cr2_bound` its end on the side of harm.
    """

    variance_ratio: float
    owners_with_baseline: int
    owners_new: int
    days: int
    estimate: float
    standard_error: float
    interval: Interval | None
    cr2_bound: float | None


@dataclass(frozen=True, slots=True)
class SlowCut:
    """The cut of latency in ms: prompts above `treated_ms`, or `reference_ms`, are slow.

    The ratio of the two is the tested margin; `treated` and `reference` are the shares of slow
    prompts. `scale` is that of exponential buckets, None for explicit ones. `growth` is the ratio
    of a bucket's edges at the cut, which is the step of the bound. It is None for the lowest
    explicit bucket.
    """

    scale: int | None
    growth: float | None
    treated_ms: float
    reference_ms: float
    treated: float
    reference: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of one metric, in native units: treated - reference, or treated / reference.

    `interval`, `standard_error` and `degrees_of_freedom` do not use the days before the wave; where
    the test does, `cuped` has the adjusted figures. The error of a ratio is that of its logarithm;
    latency has none, since its interval lies at edges of buckets. `bound` is the official one-sided
    bound on the side of harm. `tested_margin` is the margin that the test could use: `margin`
    itself, and for latency the nearest edge of a bucket that is not above it. `without_cuped` is
    the sentence why the test did not use the days before the wave. None is unknown.
    """

    metric: Metric
    treated: Side
    reference: Side
    estimate: float | None = None
    margin: float | None = None
    interval: Interval | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    bound: float | None = None
    p_harm_at_margin: float | None = None
    permutations: int = 0
    standard_errors: StandardErrors | None = None
    fieller: Fieller | None = None
    tested_margin: float | None = None
    cut: SlowCut | None = None
    cuped: Cuped | None = None
    without_cuped: str | None = None

    @property
    def shown_interval(self) -> Interval | None:
        """The interval that the verdict agrees with: adjusted where CUPED is in the test."""
        return self.interval if self.cuped is None else self.cuped.interval


@dataclass(frozen=True, slots=True)
class MetricResult:
    """The result of a metric. Without a verdict it is for information and decides nothing."""

    figures: Figures
    verdict: Verdict | None
    reason: MetricReason | None
    sentence: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, with the numbers in its sentence."""

    check: Check
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark that decides nothing; a warning asks a person to look before promoting."""

    topic: Topic
    is_warning: bool
    sentence: str
    numbers: Mapping[str, int | float | str]


@dataclass(frozen=True, slots=True)
class NotCounted:
    """A day of the wave that does not count, and why."""

    day: dt.date
    reason: str


@dataclass(frozen=True, slots=True)
class Days:
    """The declared days, the complete ones so far, and the ones that this evaluation used.

    `complete` is None where nobody named the complete days.
    """

    declared: int
    complete: int | None
    used: tuple[dt.date, ...]
    not_counted: tuple[NotCounted, ...]


@dataclass(frozen=True, slots=True)
class GateEvaluation:
    """The evaluation of one wave: its verdict is the worst of its checks and metrics.

    `information` holds metrics that decide nothing, `notes` other remarks. A before/after
    `comparison` claims no level: a promotion that rests on it needs a written reason.
    """

    environment: str
    guard: str
    gate: Gate
    wave: int
    treated: Cohort
    reference: Cohort
    verdict: Verdict
    sentence: str
    alpha: float
    policy_version: str
    days: Days
    owners: Mapping[Cohort, int]
    rostered: Mapping[Cohort, int]
    lost: int | None
    metrics: tuple[MetricResult, ...]
    information: tuple[MetricResult, ...]
    checks: tuple[CheckResult, ...]
    notes: tuple[Note, ...] = ()
    comparison: Comparison = Comparison.CONCURRENT


def to_wire(evaluation: GateEvaluation) -> Mapping[str, JsonValue]:
    """Return the evaluation as JSON values: null for what is unknown, never NaN or infinity."""
    days = evaluation.days
    return {
        "schema": SCHEMA,
        "environment": evaluation.environment,
        "guard": evaluation.guard,
        "gate": evaluation.gate.value,
        "wave": evaluation.wave,
        "treated_cohort": evaluation.treated.value,
        "reference_cohort": evaluation.reference.value,
        "verdict": evaluation.verdict.value,
        "sentence": evaluation.sentence,
        "alpha": evaluation.alpha,
        "policy_version": evaluation.policy_version,
        "days": {
            "declared": days.declared,
            "complete": days.complete,
            "used": [day.isoformat() for day in days.used],
            "not_counted": [
                {"day": skipped.day.isoformat(), "reason": skipped.reason}
                for skipped in days.not_counted
            ],
        },
        "owners": {cohort.value: count for cohort, count in evaluation.owners.items()},
        "rostered": {cohort.value: count for cohort, count in evaluation.rostered.items()},
        "lost": evaluation.lost,
        "metrics": [_metric(result) for result in (*evaluation.metrics, *evaluation.information)],
        "checks": [
            {
                "check": result.check.value,
                "verdict": result.verdict.value,
                "sentence": result.sentence,
                "numbers": dict(result.numbers),
            }
            for result in evaluation.checks
        ],
        "notes": [
            {
                "topic": note.topic.value,
                "is_warning": note.is_warning,
                "sentence": note.sentence,
                "numbers": dict(note.numbers),
            }
            for note in evaluation.notes
        ],
        "comparison": evaluation.comparison.value,
    }


def _metric(result: MetricResult) -> Mapping[str, JsonValue]:
    figures = result.figures
    return {
        "metric": figures.metric.value,
        "kind": "ratio" if figures.metric.is_ratio else "difference",
        "higher_is_better": figures.metric.is_higher_better,
        "informational": result.verdict is None,
        "treated": figures.treated.value,
        "reference": figures.reference.value,
        "treated_owners": figures.treated.owners,
        "reference_owners": figures.reference.owners,
        "treated_trials": figures.treated.trials,
        "reference_trials": figures.reference.trials,
        "estimate": figures.estimate,
        "margin": figures.margin,
        "interval": _numbers(figures.interval),
        "standard_error": figures.standard_error,
        "df": figures.degrees_of_freedom,
        "bound": figures.bound,
        "p_harm_at_margin": figures.p_harm_at_margin,
        "permutations": figures.permutations,
        "tested_margin": figures.tested_margin,
        "standard_errors": _numbers(figures.standard_errors),
        "fieller": _numbers(figures.fieller),
        "cut": _numbers(figures.cut),
        "cuped": _numbers(figures.cuped),
        "without_cuped": figures.without_cuped,
        "effective_owners_treated": figures.treated.effective_owners,
        "largest_owner_share_treated": figures.treated.largest_owner_share,
        "verdict": None if result.verdict is None else result.verdict.value,
        "reason": None if result.reason is None else result.reason.value,
        "sentence": result.sentence,
    }


def _numbers(
    group: Interval | StandardErrors | Fieller | SlowCut | Cuped | None,
) -> Mapping[str, JsonValue] | None:
    return None if group is None else asdict(group)
