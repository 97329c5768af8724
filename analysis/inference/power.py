"""Power: what a gate can show with a number of owners, in closed form before the wave.

Two questions. Does the wave treat enough owners to show that a harmless guard is harmless? And what
is the chance that a draw misses harm that few owners carry?

With u = (harm - R trials) / mean trials of an owner and v = Var(u), the difference of two cohorts
has SE^2 = v / n_T + v / n_C. If the true harm is d and the margin m, the test passes about as often
as a noncentral t with n_T - 1 degrees of freedom and noncentrality (d - m) / SE falls below
-t(1 - alpha). This is asymptotic: below 100 treated owners trust the placebo planner
(`planning.placebo`), which runs the gate itself.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from guardwave.analysis.frames import Floats, checked_totals, outcomes_of
from guardwave.analysis.inference.margins import harm_margin
from guardwave.analysis.report import Note, Topic
from guardwave.reducer.rollout.draw import BPS, treated_count
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Metric

# No roster is larger; the search for the owners needed ends here.
MOST_OWNERS = 10**9
# The harm that few owners carry in the coverage study, in basis points of the owners, and how often
# the draw may miss it (docs/coverage.md).
CARRIERS_BPS = 200
MOST_CHANCE = 0.10


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
        """1 / SE^2, which an always-valid alarm plans with."""
        return self.standard_error**-2


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """The plan of one metric. `power` is for no true harm; None where too few are treated.

    With `treated_needed` and `owners_needed` the wave has the policy's planned power at this share;
    beta is split over the gate's metrics, so that all of them pass together that often.
    `information` is the planned information about the metric.
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
    """Return v of a rate from assumptions, before there is any data.

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
    """Return the power, at no true harm, of a comparison that was made; None without a spread."""
    if standard_error <= 0.0 or degrees_of_freedom is None:
        return None
    limit = -float(special.stdtrit(degrees_of_freedom, 1.0 - alpha))
    return float(stats.nct.cdf(limit, degrees_of_freedom, -margin / standard_error))


def treated_needed(
    variance: float, margin: float, *, alpha: float, power_aim: float, share_bps: int
) -> int | None:
    """Return the least number of treated owners with this power, at no true harm and this share.

    None when even a thousand million owners would not do.
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
    """Plan a wave on owner totals of as many days as it will use; their cohorts are ignored.

    `variance_ratio` is the part of the variance that remains with CUPED, 1 without it. Latency p95
    is left to the placebo planner, which cuts where the test does.

    Raises:
        ValueError: for totals that fail their checks, for a share outside 1 to 9999 basis points
            and for a variance ratio that is not above 0.
    """
    if not 0 < share_bps < BPS:
        raise ValueError(f"share_bps is {share_bps}; a wave treats 1 to {BPS - 1} basis points")
    if not 0.0 < variance_ratio < math.inf:
        raise ValueError(f"variance_ratio is {variance_ratio}; it must be above 0")
    together = checked_totals(totals).assign(cohort=Cohort.EVERYONE.value)
    # All must pass: to fail no more often than beta together, each may fail its part of it.
    aim = 1.0 - (1.0 - policy.planned_power) / max(1, len(margins))
    plans = []
    for metric in Metric:
        if metric not in margins or metric is Metric.LATENCY_P95:
            continue
        outcomes = outcomes_of(together, metric, (Cohort.EVERYONE, Cohort.EVERYONE))
        variance = _variance(metric, outcomes.harm, outcomes.trials)
        limit = harm_margin(metric, margins[metric])
        if variance is not None:
            treated = treated_count(share_bps, len(together))
            design = Design(variance_ratio * variance, limit, treated, len(together) - treated)
            plans.append(_plan(metric, design, share_bps=share_bps, aim=aim, policy=policy))
    return tuple(plans)


def _plan(
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


@dataclass(frozen=True, slots=True)
class MissedCarriers:
    """The chance that a draw misses every carrier of a harm in few owners, and the draw's sizes.

    `owners` is N, the whole roster, `treated` n and `carriers` K. `treated_needed` is the least n
    whose chance is `MOST_CHANCE` or less.
    """

    owners: int
    treated: int
    carriers: int
    chance: float
    treated_needed: int

    @property
    def is_small(self) -> bool:
        """Whether too few owners are treated to detect harm in few owners."""
        return self.treated < self.treated_needed

    @property
    def sentence(self) -> str:
        """The chance in words, and the number of treated owners that would make it small."""
        limit = (
            f"a chance of {100 * MOST_CHANCE:g} % or less takes {self.treated_needed:,} treated "
            "owners"
        )
        chance = (
            f"If {100 * CARRIERS_BPS / BPS:g} % of the owners ({self.carriers:,} of "
            f"{self.owners:,}) carried all harm, the chance that the draw of {self.treated:,} has "
            f"none of them is {_percent(self.chance)}"
        )
        if not self.is_small:
            return f"{chance}; {limit}."
        return f"{chance}. The wave is too small to see harm in few owners: {limit}."


def missed_carriers(owners: int, treated: int) -> MissedCarriers | None:
    """Return the chance that a draw of `treated` owners misses all carriers; None if it is empty.

    Raises:
        ValueError: `treated` is not from 0 to `owners`.
    """
    if not 0 <= treated <= owners:
        raise ValueError(f"treated is {treated} of {owners} owners; give 0 to {owners}")
    if treated == 0:
        return None
    carriers = -(-CARRIERS_BPS * owners // BPS)
    # More treated owners never miss more often, so the least sufficient number is found by halving.
    needed = bisect_left(
        range(owners + 1),
        -MOST_CHANCE,
        key=lambda drawn: -miss_probability(owners, carriers, drawn),
    )
    return MissedCarriers(
        owners, treated, carriers, miss_probability(owners, carriers, treated), needed
    )


def miss_probability(owners: int, carriers: int, drawn: int) -> float:
    """Return C(N - K, n) / C(N, n): the chance that none of the carriers is drawn.

    K and n may be exchanged, so the product needs only as many factors as the smaller of them.
    """
    if carriers + drawn > owners:
        return 0.0
    factors, other = sorted((carriers, drawn))
    return math.exp(math.fsum(math.log1p(-other / (owners - place)) for place in range(factors)))


def missed_carriers_note(owners: int, treated: int) -> Note | None:
    """Return the same as a note; None where nobody is treated."""
    missed = missed_carriers(owners, treated)
    if missed is None:
        return None
    numbers: dict[str, int | float | str] = {
        "owners": missed.owners,
        "treated": missed.treated,
        "carriers": missed.carriers,
        "chance_unseen": missed.chance,
        "treated_needed": missed.treated_needed,
    }
    return Note(Topic.MISSED_CARRIERS, False, missed.sentence, numbers)


def _percent(chance: float) -> str:
    """Write a chance in percent; a small one is not rounded to zero."""
    if chance < 0.001:
        return "under 0.1 %"
    return f"{100.0 * chance:.{0 if chance >= 0.095 else 1}f} %"
