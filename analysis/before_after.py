"""Before and after: each owner's days of the wave against the same weekdays of the week before.

Where nobody is held back this is all that is left to compare. It is blocked by owner and labelled,
and no level is claimed for it: whatever changed with the period looks like an effect of the guard,
or hides one (docs/statistics.md shows how often a common shift does).
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from analysis import margins, sentences
from analysis.cohorts import CohortRatio, Contrast, cohort_ratio
from analysis.evidence import WaveEvidence, days_used
from analysis.frames import COHORT, OWNER, Floats, outcomes
from analysis.report import Figures, Interval, MetricReason, MetricResult, Side
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric, Verdict

METHOD = "paired owner t"
BEFORE = "before"
NOBODY = Side(None, owners=0, trials=0, effective_owners=None, largest_owner_share=None)


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
    if after is None or before is None or after.owners < 2:
        return None
    scales = (1.0, 1.0)
    estimate = after.ratio - before.ratio
    if is_log:
        if min(after.ratio, before.ratio) <= 0.0:
            return None
        scales, estimate = (after.ratio, before.ratio), math.log(after.ratio / before.ratio)
    residuals = after.residuals / scales[0] - before.residuals / scales[1]
    variance = float(np.square(residuals).sum()) * after.owners / (after.owners - 1)
    freedom = min(each.degrees_of_freedom or 1.0 for each in (after, before))
    return Contrast(estimate, math.sqrt(variance), freedom)


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


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """Compares the treated owners of a wave with themselves in the week before it."""

    evidence: WaveEvidence
    policy: GatePolicy
    is_look: bool

    def compare(self, totals: pd.DataFrame, metric: Metric, margin: float) -> MetricResult:
        """Compare one metric over checked owner totals and the evidence's baseline.

        Raises:
            ValueError: for a margin outside (0, 1) or not above 1.
        """
        limit = margins.harm_margin(metric, margin)
        shown = -margin if metric.is_higher_better else margin
        blank = Figures(metric, NOBODY, NOBODY, margin=shown, tested_margin=shown)
        baseline = self.evidence.baseline
        if baseline is None:
            why = "there is no week before the wave to compare with"
            return _without_data(blank, MetricReason.NO_BASELINE, why)
        used = days_used(self.evidence)
        counts = [Counter(day.weekday() for day in days) for days in (used, baseline.days)]
        if self.is_look and counts[0] != counts[1]:
            why = "the days before the wave are not the same weekdays as those of the wave"
            return _without_data(blank, MetricReason.NO_BASELINE, why)
        if metric is Metric.LATENCY_P95:
            why = "latency p95 is not compared before and after"
            return _without_data(blank, MetricReason.NO_DURATIONS, why)
        own = paired_outcomes(totals, baseline.owners, metric, self.evidence.treated)
        after = cohort_ratio(own.harm_after, own.trials_after)
        before = cohort_ratio(own.harm_before, own.trials_before)
        if after is None or before is None:
            why = f"no owner has a prompt for {sentences.label(metric)} both before and after"
            return _without_data(blank, MetricReason.EMPTY_COHORT, why)
        sides = replace(blank, treated=_side(metric, after), reference=_side(metric, before))
        if metric.is_ratio and min(after.ratio, before.ratio) <= 0.0:
            why = f"{sentences.label(metric)} are zero before or after, so there is no ratio"
            return _without_data(sides, MetricReason.ZERO_RATIO, why)
        contrast = paired_contrast(own, is_log=metric.is_ratio)
        return self._judged(sides, (after, before), contrast, limit=limit)

    def _judged(
        self,
        figures: Figures,
        ratios: tuple[CohortRatio, CohortRatio],
        contrast: Contrast | None,
        *,
        limit: float,
    ) -> MetricResult:
        metric, alpha = figures.metric, self.policy.alpha
        figures = _with_contrast(figures, contrast, alpha=alpha)
        cohorts = (str(self.evidence.treated), BEFORE)
        seen = f"before/after, {sentences.seen(figures, cohorts)}"
        if not self.is_look:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return _found(figures, Verdict.UNPROVEN, MetricReason.DWELL, f"{seen}, {tail}")
        lacking = margins.shortfalls(metric, limit, ratios, cohorts=cohorts, policy=self.policy)
        if contrast is None:
            lacking.append("one owner alone")
        if contrast is not None and contrast.upper(alpha) > limit:
            tail = sentences.shown_beyond(figures)
            return _found(figures, Verdict.BEYOND, MetricReason.BEYOND_MARGIN, f"{seen}, {tail}")
        if lacking or contrast is None:
            tail = f"with too little data to decide: {sentences.listed(lacking)}"
            return _found(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, f"{seen}, {tail}")
        upper = contrast.upper(1.0 - alpha)
        figures = replace(figures, bound=margins.native(metric, upper))
        tail = f"{seen}, {sentences.worst(figures)}"
        if upper < limit:
            return _found(figures, Verdict.WITHIN, None, tail)
        return _found(figures, Verdict.UNPROVEN, MetricReason.MARGIN_NOT_EXCLUDED, tail)


def _side(metric: Metric, ratio: CohortRatio) -> Side:
    value = 1.0 - ratio.ratio if metric.is_higher_better else ratio.ratio
    trials = int(ratio.trials)
    return Side(value, ratio.owners, trials, ratio.effective_owners, ratio.largest_owner_share)


def _with_contrast(figures: Figures, contrast: Contrast | None, *, alpha: float) -> Figures:
    metric, after, before = figures.metric, figures.treated.value, figures.reference.value
    if after is None or before is None:
        return figures
    estimate = after / before if metric.is_ratio else after - before
    if contrast is None:
        return replace(figures, estimate=estimate)
    ends = [margins.native(metric, contrast.upper(each)) for each in (alpha, 1.0 - alpha)]
    known = sorted(end for end in ends if end is not None)
    level = round(1.0 - 2.0 * alpha, 12)
    return replace(
        figures,
        estimate=estimate,
        interval=Interval(known[0], known[1], level, METHOD) if len(known) == 2 else None,
        standard_error=contrast.standard_error,
        degrees_of_freedom=contrast.degrees_of_freedom,
    )


def _found(
    figures: Figures, verdict: Verdict, reason: MetricReason | None, said: str
) -> MetricResult:
    return MetricResult(figures, verdict, reason, f"{sentences.LEADS[verdict]}: {said}.")


def _without_data(figures: Figures, reason: MetricReason, why: str) -> MetricResult:
    return _found(figures, Verdict.NO_DATA, reason, why)
