"""What the decision test does with a margin: inject it, and give every set its statistic."""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from analysis import injection, studentised
from analysis.cuped import Adjustment
from analysis.frames import Flags, Floats, Outcomes
from analysis.shuffles import Sets, sums_over

# No ratio is told from another beyond this logarithm; the search for a bound ends there.
LARGEST_LOG_RATIO = 20.0


class Experiment(Protocol):
    """One metric of two cohorts, on the scale of its margins."""

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest margin that can be injected."""
        ...

    @property
    def worst(self) -> float | None:
        """The most harm there can be, or None where there is no end to it."""
        ...

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return set - rest, studentised, for the observed set and each random one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ThinnedRate:
    """A rate whose margin, a fraction, is drawn in or out of the reference's harm."""

    outcomes: Outcomes
    uniforms: Floats
    adjustment: Adjustment | None

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        return self.outcomes.is_treated

    @property
    def limits(self) -> tuple[float, float]:
        """From no harm left in the reference to every trial harmful."""
        is_reference = ~self.outcomes.is_treated
        trials = self.outcomes.trials[is_reference]
        rate = float(self.outcomes.harm[is_reference].sum() / trials.sum())
        return -rate, 1.0 - rate

    @property
    def worst(self) -> float | None:
        """Every trial harmful."""
        return self.limits[1]

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return the statistics with the margin injected."""
        harm = injection.with_rate_margin(self.outcomes, margin, self.uniforms)
        return rate_statistics(harm, self.outcomes.trials, sets, self.adjustment)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledAmount:
    """An amount per prompt whose margin, the log of a ratio, multiplies the reference's.

    Sums are kept apart by true cohort, so that one walk over the sets serves every margin.
    """

    outcomes: Outcomes
    adjustment: Adjustment | None
    walked: list[tuple[Sets, Floats, Floats]] = field(default_factory=list)

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        return self.outcomes.is_treated

    @property
    def limits(self) -> tuple[float, float]:
        """Any ratio that can be told from others."""
        return -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO

    @property
    def worst(self) -> float | None:
        """No end: an amount per prompt may be any."""
        return None

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return the statistics with the margin injected."""
        sums, totals = self._sums(sets)
        times = math.exp(margin)
        sizes = (sets.size, sets.owners - sets.size)
        if self.adjustment is None:
            moments = _scaled_ratio(sums, times), _scaled_ratio(totals, times)
            return studentised.of_ratios(*moments, sizes, is_log=True)
        own, trials = self.outcomes, self.outcomes.trials.sum()
        treated = own.harm[own.is_treated].sum()
        pooled = float((treated + times * own.harm[~own.is_treated].sum()) / trials)
        moments = _scaled_mean(sums, times, pooled), _scaled_mean(totals, times, pooled)
        return studentised.of_means(*moments, sizes)

    def _sums(self, sets: Sets) -> tuple[Floats, Floats]:
        for known, sums, totals in self.walked:
            if known is sets:
                return sums, totals
        columns = self._columns()
        walk = sums_over(sets, columns), columns.sum(axis=0, keepdims=True)
        # Refined sets come once and are many: only those of the search are worth their memory.
        self.walked[:] = [(sets, *walk)]
        return walk

    def _columns(self) -> Floats:
        own = self.outcomes
        treated = np.where(own.is_treated, own.harm, 0.0)
        reference = np.where(own.is_treated, 0.0, own.harm)
        if self.adjustment is None:
            parts = [treated, reference, treated**2, reference**2]
            parts += [treated * own.trials, reference * own.trials, own.trials, own.trials**2]
            return np.column_stack(parts)
        a, b, c = (self.adjustment.residuals(part) for part in (treated, reference, own.trials))
        return np.column_stack([a, b, c, a * a, b * b, c * c, a * b, a * c, b * c])


def rate_statistics(
    harm: Floats, trials: Floats, sets: Sets, adjustment: Adjustment | None
) -> Floats:
    """Return the statistics of injected harm: of its rates, or of what CUPED leaves of it."""
    sizes = (sets.size, sets.owners - sets.size)
    if adjustment is None:
        columns = studentised.ratio_columns(harm, trials)
        totals = columns.sum(axis=0, keepdims=True)
        return studentised.of_ratios(sums_over(sets, columns), totals, sizes, is_log=False)
    rate = harm.sum() / trials.sum()
    columns = studentised.mean_columns(adjustment.residuals(harm - rate * trials))
    totals = columns.sum(axis=0, keepdims=True)
    return studentised.of_means(sums_over(sets, columns), totals, sizes)


def _scaled_ratio(sums: Floats, times: float) -> Floats:
    """Return the five moments of Y_T + times x Y_C from the sums of their parts."""
    a, b, aa, bb, an, bn, n, nn = sums.T
    return np.column_stack([a + times * b, n, aa + times**2 * bb, an + times * bn, nn])


def _scaled_mean(sums: Floats, times: float, pooled: float) -> Floats:
    """Return both moments of a + times x b - pooled x c from the sums of their products."""
    a, b, c, aa, bb, cc, ab, ac, bc = sums.T
    squares = aa + times**2 * bb + pooled**2 * cc
    crossed = times * ab - pooled * ac - times * pooled * bc
    return np.column_stack([a + times * b - pooled * c, squares + 2.0 * crossed])
