"""Power before a wave, in closed form: what a gate can show with so many owners.

With u = (harm - R trials) / mean trials of an owner and v = Var(u), the difference of two cohorts
has SE^2 = v / n_T + v / n_C. If the true harm is d and the margin m, the test passes about as often
as a noncentral t with n_T - 1 degrees of freedom and noncentrality (d - m) / SE falls below
-t(1 - alpha). It is an asymptotic reckoning: below 100 treated owners the placebo planner
(analysis.placebo), which runs the gate itself, is the one to trust.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from analysis.frames import Floats, checked_totals, outcomes
from analysis.margins import harm_margin
from reducer.rollout.draw import BPS, treated_count
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric

# Beyond it no roster goes; the search for the owners needed ends there.
MOST_OWNERS = 10**9


@dataclass(frozen=True, slots=True)
class Design:
    """How a metric varies between owners, and how many of them each cohort has.

    `variance` is v and `margin` is on the scale of the test (a difference, or a log ratio).
    """

    variance: float
    margin: float
    treated: int
    reference: int

    @property
    def standard_error(self) -> float:
        """SE of the difference, sqrt(v / n_T + v / n_C)."""
        return math.sqrt(self.variance * (1.0 / self.treated + 1.0 / self.reference))

    @property
    def information(self) -> float:
        """1 / SE^2: what an always-valid alarm plans with."""
        return self.standard_error**-2


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """What one metric can show. `power` is for no true harm; `None` where too few are treated.

    `treated_needed` and `owners_needed` give the policy's planned power at this share, with beta
    split over the gate's metrics, so that all of them pass together that often; `information` is
    what the wave is planned to have of the metric.
    """

    metric: Metric
    variance: float
    power: float | None
    treated_needed: int | None
    owners_needed: int | None
    information: float | None


def owner_variance(harm: Floats, trials: Floats) -> float | None:
    """Return v of a difference of ratios of sums; None for fewer than two owners with a trial."""
    if len(trials) < 2:
        return None
    ratio = float(harm.sum() / trials.sum())
    return float(np.var((harm - ratio * trials) / trials.mean(), ddof=1))


def variance_of_rate(rate: float, *, icc: float, size_cv_squared: float, prompts: float) -> float:
    """Return v of a rate from what is known before any data.

    p(1 - p) [ICC (1 + CV^2) + (1 - ICC) / mean prompts], with the intra-owner correlation ICC and
    the squared coefficient of variation of owners' sizes: only the last term falls with more days.
    """
    within = (1.0 - icc) / prompts
    return rate * (1.0 - rate) * (icc * (1.0 + size_cv_squared) + within)


def power(design: Design, *, alpha: float, harm: float = 0.0) -> float:
    """Return how often the gate passes this metric when the true harm is `harm` (0 to 1).

    Raises:
        ValueError: for fewer than two treated owners or no reference owner.
    """
    if design.treated < 2 or design.reference < 1:
        raise ValueError(
            f"{design.treated} treated and {design.reference} reference owners; the test needs "
            "two treated ones and a reference"
        )
    if design.variance <= 0.0:
        return 1.0 if harm < design.margin else 0.0
    freedom = design.treated - 1
    limit = -float(special.stdtrit(freedom, 1.0 - alpha))
    shift = (harm - design.margin) / design.standard_error
    return float(stats.nct.cdf(limit, freedom, shift))


def power_of_figures(
    standard_error: float, degrees_of_freedom: float | None, margin: float, *, alpha: float
) -> float | None:
    """Return the power at no true harm of a comparison that was made; None without a spread."""
    if standard_error <= 0.0 or degrees_of_freedom is None:
        return None
    limit = -float(special.stdtrit(degrees_of_freedom, 1.0 - alpha))
    return float(stats.nct.cdf(limit, degrees_of_freedom, -margin / standard_error))


def treated_needed(
    variance: float, margin: float, *, alpha: float, power_aim: float, share_bps: int
) -> int | None:
    """Return the least treated owners that reach the power with no true harm, at this share.

    None when no roster of a thousand million owners would do.
    """

    def reaches(treated: int) -> bool:
        reference = max(1, treated * (BPS - share_bps) // share_bps)
        return power(Design(variance, margin, treated, reference), alpha=alpha) >= power_aim

    low, high = 1, 2
    while not reaches(high):
        low, high = high, 2 * high
        if high > MOST_OWNERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def plan_metrics(
    totals: pd.DataFrame,
    margins: Mapping[Metric, float],
    *,
    policy: GatePolicy,
    share_bps: int,
    variance_ratio: float = 1.0,
) -> tuple[MetricPlan, ...]:
    """Plan a wave on owner totals of as many days as it will use, whatever the cohorts were.

    `variance_ratio` is what CUPED leaves of the variance, 1 without it. Latency p95 is left to the
    placebo planner, which cuts where the test does.

    Raises:
        ValueError: for totals that fail their checks, for a share outside 1 to 9999 basis points
            and for a variance ratio that is not above 0.
    """
    if not 0 < share_bps < BPS:
        raise ValueError(f"share_bps is {share_bps}; a wave treats 1 to {BPS - 1} basis points")
    if not 0.0 < variance_ratio < math.inf:
        raise ValueError(f"variance_ratio is {variance_ratio}; it must be above 0")
    together = checked_totals(totals).assign(cohort=Cohort.EVERYONE.value)
    named = [metric for metric in Metric if metric in margins and metric is not Metric.LATENCY_P95]
    # All must pass: to lose no more than beta together, each may lose its part of it.
    aim = 1.0 - (1.0 - policy.planned_power) / max(1, len(margins))
    found = []
    for metric in named:
        own = outcomes(together, metric, (Cohort.EVERYONE, Cohort.EVERYONE))
        variance = _variance(metric, own.harm, own.trials)
        limit = harm_margin(metric, margins[metric])
        if variance is not None:
            treated = treated_count(share_bps, len(together))
            design = Design(variance_ratio * variance, limit, treated, len(together) - treated)
            found.append(_planned(metric, design, share_bps=share_bps, aim=aim, policy=policy))
    return tuple(found)


def _planned(
    metric: Metric, design: Design, *, share_bps: int, aim: float, policy: GatePolicy
) -> MetricPlan:
    needed = treated_needed(
        design.variance, design.margin, alpha=policy.alpha, power_aim=aim, share_bps=share_bps
    )
    is_testable = design.treated >= 2 and design.reference >= 1
    return MetricPlan(
        metric,
        design.variance,
        power(design, alpha=policy.alpha) if is_testable else None,
        needed,
        None if needed is None else -(-needed * BPS // share_bps),
        design.information if is_testable and design.variance > 0.0 else None,
    )


def _variance(metric: Metric, harm: Floats, trials: Floats) -> float | None:
    variance = owner_variance(harm, trials)
    if variance is None or not metric.is_ratio:
        return variance
    ratio = float(harm.sum() / trials.sum())
    return None if ratio <= 0.0 else variance / ratio**2
