"""Rerandomisation: the decision test at the margin, and the bound that agrees with it.

The test injects the margin into the reference cohort. If the true harm equals the margin, the
labels of the owners are then exchangeable, so the observed statistic is one more draw among those
of random owner sets: p = (1 + #{t* <= t}) / (B + 1). The statistic is studentised with CR1 (Wu and
Ding 2018), which keeps the level near nominal where a few owners carry the harm.

Margins and bounds here are on the scale of the test: a difference of harm rates as a fraction, the
natural logarithm of a ratio, or a number of buckets.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from guardwave.analysis.frames import Flags, Floats, Outcomes
from guardwave.analysis.inference import injection
from guardwave.analysis.inference.covariate import Adjustment
from guardwave.analysis.inference.injection import Experiment, ScaledAmount, ThinnedRate
from guardwave.analysis.inference.random_sets import Sets, draw_sets
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric

FIRST_STRIDE = 8
# Gaps end here, so that an infinite statistic does not stop the interpolation.
LARGEST_GAP = 50.0
# Ties count, and sums in another order may differ in the last bits.
TIE_TOLERANCE = 1e-9


class DrawKey(NamedTuple):
    """The key of the random sets: all metrics of a wave use the same sets."""

    environment: str
    guard: str
    wave: int

    @property
    def seed(self) -> int:
        """Seed of 128 bits: a hash over the length-prefixed fields."""
        fields = ("guardwave-sets-1", self.environment, self.guard, str(self.wave))
        parts = [field.encode() for field in fields]
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return int.from_bytes(hashlib.sha256(message).digest()[:16], "big")


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The random sets of a wave. Metrics over the same owners share them, and so do all margins."""

    key: DrawKey
    cached: list[Sets] = field(default_factory=list)

    def of(self, is_treated: Flags, count: int) -> Sets:
        """Return `count` random sets beside the observed one; they stand for the smaller cohort."""
        is_member = is_treated if stands_for_treated(is_treated) else ~is_treated
        for sets in self.cached:
            if sets.count == count and np.array_equal(sets.is_member, is_member):
                return sets
        sets = draw_sets(is_member, seed=self.key.seed, count=count)
        self.cached[:] = [sets]
        return sets


class MarginTest(NamedTuple):
    """Both one-sided p values at one margin, and their number of random sets."""

    p_harm: float
    """Of the hypothesis "harm >= margin": small shows that harm stays inside the margin."""
    p_safe: float
    """Of the hypothesis "harm <= margin": small shows that harm is beyond the margin."""
    permutations: int


@dataclass(frozen=True, slots=True, eq=False)
class Rerandomisation:
    """The test of one metric. Both cohorts need an owner, and a ratio needs harm in both."""

    experiment: Experiment
    draws: Draws

    @classmethod
    def of(
        cls,
        outcomes: Outcomes,
        metric: Metric,
        key: DrawKey,
        *,
        adjustment: Adjustment | None = None,
        draws: Draws | None = None,
    ) -> "Rerandomisation":
        """Prepare the test of a metric of owner totals, with CUPED where an adjustment is given."""
        experiment: Experiment
        if metric.is_ratio:
            experiment = ScaledAmount(outcomes, adjustment)
        else:
            # All margins share the owners' uniforms, so that the harm grows with the margin.
            uniforms = injection.uniforms(outcomes.owners, metric, wave=key.wave)
            experiment = ThinnedRate(outcomes, uniforms, adjustment)
        return cls(experiment, draws or Draws(key))

    @property
    def is_treated_drawn(self) -> bool:
        """Whether random sets stand for the treated cohort, which they do if it is the smaller."""
        return stands_for_treated(self.experiment.is_treated)

    def sets(self, count: int) -> Sets:
        """Return the observed set and `count` random ones."""
        return self.draws.of(self.experiment.is_treated, count)

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return treated - reference, studentised: as observed, then of each random set."""
        statistics = self.experiment.statistics(margin, sets)
        return statistics if self.is_treated_drawn else -statistics

    def test(self, margin: float, sets: Sets) -> MarginTest:
        """Test one margin over prepared sets."""
        statistics = self.statistics(margin, sets)
        observed, slack = _observed(statistics)
        sets_and_observed = len(statistics)
        return MarginTest(
            float((statistics <= observed + slack).sum()) / sets_and_observed,
            float((statistics >= observed - slack).sum()) / sets_and_observed,
            sets_and_observed - 1,
        )

    def decide(self, margin: float, policy: GatePolicy) -> MarginTest:
        """Test the margin with the policy's sets, and again with many more when p is near alpha."""
        first = self.test(margin, self.sets(policy.permutations))
        alpha = policy.alpha
        # Three Monte Carlo standard errors of a p value that is alpha.
        doubt = 3.0 * math.sqrt(alpha * (1.0 - alpha) / policy.permutations)
        if min(abs(first.p_harm - alpha), abs(first.p_safe - alpha)) >= doubt:
            return first
        if policy.refined_permutations <= policy.permutations:
            return first
        # Not through `draws`: it keeps the sets that the search for the bound needs again.
        members = self.sets(policy.permutations).is_member
        refined = draw_sets(members, seed=self.draws.key.seed, count=policy.refined_permutations)
        return self.test(margin, refined)

    def bound(
        self,
        margin: float,
        decision: MarginTest,
        *,
        policy: GatePolicy,
        resolution: float,
        guess: float | None = None,
    ) -> float | None:
        """Return the one-sided upper bound of harm at 1 - alpha: the least margin that passes.

        The search tries margins `resolution` apart with the policy's own number of sets, from
        `guess` outwards. It follows the decision at `margin`: the bound is below the margin exactly
        when the decision passes. Where no margin passes, a rate is bounded by its largest possible
        harm, and any other metric has no bound: None.
        """
        lowest, highest = self.experiment.limits
        step = self.bound_step(
            margin,
            decision,
            policy=policy,
            resolution=resolution,
            guess=0 if guess is None else round((guess - margin) / resolution),
            limits=(
                min(math.ceil((lowest - margin) / resolution), 0),
                max(math.floor((highest - margin) / resolution), 0),
            ),
        )
        if step is None:
            worst = self.experiment.worst
            return None if worst is None else max(worst, margin)
        return margin + (step if step != 0 else -0.5) * resolution

    def bound_step(
        self,
        margin: float,
        decision: MarginTest,
        *,
        policy: GatePolicy,
        resolution: float,
        guess: int,
        limits: tuple[int, int],
    ) -> int | None:
        """Return the least passing step of `resolution` from the margin; it agrees with `decision`.

        None when not even the last step passes.
        """
        sets = self.sets(policy.permutations)

        def gap(step: int) -> float:
            return _gap(self.statistics(margin + step * resolution, sets), policy.alpha)

        start = gap(0)
        passes = decision.p_harm <= policy.alpha
        # Only the margin itself gets the refined sets. Where they overrule the first ones, the
        # bound lies at the margin.
        if passes is not (start < 0.0):
            return 0 if passes else 1
        return least_passing(gap, start=start, guess=guess, limits=limits)


class Agreement(NamedTuple):
    """p values of a difference of rates that lies inside a band around zero, or outside."""

    p_inside: float
    p_outside: float


def two_sided_p(
    outcomes: Outcomes,
    metric: Metric,
    key: DrawKey,
    policy: GatePolicy,
    *,
    draws: Draws | None = None,
) -> float:
    """Return p of "the cohorts do not differ"; metrics that share `draws` share the random sets.

    A margin of zero injects nothing, so any metric of the right kind stands for its kind. Both
    cohorts need an owner, and a ratio needs harm in both.
    """
    return two_sided_p_of(Rerandomisation.of(outcomes, metric, key, draws=draws), policy)


def two_sided_p_of(trial: Rerandomisation, policy: GatePolicy) -> float:
    """Return p of "the cohorts do not differ" from a test that is already prepared."""
    test = trial.decide(0.0, policy)
    return min(1.0, 2.0 * min(test.p_harm, test.p_safe))


def agreement(outcomes: Outcomes, band: float, key: DrawKey, policy: GatePolicy) -> Agreement:
    """Test whether two rates differ by less than `band`, in either direction.

    There are two one-sided tests. Each injects the band into the cohort that would be lower, so
    that no count falls below zero. Inside needs both, outside needs one.
    """
    swapped = outcomes._replace(is_treated=~outcomes.is_treated)
    above, below = (
        # Any rate of prompts has the same kind of test; this metric lends its name for uniforms.
        Rerandomisation.of(sides, Metric.DISRUPTION, key).decide(band, policy)
        for sides in (outcomes, swapped)
    )
    return Agreement(max(above.p_harm, below.p_harm), min(above.p_safe, below.p_safe))


def two_sided_policy(policy: GatePolicy, alpha: float) -> GatePolicy:
    """Return the policy with another two-sided alpha, near which p values are refined."""
    return replace(policy, alpha=alpha / 2.0)


def stands_for_treated(is_treated: Flags) -> bool:
    """Whether the treated cohort is the smaller one, whose size the random sets have."""
    return 2 * int(is_treated.sum()) <= len(is_treated)


def _observed(statistics: Floats) -> tuple[float, float]:
    observed = float(statistics[0])
    slack = TIE_TOLERANCE * max(1.0, abs(observed)) if math.isfinite(observed) else 0.0
    return observed, slack


def _gap(statistics: Floats, alpha: float) -> float:
    """Return by how much the observed statistic misses the alpha quantile; below 0 it passes."""
    size = len(statistics)
    allowed = int(alpha * size)
    # The product may be rounded below a whole number.
    allowed += (allowed + 1) / size <= alpha
    if allowed < 1:
        return math.inf
    observed, slack = _observed(statistics)
    critical = float(np.partition(statistics[1:], allowed - 1)[allowed - 1])
    if critical > observed + slack:
        return (
            min(observed + slack - critical, -TIE_TOLERANCE) if critical < math.inf else -math.inf
        )
    difference = observed + slack - critical
    return difference if difference >= 0.0 else math.inf


def least_passing(
    gap: Callable[[int], float], *, start: float, guess: int, limits: tuple[int, int]
) -> int | None:
    """Return the step at which `gap` falls below zero, from `start`, its value at step 0.

    A step passes when its gap is below zero; None when not even the last one does. The search
    brackets the turn from `guess` outwards and closes in by the Illinois variant of false position
    (Dowell and Jarratt 1971), with a bisection now and then in case the gap jumps. Where steps fail
    above a passing one, it finds one of the turns.
    """
    gaps = {0: _bounded(start)}

    def at(step: int) -> float:
        if step not in gaps:
            gaps[step] = _bounded(gap(step))
        return gaps[step]

    bracket = _bracket(at, guess, limits)
    if bracket is None:
        return limits[0] if at(0) < 0.0 else None
    low, high = bracket
    low_gap, high_gap = at(low), at(high)
    last, turn = 0.0, 0
    while high - low > 1:
        turn += 1
        middle = low + round((high - low) * low_gap / (low_gap - high_gap))
        if turn % 4 == 0:
            middle = (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        middle_gap = at(middle)
        # Illinois: the gap of an end that stays twice is halved, so that the other end moves too.
        if middle_gap < 0.0:
            high, high_gap = middle, middle_gap
            low_gap = low_gap / 2.0 if last < 0.0 else low_gap
        else:
            low, low_gap = middle, middle_gap
            high_gap = high_gap / 2.0 if last > 0.0 else high_gap
        last = math.copysign(1.0, middle_gap)
    return high


def _bracket(
    at: Callable[[int], float], guess: int, limits: tuple[int, int]
) -> tuple[int, int] | None:
    """Return steps on both sides of a turn, the lower one failing; None where there is no turn."""
    lowest, highest = limits
    passes = at(0) < 0.0
    towards = -1 if passes else 1
    step, stride = 0, FIRST_STRIDE
    ahead = guess if guess * towards > 0 else towards * stride
    while True:
        if step == (lowest if passes else highest):
            return None
        before, step = step, min(max(ahead, lowest), highest)
        if (at(step) < 0.0) is not passes:
            return (step, before) if passes else (before, step)
        ahead = step + towards * stride
        stride *= 2


def _bounded(gap: float) -> float:
    """Return a finite gap; one that is no number does not pass."""
    if math.isnan(gap):
        return LARGEST_GAP
    return min(max(gap, -LARGEST_GAP), LARGEST_GAP)
