"""Harm alarms: bounds for harm that hold at every look of a wave.

There are two kinds of looks. Looks on a schedule share alpha among them (Bonferroni). Looks at any
time use a normal-mixture confidence sequence on information I = 1 / SE^2 (Waudby-Smith and others,
arXiv 2103.06476), whose one-sided width is

    SE sqrt(2 (I t + 1) / (I t) log(1 + sqrt(I t + 1) / (2 alpha)))

with the mixture's variance t = (-2 log(2 alpha) + log(1 - 2 log(2 alpha))) / I*. It is narrowest
near the planned information I*, which is fixed before the first look. Harm is on the scale of the
test: a difference of rates of harm, or the logarithm of a ratio.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import checked_totals, outcomes_of
from guardwave.analysis.inference import (
    CohortRatio,
    Contrast,
    difference,
    harm_margin,
    log_ratio,
    native,
    ratios,
    shortfalls,
)
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Metric


@dataclass(frozen=True, slots=True)
class ScheduledLooks:
    """A known number of looks, such as daily ones: each has alpha / `looks`."""

    looks: int

    def __post_init__(self) -> None:
        if self.looks < 1:
            raise ValueError(f"looks is {self.looks}; schedule at least one")


@dataclass(frozen=True, slots=True)
class AnyTimeLooks:
    """Looks at any time. `planned` is the information expected, fixed before the first look."""

    planned: Mapping[Metric, float]

    def __post_init__(self) -> None:
        for metric, information in self.planned.items():
            if not 0.0 < information < math.inf:
                raise ValueError(
                    f"the planned information of {metric} is {information}; it must be above 0"
                )


Looks: TypeAlias = ScheduledLooks | AnyTimeLooks


@dataclass(frozen=True, slots=True)
class HarmAlarm:
    """The alarm of one metric at one look, in native units.

    `bound` is the least harm that the evidence is compatible with, on the side of no harm; None
    where it cannot be given. With `is_missing` the look has no data: too many prompts did not
    report the metric. The alarm is raised when the bound is harm, the estimate is beyond the
    margin, and there is enough data to judge either.
    """

    metric: Metric
    is_raised: bool
    estimate: float | None
    bound: float | None
    margin: float
    sentence: str
    is_missing: bool = False


def mixture_multiplier(information: float, planned: float, alpha: float) -> float:
    """Return how many standard errors the always-valid bound is away from the estimate.

    At the planned information that is 2.78 for alpha 0.05 and 3.36 for 0.01.

    Raises:
        ValueError: for information that is not above 0, and for alpha outside (0, 0.5).
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha}; it must be between 0 and 0.5")
    if not (0.0 < information < math.inf and 0.0 < planned < math.inf):
        raise ValueError(f"information is {information}, planned {planned}; both must be above 0")
    variance = (-2.0 * math.log(2.0 * alpha) + math.log1p(-2.0 * math.log(2.0 * alpha))) / planned
    grown = information * variance
    return math.sqrt(
        2.0 * (grown + 1.0) / grown * math.log1p(math.sqrt(grown + 1.0) / (2.0 * alpha))
    )


def information(
    totals: pd.DataFrame, cohorts: tuple[Cohort, Cohort], metrics: Iterable[Metric]
) -> Mapping[Metric, float]:
    """Return 1 / SE^2 of each metric's contrast on the scale of the test, where it has a spread.

    It depends on the spread and not on the estimate, and so may plan the looks that follow.

    Raises:
        ValueError: for owner totals that fail their checks.
    """
    checked = checked_totals(totals)
    by_metric: dict[Metric, float] = {}
    for metric in metrics:
        if metric is Metric.LATENCY_P95:
            continue
        contrast = _contrast(metric, *ratios(outcomes_of(checked, metric, cohorts)))
        if contrast is not None and contrast.standard_error > 0.0:
            by_metric[metric] = contrast.standard_error**-2
    return by_metric


def harm_alarms(
    totals: pd.DataFrame,
    cohorts: tuple[Cohort, Cohort],
    margins: Mapping[Metric, float],
    *,
    policy: GatePolicy,
    looks: Looks,
    missing_reasons: Mapping[Metric, str] | None = None,
) -> tuple[HarmAlarm, ...]:
    """Judge the owner totals so far; one alarm for each metric with a margin, in their order.

    Latency p95 has no alarm: its test cuts where the margin lies and gives no standard error on
    the scale of the ratio. `missing_reasons` has a sentence for each metric that is no data
    (`explain_missing`).

    Raises:
        ValueError: for owner totals that fail their checks, and for a margin out of its range.
    """
    checked = checked_totals(totals)
    metrics = [metric for metric in Metric if metric in margins]
    reasons = missing_reasons or {}
    return tuple(
        _without_data(metric, margins[metric], reasons[metric])
        if metric in reasons
        else _alarm(checked, cohorts, metric, margin=margins[metric], policy=policy, looks=looks)
        for metric in metrics
        if metric is not Metric.LATENCY_P95
    )


def _alarm(
    checked: pd.DataFrame,
    cohorts: tuple[Cohort, Cohort],
    metric: Metric,
    *,
    margin: float,
    policy: GatePolicy,
    looks: Looks,
) -> HarmAlarm:
    treated, reference = ratios(outcomes_of(checked, metric, cohorts))
    blank = HarmAlarm(metric, False, None, None, margin, "")
    contrast = _contrast(metric, treated, reference)
    if treated is None or reference is None or contrast is None:
        return _silent(blank, "not enough owners with data in both cohorts")
    estimate = native(metric, contrast.estimate)
    lower = _lower_bound(metric, contrast, alpha=policy.alarms.alpha, looks=looks)
    alarm = HarmAlarm(metric, False, estimate, native(metric, lower), margin, "")
    if lower is None:
        return _silent(alarm, "no bound, since owners do not differ or no information was planned")
    limit = harm_margin(metric, margin)
    shortages = shortfalls(metric, limit, (treated, reference), cohorts=cohorts, policy=policy)
    if shortages:
        return _silent(alarm, f"too little data to judge: {sentences.listed(shortages)}")
    if lower <= 0.0:
        return _silent(alarm, "no harm is shown")
    if contrast.estimate <= limit:
        return _silent(alarm, "harm is shown, and its estimate is inside the margin")
    return _raised(alarm)


def _contrast(
    metric: Metric, treated: CohortRatio | None, reference: CohortRatio | None
) -> Contrast | None:
    if treated is None or reference is None:
        return None
    if metric.is_ratio:
        has_ratio = min(treated.ratio, reference.ratio) > 0.0
        return log_ratio(treated, reference) if has_ratio else None
    return difference(treated, reference)


def _lower_bound(metric: Metric, contrast: Contrast, *, alpha: float, looks: Looks) -> float | None:
    if contrast.standard_error <= 0.0:
        return None
    match looks:
        case ScheduledLooks(looks=count):
            return contrast.upper(alpha / count)
        case AnyTimeLooks(planned=planned):
            if metric not in planned:
                return None
            information = contrast.standard_error**-2
            width = mixture_multiplier(information, planned[metric], alpha)
            return contrast.estimate - width * contrast.standard_error


def _without_data(metric: Metric, margin: float, why: str) -> HarmAlarm:
    sentence = f"No data about {sentences.label(metric)}: {why}."
    return HarmAlarm(metric, False, None, None, margin, sentence, is_missing=True)


def _silent(alarm: HarmAlarm, why: str) -> HarmAlarm:
    return replace(alarm, sentence=f"No alarm about {sentences.label(alarm.metric)}: {why}.")


def _raised(alarm: HarmAlarm) -> HarmAlarm:
    metric = alarm.metric
    shown = -alarm.margin if metric.is_higher_better else alarm.margin
    estimate, bound, margin = (
        sentences.effect(metric, value, shown) for value in (alarm.estimate, alarm.bound, shown)
    )
    sentence = (
        f"Alarm about {sentences.label(metric)}: {estimate}, beyond the margin of {margin}; at any "
        f"look no better than {bound} is compatible with what was seen."
    )
    return replace(alarm, is_raised=True, sentence=sentence)
