"""The decision test: owner re-randomisation at the margin, and the bound that agrees with it.

With the margin injected into the reference cohort the labels are exchangeable if the true harm
equals the margin, so the observed statistic is one more draw among those of random owner sets:
p = (1 + #{t* <= t}) / (B + 1). The statistic is studentised with CR1 (Wu and Ding 2018), which
keeps the level near nominal where a few owners carry the harm.

Margins and bounds here are on the scale of the test: a difference of harm rates as a fraction, the
natural logarithm of a ratio, or a number of buckets.
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis import injection
from analysis.bounds import least_passing
from analysis.cuped import Adjustment
from analysis.experiments import Experiment, ScaledAmount, ThinnedRate
from analysis.frames import Flags, Floats, Outcomes
from analysis.shuffles import Sets, draw_sets
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric

# Ties count, and sums in another order may differ in the last bits.
TIE_TOLERANCE = 1e-9


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


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The random sets of a wave. Metrics over the same owners share them, and so do all margins."""

    key: DrawKey
    known: list[Sets] = field(default_factory=list)

    def of(self, is_treated: Flags, count: int) -> Sets:
        """Return `count` random sets beside the observed one; they stand for the smaller cohort."""
        is_member = is_treated if stands_for_treated(is_treated) else ~is_treated
        for sets in self.known:
            if sets.count == count and np.array_equal(sets.is_member, is_member):
                return sets
        sets = draw_sets(is_member, seed=self.key.seed, count=count)
        self.known[:] = [sets]
        return sets


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
            # The owners' uniforms are the same for every margin.
            own = injection.uniforms(outcomes.owners, metric, wave=key.wave)
            experiment = ThinnedRate(outcomes, own, adjustment)
        return cls(experiment, draws or Draws(key))

    @property
    def is_treated_drawn(self) -> bool:
        """Whether random sets stand for the treated cohort: the smaller one is drawn."""
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
        # Not through `draws`: they keep the sets that the search for the bound needs again.
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

        Margins `resolution` apart are tried with the policy's own number of sets, from `guess`
        outwards. At `margin` the decision has spoken: the bound is below it exactly when the
        decision passes there. Where no margin passes, a rate is bounded by its largest possible
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
        # Only the margin itself is worth the refined sets; where they overrule the first ones,
        # the bound lies at the margin.
        if passes is not (start < 0.0):
            return 0 if passes else 1
        return least_passing(gap, start=start, guess=guess, limits=limits)


def stands_for_treated(is_treated: Flags) -> bool:
    """Whether the treated cohort is the smaller one, of whose size the random sets are."""
    return 2 * int(is_treated.sum()) <= len(is_treated)


def _observed(statistics: Floats) -> tuple[float, float]:
    observed = float(statistics[0])
    slack = TIE_TOLERANCE * max(1.0, abs(observed)) if math.isfinite(observed) else 0.0
    return observed, slack


def _gap(statistics: Floats, alpha: float) -> float:
    """Return by how much the observed statistic misses the alpha quantile; below 0 it passes."""
    of_all = len(statistics)
    allowed = int(alpha * of_all)
    allowed += (allowed + 1) / of_all <= alpha
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
