"""Ratio of sums of a cohort, its cluster-robust variance, and the contrast of two cohorts.

The owner is the cluster. With S = sum of trials, h = trials / S and e = (harm - R trials) / S, the
closed forms below equal the call-level matrix estimators (working independence of calls):
CR0 = sum e^2, CR1 = CR0 G / (G - 1), CR2 = sum e^2 / (1 - h), CR3 = sum e^2 / (1 - h)^2, after
Bell and McCaffrey (2002) and Pustejovsky and Tipton (2018), and take one pass over the owners.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from analysis.frames import Floats

Correction = Literal["CR0", "CR1", "CR2", "CR3"]

# Less than this part of a trial beside the largest owner is rounding: 1 - h cannot be told from 0.
LEAST_REST = 1e-9
# A standard error that is this small beside its ratio is what rounding leaves of no spread at all.
NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class CohortRatio:
    """Harm per trial of one cohort, with what its variance is made of.

    `leverages` (h) and `residuals` (e) have one entry per owner with a trial.
    """

    ratio: float
    trials: float
    leverages: Floats
    residuals: Floats

    @property
    def owners(self) -> int:
        """Owners with at least one trial."""
        return len(self.leverages)

    @property
    def effective_owners(self) -> float:
        """S^2 / sum of trials^2: as many equal owners would weigh the same."""
        return float(1.0 / np.square(self.leverages).sum())

    @property
    def largest_owner_share(self) -> float:
        """Share of the trials that the largest owner has, 0 to 1."""
        return float(self.leverages.max())

    @property
    def is_one_owner(self) -> bool:
        """Whether one owner has all trials, or all but what a float can tell from all."""
        return self.owners < 2 or self.largest_owner_share > 1.0 - LEAST_REST

    def variance(self, correction: Correction) -> float | None:
        """Return the variance of the ratio, 0 without a spread beyond rounding.

        None where one owner leaves nothing to compare.
        """
        if self.is_one_owner:
            return None
        squares = np.square(self.residuals)
        if math.sqrt(float(squares.sum())) <= NO_SPREAD * abs(self.ratio):
            return 0.0
        match correction:
            case "CR0":
                return float(squares.sum())
            case "CR1":
                return float(squares.sum()) * self.owners / (self.owners - 1)
            case "CR2":
                return float((squares / (1.0 - self.leverages)).sum())
            case "CR3":
                return float((squares / np.square(1.0 - self.leverages)).sum())

    @property
    def degrees_of_freedom(self) -> float | None:
        """Satterthwaite degrees of freedom of CR2 (Bell and McCaffrey); None for one owner."""
        if self.is_one_owner:
            return None
        squares = np.square(self.leverages)
        terms = squares / (1.0 - self.leverages)
        a, b = float(terms.sum()), float(np.square(terms).sum())
        return 1.0 / (float(squares.sum()) + a * a - b)


@dataclass(frozen=True, slots=True)
class Contrast:
    """Treated against reference on one scale: a difference, or the log of a ratio."""

    estimate: float
    standard_error: float
    degrees_of_freedom: float

    def upper(self, confidence: float) -> float:
        """Return the one-sided upper bound; the lower one is `upper(1 - confidence)`."""
        quantile = float(special.stdtrit(self.degrees_of_freedom, confidence))
        return self.estimate + quantile * self.standard_error


def cohort_ratio(harm: Floats, trials: Floats) -> CohortRatio | None:
    """Summarise one cohort from its owners' harm and trials (each > 0); None without owners."""
    if len(trials) == 0:
        return None
    total = float(trials.sum())
    ratio = float(harm.sum()) / total
    return CohortRatio(ratio, total, trials / total, (harm - ratio * trials) / total)


def difference(
    treated: CohortRatio, reference: CohortRatio, correction: Correction = "CR2"
) -> Contrast | None:
    """Contrast the ratios as treated - reference; None where a cohort has a single owner."""
    return _contrast(
        treated.ratio - reference.ratio, (treated, reference), (1.0, 1.0), correction=correction
    )


def log_ratio(
    treated: CohortRatio, reference: CohortRatio, correction: Correction = "CR2"
) -> Contrast | None:
    """Contrast the ratios as log(treated / reference), by the delta method; both must be > 0.

    None where a cohort has a single owner.
    """
    return _contrast(
        math.log(treated.ratio / reference.ratio),
        (treated, reference),
        (treated.ratio, reference.ratio),
        correction=correction,
    )


def _contrast(
    estimate: float,
    cohorts: tuple[CohortRatio, CohortRatio],
    scales: tuple[float, float],
    *,
    correction: Correction,
) -> Contrast | None:
    variance = 0.0
    weight = 0.0
    spread = 0.0
    for cohort, scale in zip(cohorts, scales, strict=True):
        own = cohort.variance(correction)
        own_df = cohort.degrees_of_freedom
        if own is None or own_df is None:
            return None
        variance += own / scale**2
        # Weighted by the working model (1 / trials), not by the estimated variances: a cohort
        # without a single event would otherwise vanish from the degrees of freedom.
        weight += 1.0 / cohort.trials
        spread += 1.0 / cohort.trials**2 / own_df
    return Contrast(estimate, math.sqrt(variance), weight**2 / spread)
