"""Covariate: the days before the wave, by which CUPED reduces the noise of the test.

After Deng, Xu, Kohavi and Walker (2013). The residual harm u = Y - R N of every owner is regressed
on its own baseline, [1, Y0 - R0 N0, 1{N0 = 0}, N0], over all owners of both cohorts, and the test
uses the residuals of this regression. The regressors may only hold what was known before the wave:
then they do not depend on the cohort that an owner is drawn into, and the level of the test holds.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames import (
    COMPARABLE,
    LEAST_DAYS,
    OWNER,
    Baseline,
    Floats,
    Outcomes,
    harm_and_trials,
)
from guardwave.reducer.vocabulary import Metric

# A regressor is left out when less than this part of it is independent of the others.
COLLINEAR = 1e-9

Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """Harm and trials of each owner before the wave, 0 of both for an owner that counts as new."""

    harm: Floats
    trials: Floats
    days: int

    @property
    def owners_with_baseline(self) -> int:
        """Owners with a comparable baseline."""
        return int((self.trials > 0).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Adjustment:
    """An orthonormal basis of the regressors, one row each, one column per owner."""

    basis: Floats

    @classmethod
    def of(cls, covariates: Covariates) -> "Adjustment":
        """Prepare the regression; a regressor that depends on the others is left out."""
        harm, trials = covariates.harm, covariates.trials
        # Without a baseline prompt both sums are 0, and so is every residual.
        rate = harm.sum() / max(trials.sum(), 1.0)
        return cls.of_trials(trials).with_regressors(harm - rate * trials)

    @classmethod
    def of_trials(cls, trials: Floats) -> "Adjustment":
        """Prepare the regressors that depend on the trials of the baseline alone."""
        return cls(np.empty((0, len(trials)))).with_regressors(
            np.ones(len(trials)), trials == 0, trials
        )

    def with_regressors(self, *regressors: npt.NDArray[np.generic]) -> "Adjustment":
        """Return the basis with more regressors (Gram-Schmidt)."""
        basis = list(self.basis)
        for regressor in regressors:
            column = np.asarray(regressor, dtype=np.float64)
            length = _length(column)
            # Twice, as the first pass leaves rounding errors that matter to nearly collinear ones.
            for _ in range(2):
                for vector in basis:
                    column = column - (vector * column).sum() * vector
            left = _length(column)
            if left > COLLINEAR * length:
                basis.append(column / left)
        return Adjustment(np.stack(basis))

    def residuals(self, values: Floats) -> Floats:
        """Return the part of the owners' values that the regressors do not explain."""
        left = values
        # By sums and not by a matrix product, whose last bits depend on the number of threads.
        for column in self.basis:
            left = left - (column * values).sum() * column
        return left


def usable_baseline(baseline: Baseline | None, metric: Metric) -> Baseline | str:
    """Return the baseline if it is long enough and reports the metric, or in words why not."""
    if baseline is None:
        return "no comparable days before the wave are known"
    if not baseline.is_long_enough:
        return f"only {len(baseline.days)} of {LEAST_DAYS} complete days before the wave are known"
    return baseline.missing_reasons.get(metric, baseline)


def covariates_of(
    baseline: Baseline | None, metric: Metric, owners: tuple[str, ...]
) -> Covariates | str:
    """Return the owners' baseline of a metric of owner totals, or in words why there is none."""
    usable = usable_baseline(baseline, metric)
    if isinstance(usable, str):
        return usable
    harm, trials = harm_and_trials(usable.owners, metric)
    places = comparable_places(usable, owners)
    return covariates(usable, counts_at(harm, places), counts_at(trials, places))


def comparable_places(baseline: Baseline, owners: tuple[str, ...]) -> Places:
    """Return each owner's row in the baseline, -1 where it has none or an incomparable one."""
    places = pd.Index(baseline.owners[OWNER].to_numpy(dtype=object)).get_indexer(pd.Index(owners))
    is_comparable = baseline.owners[COMPARABLE].to_numpy(dtype=np.bool_)
    is_known = counts_at(is_comparable.astype(np.float64), places) > 0
    return np.where(is_known, places, -1)


def counts_at(counts: Floats, places: Places) -> Floats:
    """Return the counts at some places, and 0 at the place -1."""
    return np.where(places >= 0, counts[places], 0.0) if len(counts) else np.zeros(len(places))


def covariates(baseline: Baseline, harm: Floats, trials: Floats) -> Covariates | str:
    """Return the covariates, or in words that no owner has any."""
    by_owner = Covariates(harm, trials, len(baseline.days))
    if by_owner.owners_with_baseline == 0:
        return "no owner was there in a comparable mode before the wave"
    return by_owner


def adjusted(outcomes: Outcomes, adjustment: Adjustment) -> Outcomes:
    """Return the owners' harm without the part that their baseline predicts; the ratio stays."""
    harm, trials = outcomes.harm, outcomes.trials
    residual = harm - harm.sum() / trials.sum() * trials
    return outcomes._replace(harm=harm - residual + adjustment.residuals(residual))


def _length(column: Floats) -> float:
    return float(np.sqrt(np.square(column).sum()))
