"""Harm alarms: bounds that hold on every day of a wave, so that a look at any time costs no level.

Two ways. Daily jobs look a few scheduled times and share alpha among them (Bonferroni). Streams
look at any time, under a normal-mixture confidence sequence on information I = 1 / SE^2
(Waudby-Smith and others, 2103.06476): its one-sided width is

    SE sqrt(2 (I t + 1) / (I t) log(1 + sqrt(I t + 1) / (2 alpha)))

with the mixture's variance t = (-2 log(2 alpha) + log(1 - 2 log(2 alpha))) / I*, narrowest near
the planned information I*, which is fixed before the first look. Harm is on the scale of the
test: a difference of rates of harm, or the logarithm of a ratio.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pandas as pd

from analysis import sentences
from analysis.cohorts import CohortRatio, Contrast, difference, log_ratio
from analysis.frames import checked_totals, outcomes
from analysis.margins import harm_margin, native, shortfalls
from analysis.questions import ratios
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A known number of looks, daily ones say: each has alpha / `looks`."""

    looks: int

    def __post_init__(self) -> None:
        if self.looks < 1:
            raise ValueError(f"looks is {self.looks}; schedule at least one")


@dataclass(frozen=True, slots=True)
class AnyTime:
    """Looks at any time. `planned` is the information expected, fixed before the first of them."""

    planned: Mapping[Metric, float]

    def __post_init__(self) -> None:
        for metric, information in self.planned.items():
            if not 0.0 < information < math.inf:
                raise ValueError(
                    f"the planned information of {metric} is {information}; it must be above 0"
                )


Looks: TypeAlias = Scheduled | AnyTime


@dataclass(frozen=True, slots=True)
class HarmAlarm:
    """What one metric showed at one look, in native units.

    `bound` is the least harm that the evidence is compatible with, on the side of no harm; None
    where it cannot be given. With `is_untold` the look could not see: too many prompts told nothing
    of the metric. The alarm is raised when that bound is harm, the estimate is beyond
    the margin, and there is enough data to judge either.
    """

    metric: Metric
    is_raised: bool
    estimate: float | None
    bound: float | None
    margin: float
    sentence: str
    is_untold: bool = False


def mixture_multiplier(information: float, planned: float, alpha: float) -> float:
    """Return how many standard errors the always-valid bound is away, at this information.

    At the planned one that is 2.78 for alpha 0.05 and 3.36 for 0.01.

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

    It says how much is known, not which way it points, and so may plan the looks that follow.

    Raises:
        ValueError: for owner totals that fail their checks.
    """
    checked = checked_totals(totals)
    found: dict[Metric, float] = {}
    for metric in metrics:
        if metric is Metric.LATENCY_P95:
            continue
        contrast = _contrast(metric, *ratios(outcomes(checked, metric, cohorts)))
        if contrast is not None and contrast.standard_error > 0.0:
            found[metric] = contrast.standard_error**-2
    return found


def harm_alarms(
    totals: pd.DataFrame,
    cohorts: tuple[Cohort, Cohort],
    margins: Mapping[Metric, float],
    *,
    policy: GatePolicy,
    looks: Looks,
    untold: Mapping[Metric, str] | None = None,
) -> tuple[HarmAlarm, ...]:
    """Look at the owner totals so far; one answer per metric with a margin, in their order.

    Latency p95 has no alarm: its test cuts where the margin lies and gives no standard error on
    the scale of the ratio. `untold` says in words why some metrics are no data (analysis.untold).

    Raises:
        ValueError: for owner totals that fail their checks, and for a margin out of its range.
    """
    checked = checked_totals(totals)
    named = [metric for metric in Metric if metric in margins and metric is not Metric.LATENCY_P95]
    why = untold or {}
    return tuple(
        _untold(metric, margins[metric], why[metric])
        if metric in why
        else _alarm(checked, cohorts, metric, margin=margins[metric], policy=policy, looks=looks)
        for metric in named
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
    own = outcomes(checked, metric, cohorts)
    treated, reference = ratios(own)
    blank = HarmAlarm(metric, False, None, None, margin, "")
    contrast = _contrast(metric, treated, reference)
    if treated is None or reference is None or contrast is None:
        return _silent(blank, "not enough owners with data in both cohorts")
    estimate = native(metric, contrast.estimate)
    lower = _lower_bound(metric, contrast, alpha=policy.alarms.alpha, looks=looks)
    seen = HarmAlarm(metric, False, estimate, native(metric, lower), margin, "")
    if lower is None:
        return _silent(seen, "no bound, since owners do not differ or no information was planned")
    limit = harm_margin(metric, margin)
    lacking = shortfalls(metric, limit, (treated, reference), cohorts=cohorts, policy=policy)
    if lacking:
        return _silent(seen, f"too little data to judge: {sentences.listed(lacking)}")
    if lower <= 0.0:
        return _silent(seen, "no harm is shown")
    if contrast.estimate <= limit:
        return _silent(seen, "harm is shown, and its estimate is inside the margin")
    return _raised(seen)


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
        case Scheduled(looks=count):
            return contrast.upper(alpha / count)
        case AnyTime(planned=planned):
            if metric not in planned:
                return None
            information = contrast.standard_error**-2
            width = mixture_multiplier(information, planned[metric], alpha)
            return contrast.estimate - width * contrast.standard_error


def _untold(metric: Metric, margin: float, why: str) -> HarmAlarm:
    sentence = f"No data about {sentences.label(metric)}: {why}."
    return HarmAlarm(metric, False, None, None, margin, sentence, is_untold=True)


def _silent(seen: HarmAlarm, why: str) -> HarmAlarm:
    return replace(seen, sentence=f"No alarm about {sentences.label(seen.metric)}: {why}.")


def _raised(seen: HarmAlarm) -> HarmAlarm:
    metric = seen.metric
    shown = -seen.margin if metric.is_higher_better else seen.margin
    estimate, bound, margin = (
        sentences.effect(metric, value, shown) for value in (seen.estimate, seen.bound, shown)
    )
    sentence = (
        f"Alarm about {sentences.label(metric)}: {estimate}, beyond the margin of {margin}; at any "
        f"look no better than {bound} is compatible with what was seen."
    )
    return replace(seen, is_raised=True, sentence=sentence)
