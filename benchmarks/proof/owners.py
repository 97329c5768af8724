"""Owners of the simulation: their sizes, their differences, and their baseline week.

Every owner has a size, an effect on each metric, and a baseline week in which it had nearly the
same effect. The numbers are stated here and nowhere else; docs/coverage.md prints them.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import special, stats

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MEAN_PROMPTS = 28.0
# Squared coefficients of variation of the sizes: 0, 1.26 and 6.15, all with the same mean.
LOGNORMAL_SIGMA = 0.903
PARETO_EXPONENT, PARETO_LEAST, PARETO_MOST = 1.1, 6.132, 1283.2
# Share of an owner effect's variance that the wave has in common with the baseline week.
PERSISTENCE = 0.8
NEW_OWNERS = 0.10
CARRIERS = 0.02

QUANTILES = np.linspace(-6.0, 6.0, 4001)


class Sizes(StrEnum):
    """The distribution of prompts per week over owners."""

    EQUAL = "equal"
    LOGNORMAL = "lognormal"
    ZIPF = "zipf"


class Rate(StrEnum):
    """A rate of harm whose owners differ like a beta distribution: beta-binomial counts."""

    FAILURE = "failure"
    DISRUPTION = "disruption"

    @property
    def mean(self) -> float:
        """Harmful trials of all trials."""
        return {Rate.FAILURE: 0.05, Rate.DISRUPTION: 0.02}[self]

    @property
    def icc(self) -> float:
        """Correlation of two prompts of one owner."""
        return {Rate.FAILURE: 0.15, Rate.DISRUPTION: 0.05}[self]

    @property
    def quantile_table(self) -> Floats:
        """The beta quantiles at the normal `QUANTILES`."""
        precision = 1.0 / self.icc - 1.0
        spread = stats.beta(self.mean * precision, (1.0 - self.mean) * precision)
        return np.asarray(spread.ppf(special.ndtr(QUANTILES)))


class Amount(StrEnum):
    """An amount per prompt whose owners differ by a lognormal factor of mean 1."""

    TOKENS = "tokens"
    TURNS = "turns"
    LATENCY = "latency"

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm of the owner's factor."""
        return {Amount.TOKENS: 0.5, Amount.TURNS: 0.3, Amount.LATENCY: 0.4}[self]


RATE_TABLES = {rate: rate.quantile_table for rate in Rate}


@dataclass(frozen=True, slots=True)
class Week:
    """One week of every owner: prompts started, and its true rate or factor in each metric.

    A baseline week has 0 prompts for an owner that was not there yet.
    """

    prompts: Floats
    rates: dict[Rate, Floats]
    factors: dict[Amount, Floats]


@dataclass(frozen=True, slots=True)
class Owners:
    """A roster of one repetition. The first `treated` are those that the draw chose.

    Owners are exchangeable before the draw, so that the first ones are a random set.
    """

    treated: int
    wave: Week
    baseline: Week
    is_carrier: Flags
    """The owners that carry all the harm where harm is concentrated."""

    @property
    def is_treated(self) -> Flags:
        """One flag per owner."""
        return np.arange(len(self.is_carrier)) < self.treated


def draw_owners(source: np.random.Generator, owners: int, sizes: Sizes, treated: int) -> Owners:
    """Draw a roster with both its weeks."""
    expected = _expected_prompts(source, owners, sizes)
    common = {metric: source.standard_normal(owners) for metric in (*Rate, *Amount)}
    wave, baseline = (
        _week(source, _prompts(source, expected, sizes), common) for _ in ("wave", "baseline")
    )
    is_new = source.random(owners) < NEW_OWNERS
    baseline.prompts[is_new] = 0.0
    return Owners(treated, wave, baseline, source.random(owners) < CARRIERS)


def _expected_prompts(source: np.random.Generator, owners: int, sizes: Sizes) -> Floats:
    match sizes:
        case Sizes.EQUAL:
            return np.full(owners, MEAN_PROMPTS)
        case Sizes.LOGNORMAL:
            middle = np.log(MEAN_PROMPTS) - LOGNORMAL_SIGMA**2 / 2.0
            return source.lognormal(middle, LOGNORMAL_SIGMA, owners)
        case Sizes.ZIPF:
            kept = 1.0 - (PARETO_LEAST / PARETO_MOST) ** PARETO_EXPONENT
            tail = 1.0 - kept * source.random(owners)
            return np.asarray(PARETO_LEAST * tail ** (-1.0 / PARETO_EXPONENT))


def _prompts(source: np.random.Generator, expected: Floats, sizes: Sizes) -> Floats:
    if sizes is Sizes.EQUAL:
        return expected.copy()
    # At least two, so that a cancelled prompt leaves a trial and all metrics have the same owners.
    return np.maximum(2, source.poisson(expected)).astype(np.float64)


def _week(
    source: np.random.Generator, prompts: Floats, common: dict[Rate | Amount, Floats]
) -> Week:
    effects = {
        metric: np.sqrt(PERSISTENCE) * lasting
        + np.sqrt(1.0 - PERSISTENCE) * source.standard_normal(len(prompts))
        for metric, lasting in common.items()
    }
    rates = {rate: np.interp(effects[rate], QUANTILES, RATE_TABLES[rate]) for rate in Rate}
    factors = {
        amount: np.exp(amount.sigma * effects[amount] - amount.sigma**2 / 2.0) for amount in Amount
    }
    return Week(prompts, rates, factors)
