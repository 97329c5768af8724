"""The same owners in two periods: how far apart they are, by the residuals of each owner's pair."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from analysis.cohorts import NO_SPREAD, Contrast, cohort_ratio
from analysis.frames import COHORT, OWNER, Floats, outcomes
from reducer.vocabulary import Cohort, Metric


class Paired(NamedTuple):
    """The same owners in two periods, one entry per owner with a trial in both."""

    harm_after: Floats
    trials_after: Floats
    harm_before: Floats
    trials_before: Floats


def paired_contrast(own: Paired, *, is_log: bool) -> Contrast | None:
    """Contrast after - before over the same owners, by their paired linearised residuals.

    With u = (harm - R trials) / sum of trials in each period, SE^2 = G / (G - 1) sum (u_after -
    u_before)^2; the degrees of freedom are the fewer of both periods (Bell and McCaffrey). For the
    logarithm of the ratio each u is divided by its R. None for one owner, and for a ratio of zero.
    """
    after = cohort_ratio(own.harm_after, own.trials_after)
    before = cohort_ratio(own.harm_before, own.trials_before)
    if after is None or before is None:
        return None
    freedoms = [each.degrees_of_freedom for each in (after, before)]
    known = [freedom for freedom in freedoms if freedom is not None]
    if len(known) < len(freedoms):
        return None
    scales = (1.0, 1.0)
    estimate = after.ratio - before.ratio
    if is_log:
        if min(after.ratio, before.ratio) <= 0.0:
            return None
        scales, estimate = (after.ratio, before.ratio), math.log(after.ratio / before.ratio)
    residuals = after.residuals / scales[0] - before.residuals / scales[1]
    variance = float(np.square(residuals).sum()) * after.owners / (after.owners - 1)
    error = math.sqrt(variance)
    size = max(abs(each.ratio / scale) for each, scale in zip((after, before), scales, strict=True))
    if error <= NO_SPREAD * size:
        return Contrast(0.0 if abs(estimate) <= NO_SPREAD * size else estimate, 0.0, min(known))
    return Contrast(estimate, error, min(known))


def two_sided_p(contrast: Contrast) -> float:
    """Return p of no change; 1 where owners do not differ and nothing changed, else 0."""
    if contrast.standard_error <= 0.0:
        return 1.0 if contrast.estimate == 0.0 else 0.0
    statistic = abs(contrast.estimate) / contrast.standard_error
    return 2.0 * float(special.stdtr(contrast.degrees_of_freedom, -statistic))


def paired_outcomes(
    totals: pd.DataFrame, before: pd.DataFrame, metric: Metric, cohort: Cohort
) -> Paired:
    """Return a metric of one cohort's owners in both periods, from two frames of checked totals."""
    sides = (cohort, cohort)
    own = totals.loc[totals[COHORT] == cohort.value, OWNER]
    earlier = before[before[OWNER].isin(own)].assign(cohort=cohort.value)
    after, prior = outcomes(totals, metric, sides), outcomes(earlier, metric, sides)
    joined = pd.DataFrame({OWNER: after.owners, "harm": after.harm, "trials": after.trials}).merge(
        pd.DataFrame({OWNER: prior.owners, "harm": prior.harm, "trials": prior.trials}),
        on=OWNER,
        suffixes=("_after", "_before"),
    )
    return Paired(*(joined[column].to_numpy(dtype=np.float64) for column in Paired._fields))
