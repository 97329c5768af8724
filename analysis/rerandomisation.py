"""The decision test: owner re-randomisation at the margin, and the bound that agrees with it.

With the margin injected into the reference cohort the labels are exchangeable if the true harm
equals the margin, so the observed statistic is one more draw among those of random owner sets:
p = (1 + #{t* <= t}) / (B + 1). The statistic is studentised with CR1 (Wu and Ding 2018), which
keeps the level near nominal where a few owners carry the harm.

Margins and bounds here are on the scale of the test: a difference of harm rates as a fraction, or
the natural logarithm of a ratio.
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis import injection
from analysis.frames import Floats, Outcomes
from analysis.shuffles import Sets, draw_sets, sums_over
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric

# Ties count, and sums in another order may differ in the last bits.
TIE_TOLERANCE = 1e-9
# Random sets are kept for a search up to 0.6 GB of them, and drawn again for each step beyond.
KEPT_MEMBERS = 50_000_000
# No ratio is told from another beyond this logarithm; the search for a bound ends there.
LARGEST_LOG_RATIO = 20.0


class DrawKey(NamedTuple):
    """What the random sets depend on: the same wave meets the same sets for every metric."""

    environment: str
    guard: str
    wave: int

    @property
    def seed(self) -> int:
        """128 bits of a hash over the length-prefixed fields."""
        fields = ("guardwave-sets-1", self.environment, self.guard, str(self.wave))
        parts = [field.encode() for field in fields]
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return int.from_bytes(hashlib.sha256(message).digest()[:16], "big")


class MarginTest(NamedTuple):
    """Both one-sided p values at one margin, and the number of random sets behind them."""

    p_harm: float
    """Of the hypothesis "harm >= margin": small shows that harm stays inside the margin."""
    p_safe: float
    """Of the hypothesis "harm <= margin": small shows that harm is beyond the margin."""
    permutations: int


@dataclass(frozen=True, slots=True, eq=False)
class Rerandomisation:
    """The test of one metric. Both cohorts need an owner, and a ratio needs harm in both."""

    outcomes: Outcomes
    metric: Metric
    key: DrawKey
    uniforms: Floats

    @classmethod
    def of(cls, outcomes: Outcomes, metric: Metric, key: DrawKey) -> "Rerandomisation":
        """Prepare the test: the owners' uniforms are the same for every margin."""
        own = injection.uniforms(outcomes.owners, metric, wave=key.wave)
        return cls(outcomes, metric, key, own)

    @property
    def is_treated_drawn(self) -> bool:
        """Whether random sets stand for the treated cohort: the smaller one is drawn."""
        return 2 * int(self.outcomes.is_treated.sum()) <= len(self.outcomes.owners)

    def sets(self, count: int) -> Iterable[Sets]:
        """Return the observed set and `count` random ones, in chunks."""
        treated = self.outcomes.is_treated
        is_member = treated if self.is_treated_drawn else ~treated
        return draw_sets(is_member, seed=self.key.seed, count=count)

    def test(self, margin: float, sets: Iterable[Sets]) -> MarginTest:
        """Test one margin over prepared sets."""
        harm, trials = self._injected(margin), self.outcomes.trials
        columns = np.column_stack([harm, trials, harm**2, harm * trials, trials**2])
        drawn = sums_over(sets, columns)
        size, owners = self._size, len(trials)
        statistics = _studentised(
            (drawn, columns.sum(axis=0) - drawn),
            (size, owners - size),
            is_ratio=self.metric.is_ratio,
        )
        if not self.is_treated_drawn:
            statistics = -statistics
        observed = float(statistics[0])
        slack = TIE_TOLERANCE * max(1.0, abs(observed)) if math.isfinite(observed) else 0.0
        of_all = len(statistics)
        return MarginTest(
            float((statistics <= observed + slack).sum()) / of_all,
            float((statistics >= observed - slack).sum()) / of_all,
            of_all - 1,
        )

    def decide(self, margin: float, policy: GatePolicy) -> MarginTest:
        """Test the margin with the policy's sets, and again with many more when p is near alpha."""
        first = self.test(margin, self.sets(policy.permutations))
        alpha = policy.alpha
        doubt = 3.0 * math.sqrt(alpha * (1.0 - alpha) / policy.permutations)
        if min(abs(first.p_harm - alpha), abs(first.p_safe - alpha)) >= doubt:
            return first
        if policy.refined_permutations <= policy.permutations:
            return first
        return self.test(margin, self.sets(policy.refined_permutations))

    def bound(
        self, margin: float, decision: MarginTest, *, policy: GatePolicy, resolution: float
    ) -> float | None:
        """Return the one-sided upper bound of harm at 1 - alpha: the least margin that passes.

        It is below `margin` exactly when the decision passes there. A rate's bound ends where
        every trial of the reference would be harmful; a ratio's is None when none passes.
        """
        # Only the margin itself is worth the refined sets; elsewhere the policy's first ones do.
        members = policy.permutations * self._size
        kept = tuple(self.sets(policy.permutations)) if members <= KEPT_MEMBERS else None

        def passes(candidate: float) -> bool:
            sets = self.sets(policy.permutations) if kept is None else kept
            return self.test(candidate, sets).p_harm <= policy.alpha

        start = (margin, decision.p_harm <= policy.alpha)
        lowest, highest = self._limits()
        limits = (lowest, max(highest, margin))
        found = _least_passing(passes, start, limits=limits, resolution=resolution)
        return None if self.metric.is_ratio and found >= LARGEST_LOG_RATIO else found

    @property
    def _size(self) -> int:
        treated = int(self.outcomes.is_treated.sum())
        return min(treated, len(self.outcomes.owners) - treated)

    def _injected(self, margin: float) -> Floats:
        if self.metric.is_ratio:
            return injection.with_ratio_margin(self.outcomes, margin)
        return injection.with_rate_margin(self.outcomes, margin, self.uniforms)

    def _limits(self) -> tuple[float, float]:
        """The least and the largest margin that can be injected."""
        if self.metric.is_ratio:
            return -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO
        is_reference = ~self.outcomes.is_treated
        trials = self.outcomes.trials[is_reference]
        rate = float(self.outcomes.harm[is_reference].sum() / trials.sum())
        return -rate, 1.0 - rate


def _studentised(sums: tuple[Floats, Floats], sizes: tuple[int, int], *, is_ratio: bool) -> Floats:
    """Return (first - second) / SE per set, from the five moments of each side."""
    (first, first_variance), (second, second_variance) = (
        _ratio_and_cr1(moments, size) for moments, size in zip(sums, sizes, strict=True)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        if is_ratio:
            estimate = np.log(first / second)
            variance = first_variance / first**2 + second_variance / second**2
        else:
            estimate = first - second
            variance = first_variance + second_variance
        statistics = np.where(np.isfinite(estimate), estimate / np.sqrt(variance), estimate)
    # 0 / 0 is no difference seen with no spread seen.
    return np.where(np.isnan(statistics), 0.0, statistics)


def _ratio_and_cr1(moments: Floats, size: int) -> tuple[Floats, Floats]:
    harm, trials, harm_squared, cross, trials_squared = moments.T
    ratio = harm / trials
    squares = harm_squared - 2.0 * ratio * cross + ratio**2 * trials_squared
    # One owner has no residual; every set has the same size, so the factor may stay at 1 there.
    factor = size / (size - 1) if size > 1 else 1.0
    return ratio, np.maximum(squares, 0.0) / trials**2 * factor


def _least_passing(
    passes: Callable[[float], bool],
    start: tuple[float, bool],
    *,
    limits: tuple[float, float],
    resolution: float,
) -> float:
    """Find where `passes` turns true, from a margin whose answer is known."""
    margin, passes_there = start
    lowest, highest = limits
    step = 64.0 * resolution
    low = high = margin
    if passes_there:
        while low == high:
            low = max(high - step, lowest)
            if passes(low):
                if low == lowest:
                    return lowest
                high = low
            step *= 2.0
    else:
        while low == high:
            high = min(low + step, highest)
            if not passes(high):
                if high == highest:
                    return highest
                low = high
            step *= 2.0
    while high - low > resolution:
        middle = (low + high) / 2.0
        if passes(middle):
            high = middle
        else:
            low = middle
    # The turn lies between the two; at the margin itself the decision has spoken.
    return (low + high) / 2.0 if high == margin else high
