"""Cohorts: the ratio of sums of a cohort, its cluster-robust variance, and contrasts of two ratios.

A contrast compares two cohorts, or the same owners in two periods. The owner is the cluster. With
S = sum of trials, h = trials / S and e = (harm - R trials) / S, the closed forms below equal the
call-level matrix estimators (working independence of calls): CR0 = sum e^2, CR1 = CR0 G / (G - 1),
CR2 = sum e^2 / (1 - h), CR3 = sum e^2 / (1 - h)^2, after Bell and McCaffrey (2002) and Pustejovsky
and Tipton (2018). They take one pass over the owners.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from guardwave.analysis.frames import COHORT, OWNER, Floats, outcomes_of
from guardwave.reducer.vocabulary import Cohort, Metric

Correction = Literal["CR0", "CR1", "CR2", "CR3"]

# A smaller rest beside the largest owner is rounding: 1 - h is then 0 up to the last bits.
LEAST_REST = 1e-9
# A standard error this small beside its ratio is a rounding error of no spread at all.
NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class CohortRatio:
    """Harm per trial of one cohort, with the terms of its variance.

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
        """S^2 / sum of trials^2: the number of equal owners with the same weight."""
        return float(1.0 / np.square(self.leverages).sum())

    @property
    def largest_owner_share(self) -> float:
        """Share of the trials that the largest owner has, 0 to 1."""
        return float(self.leverages.max())

    @property
    def is_one_owner(self) -> bool:
        """Whether one owner has all trials, up to rounding."""
        return self.owners < 2 or self.largest_owner_share > 1.0 - LEAST_REST

    def variance(self, correction: Correction) -> float | None:
        """Return the variance of the ratio, 0 where its spread is rounding; None for one owner."""
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
        of_ratio = cohort.variance(correction)
        freedom = cohort.degrees_of_freedom
        if of_ratio is None or freedom is None:
            return None
        variance += of_ratio / scale**2
        # Weighted by the working model (1 / trials), not by the estimated variances: a cohort
        # without a single event would otherwise vanish from the degrees of freedom.
        weight += 1.0 / cohort.trials
        spread += 1.0 / cohort.trials**2 / freedom
    return Contrast(estimate, math.sqrt(variance), weight**2 / spread)


class Paired(NamedTuple):
    """The same owners in two periods, one entry per owner with a trial in both."""

    harm_after: Floats
    trials_after: Floats
    harm_before: Floats
    trials_before: Floats


def paired_contrast(paired: Paired, *, is_log: bool) -> Contrast | None:
    """Contrast after - before over the same owners, by their paired linearised residuals.

    With u = (harm - R trials) / sum of trials in each period, SE^2 = G / (G - 1) sum (u_after -
    u_before)^2; the degrees of freedom are the fewer of both periods (Bell and McCaffrey). For the
    logarithm of the ratio each u is divided by its R. None for one owner, and for a ratio of zero.
    """
    after = cohort_ratio(paired.harm_after, paired.trials_after)
    before = cohort_ratio(paired.harm_before, paired.trials_before)
    if after is None or before is None:
        return None
    if after.degrees_of_freedom is None or before.degrees_of_freedom is None:
        return None
    freedom = min(after.degrees_of_freedom, before.degrees_of_freedom)
    scales = (1.0, 1.0)
    estimate = after.ratio - before.ratio
    if is_log:
        if min(after.ratio, before.ratio) <= 0.0:
            return None
        scales, estimate = (after.ratio, before.ratio), math.log(after.ratio / before.ratio)
    residuals = after.residuals / scales[0] - before.residuals / scales[1]
    variance = float(np.square(residuals).sum()) * after.owners / (after.owners - 1)
    error = math.sqrt(variance)
    size = max(abs(after.ratio / scales[0]), abs(before.ratio / scales[1]))
    if error <= NO_SPREAD * size:
        return Contrast(0.0 if abs(estimate) <= NO_SPREAD * size else estimate, 0.0, freedom)
    return Contrast(estimate, error, freedom)


def two_sided_p(contrast: Contrast) -> float:
    """Return p of no change; without a spread it is 1 if nothing changed, and else 0."""
    if contrast.standard_error <= 0.0:
        return 1.0 if contrast.estimate == 0.0 else 0.0
    statistic = abs(contrast.estimate) / contrast.standard_error
    return 2.0 * float(special.stdtr(contrast.degrees_of_freedom, -statistic))


def paired_outcomes(
    totals: pd.DataFrame, before: pd.DataFrame, metric: Metric, cohort: Cohort
) -> Paired:
    """Return a metric of one cohort's owners in both periods, from two frames of checked totals."""
    sides = (cohort, cohort)
    owners = totals.loc[totals[COHORT] == cohort.value, OWNER]
    earlier = before[before[OWNER].isin(owners)].assign(cohort=cohort.value)
    after, prior = outcomes_of(totals, metric, sides), outcomes_of(earlier, metric, sides)
    joined = pd.DataFrame({OWNER: after.owners, "harm": after.harm, "trials": after.trials}).merge(
        pd.DataFrame({OWNER: prior.owners, "harm": prior.harm, "trials": prior.trials}),
        on=OWNER,
        suffixes=("_after", "_before"),
    )
    return Paired(*(joined[column].to_numpy(dtype=np.float64) for column in Paired._fields))
