"""The statistic of a random set: what it has more than the other owners, by its standard error."""

import numpy as np

from analysis.frames import Floats


def ratio_columns(harm: Floats, trials: Floats) -> Floats:
    """Return the five moments of each owner that `of_ratios` needs the sums of."""
    return np.column_stack([harm, trials, harm**2, harm * trials, trials**2])


def of_ratios(sums: Floats, totals: Floats, sizes: tuple[int, int], *, is_log: bool) -> Floats:
    """Return (R_set - R_rest) / SE per set with CR1 (analysis.cohorts), or that of the logarithms.

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
    """Return the two moments of each owner that `of_means` needs the sums of."""
    return np.column_stack([values, values**2])


def of_means(sums: Floats, totals: Floats, sizes: tuple[int, int]) -> Floats:
    """Return (mean of set - mean of rest) / SE per set, with Welch's standard error."""
    first, first_variance = _mean_and_variance(sums, sizes[0])
    second, second_variance = _mean_and_variance(totals - sums, sizes[1])
    return _divided(first - second, first_variance + second_variance)


def _divided(estimate: Floats, variance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = np.where(np.isfinite(estimate), estimate / np.sqrt(variance), estimate)
    # 0 / 0 is no difference seen with no spread seen.
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
    # One owner has no residual; every set has the same size, so the factor may stay at 1 there.
    return size / (size - 1) if size > 1 else 1.0
