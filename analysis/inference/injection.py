"""Injection: a margin put into the reference cohort, and the statistic of every random set.

From top to bottom: the experiments of rates and amounts, the injection of their margins, and the
studentised statistics over sums of moments.
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy import stats

from guardwave.analysis.frames import Flags, Floats, Outcomes
from guardwave.analysis.inference.covariate import Adjustment
from guardwave.analysis.inference.random_sets import Sets, sums_over
from guardwave.reducer.vocabulary import Metric

# The search for a bound ends here; a larger ratio has no meaning.
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
        """The most harm that is possible, or None where it has no limit."""
        ...

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return set - rest, studentised, for the observed set and each random one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ThinnedRate:
    """A rate whose margin, a fraction, adds or removes harm of the reference by chance."""

    outcomes: Outcomes
    uniforms: Floats
    adjustment: Adjustment | None

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        return self.outcomes.is_treated

    @property
    def limits(self) -> tuple[float, float]:
        """Margins from no harm in the reference to every trial harmful."""
        is_reference = ~self.outcomes.is_treated
        trials = self.outcomes.trials[is_reference]
        rate = float(self.outcomes.harm[is_reference].sum() / trials.sum())
        return -rate, 1.0 - rate

    @property
    def worst(self) -> float | None:
        """The difference if every trial were harmful."""
        return self.limits[1]

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return the statistics with the margin injected."""
        harm = with_rate_margin(self.outcomes, margin, self.uniforms)
        return rate_statistics(harm, self.outcomes.trials, sets, self.adjustment)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledAmount:
    """An amount per prompt whose margin, the log of a ratio, multiplies the reference's.

    Sums are kept by true cohort: those of a scaled reference follow from them, so that one pass
    over the sets serves every margin.
    """

    outcomes: Outcomes
    adjustment: Adjustment | None
    cached: list[tuple[Sets, Floats, Floats]] = field(default_factory=list)

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        return self.outcomes.is_treated

    @property
    def limits(self) -> tuple[float, float]:
        """Logarithms of all ratios with a meaning."""
        return -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO

    @property
    def worst(self) -> float | None:
        """None: an amount per prompt has no limit."""
        return None

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return the statistics with the margin injected."""
        sums, totals = self._sums(sets)
        times = math.exp(margin)
        sizes = (sets.size, sets.owners - sets.size)
        if self.adjustment is None:
            moments = _scaled_ratio(sums, times), _scaled_ratio(totals, times)
            return ratio_statistics(*moments, sizes, is_log=True)
        harm, is_treated = self.outcomes.harm, self.outcomes.is_treated
        scaled = harm[is_treated].sum() + times * harm[~is_treated].sum()
        pooled = float(scaled / self.outcomes.trials.sum())
        moments = _scaled_mean(sums, times, pooled), _scaled_mean(totals, times, pooled)
        return mean_statistics(*moments, sizes)

    def _sums(self, sets: Sets) -> tuple[Floats, Floats]:
        for cached_sets, sums, totals in self.cached:
            if cached_sets is sets:
                return sums, totals
        columns = self._columns()
        sums, totals = sums_over(sets, columns), columns.sum(axis=0, keepdims=True)
        # One entry: refined sets come once, and are too many to keep beside those of the search.
        self.cached[:] = [(sets, sums, totals)]
        return sums, totals

    def _columns(self) -> Floats:
        harm, trials, is_treated = self.outcomes.harm, self.outcomes.trials, self.is_treated
        treated, reference = np.where(is_treated, harm, 0.0), np.where(is_treated, 0.0, harm)
        if self.adjustment is None:
            parts = [treated, reference, treated**2, reference**2]
            parts += [treated * trials, reference * trials, trials, trials**2]
            return np.column_stack(parts)
        # The residual of a + times x b - pooled x c is linear in these three.
        a, b, c = (self.adjustment.residuals(part) for part in (treated, reference, trials))
        return np.column_stack([a, b, c, a * a, b * b, c * c, a * b, a * c, b * c])


def rate_statistics(
    harm: Floats, trials: Floats, sets: Sets, adjustment: Adjustment | None
) -> Floats:
    """Return the statistics of injected harm: of its rates, or of its residuals with CUPED."""
    sizes = (sets.size, sets.owners - sets.size)
    if adjustment is None:
        columns = ratio_columns(harm, trials)
        totals = columns.sum(axis=0, keepdims=True)
        return ratio_statistics(sums_over(sets, columns), totals, sizes, is_log=False)
    rate = harm.sum() / trials.sum()
    columns = mean_columns(adjustment.residuals(harm - rate * trials))
    totals = columns.sum(axis=0, keepdims=True)
    return mean_statistics(sums_over(sets, columns), totals, sizes)


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


def uniforms(owners: tuple[str, ...], metric: Metric, *, wave: int) -> Floats:
    """Return one uniform in (0, 1) per owner, from a hash of wave, owner and metric."""
    prefix = f"guardwave-injection-1\0{wave}\0{metric}".encode()
    person = hashlib.blake2b(prefix, digest_size=hashlib.blake2b.PERSON_SIZE).digest()
    digests = [
        hashlib.blake2b(owner.encode(), digest_size=8, person=person).digest() for owner in owners
    ]
    # 53 bits, shifted by half a step: neither 0 nor 1 can come out.
    whole = np.frombuffer(b"".join(digests), dtype=">u8") >> np.uint64(11)
    return (whole.astype(np.float64) + 0.5) / 2.0**53


def with_rate_margin(outcomes: Outcomes, margin: float, owner_uniforms: Floats) -> Floats:
    """Return every owner's harm after the reference's rate is moved by `margin` (a fraction).

    With R the reference's rate of harm, a positive margin makes each trial without harm harmful
    with probability margin / (1 - R); a negative one keeps each harm with 1 - |margin| / R.
    """
    is_reference = ~outcomes.is_treated
    harm, trials = outcomes.harm[is_reference], outcomes.trials[is_reference]
    rate = float(harm.sum() / trials.sum())
    draws = owner_uniforms[is_reference]
    injected = outcomes.harm.copy()
    if margin > 0.0 and rate < 1.0:
        injected[is_reference] = harm + _binomial(draws, trials - harm, margin / (1.0 - rate))
    elif margin < 0.0 and rate > 0.0:
        injected[is_reference] = _binomial(draws, harm, 1.0 + margin / rate)
    return injected


def with_ratio_margin(outcomes: Outcomes, log_margin: float) -> Floats:
    """Return every owner's amount after those of the reference are times exp(`log_margin`)."""
    return np.where(outcomes.is_treated, outcomes.harm, math.exp(log_margin) * outcomes.harm)


def _binomial(draws: Floats, trials: Floats, probability: float) -> Floats:
    return np.asarray(stats.binom.ppf(draws, trials, min(max(probability, 0.0), 1.0)))


def ratio_columns(harm: Floats, trials: Floats) -> Floats:
    """Return the five moments of each owner whose sums `ratio_statistics` takes."""
    return np.column_stack([harm, trials, harm**2, harm * trials, trials**2])


def ratio_statistics(
    sums: Floats, totals: Floats, sizes: tuple[int, int], *, is_log: bool
) -> Floats:
    """Return (R_set - R_rest) / SE of each set with CR1, or that of the logarithms.

    `sums` has a row of the five moments per set and `totals` are those of all owners; `sizes` are
    the owners in a set and in the rest.
    """
    first, first_variance = _ratio_and_cr1(sums, sizes[0])
    second, second_variance = _ratio_and_cr1(totals - sums, sizes[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        if is_log:
            estimate = np.log(first / second)
            variance = first_variance / first**2 + second_variance / second**2
        else:
            estimate = first - second
            variance = first_variance + second_variance
    return _divided(estimate, variance)


def mean_columns(values: Floats) -> Floats:
    """Return the two moments of each owner whose sums `mean_statistics` takes."""
    return np.column_stack([values, values**2])


def mean_statistics(sums: Floats, totals: Floats, sizes: tuple[int, int]) -> Floats:
    """Return (mean of set - mean of rest) / SE of each set, with Welch's standard error."""
    first, first_variance = _mean_and_variance(sums, sizes[0])
    second, second_variance = _mean_and_variance(totals - sums, sizes[1])
    return _divided(first - second, first_variance + second_variance)


def _divided(estimate: Floats, variance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.where(np.isfinite(estimate), estimate / np.sqrt(variance), estimate)
    # 0 / 0: neither a difference nor a spread.
    return np.where(np.isnan(statistics), 0.0, statistics)


def _ratio_and_cr1(moments: Floats, size: int) -> tuple[Floats, Floats]:
    harm, trials, harm_squared, cross, trials_squared = moments.T
    ratio = harm / trials
    squares = harm_squared - 2.0 * ratio * cross + ratio**2 * trials_squared
    return ratio, np.maximum(squares, 0.0) / trials**2 * _one_less(size)


def _mean_and_variance(moments: Floats, size: int) -> tuple[Floats, Floats]:
    total, squares = moments.T
    spread = np.maximum(squares - total**2 / size, 0.0)
    return total / size, spread / size**2 * _one_less(size)


def _one_less(size: int) -> float:
    # One owner has no residual; all sets have the same size, so any factor would do there.
    return size / (size - 1) if size > 1 else 1.0
