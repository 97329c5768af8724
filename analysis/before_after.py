"""Before and after: each owner's days of the wave against the same weekdays of the week before.

Where nobody is held back this is all that is left to compare. It is blocked by owner and labelled,
and no level is claimed for it: whatever changed with the period looks like an effect of the guard,
or hides one (docs/statistics.md shows how often a common shift does).
"""

from collections import Counter
from dataclasses import dataclass, replace

import pandas as pd

from analysis import figures as of
from analysis import margins, sentences
from analysis.baseline import Baseline
from analysis.cohorts import CohortRatio, Contrast, cohort_ratio
from analysis.evidence import WaveEvidence, days_used
from analysis.frames import COHORT, OWNER
from analysis.paired_latency import PairedLatency, pair_durations
from analysis.pairing import Paired, paired_contrast, paired_outcomes
from analysis.report import Figures, Interval, MetricReason, MetricResult
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric, Verdict

METHOD = "paired owner t"
BEFORE = "before"


@dataclass(frozen=True, slots=True)
class _Measured:
    """What one metric showed, on the scale of the test: harm is beyond the limit or below it."""

    figures: Figures
    ratios: tuple[CohortRatio, CohortRatio]
    is_beyond: bool
    is_inside: bool
    bound: float | None


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
        blank = Figures(metric, of.NO_TRIALS, of.NO_TRIALS, margin=shown, tested_margin=shown)
        baseline = self.evidence.baseline
        if baseline is None:
            why = "there is no week before the wave to compare with"
            return _without_data(blank, MetricReason.NO_BASELINE, why)
        used = days_used(self.evidence)
        counts = [Counter(day.weekday() for day in days) for days in (used, baseline.days)]
        if self.is_look and counts[0] != counts[1]:
            why = "the days before the wave are not the same weekdays as those of the wave"
            return _without_data(blank, MetricReason.NO_BASELINE, why)
        measured = (
            self._latency(blank, totals, baseline)
            if metric is Metric.LATENCY_P95
            else self._amounts(blank, totals, baseline, limit=limit)
        )
        if isinstance(measured, MetricResult):
            return measured
        return self._judged(measured, limit=0.0 if metric is Metric.LATENCY_P95 else limit)

    def _amounts(
        self, blank: Figures, totals: pd.DataFrame, baseline: Baseline, *, limit: float
    ) -> _Measured | MetricResult:
        metric, alpha = blank.metric, self.policy.alpha
        own = paired_outcomes(totals, baseline.owners, metric, self.evidence.treated)
        pair = _ratios(own)
        if pair is None:
            why = f"no owner has a prompt for {sentences.label(metric)} both before and after"
            return _without_data(blank, MetricReason.EMPTY_COHORT, why)
        after, before = pair
        figures = replace(blank, treated=of.side(metric, after), reference=of.side(metric, before))
        if metric.is_ratio and min(after.ratio, before.ratio) <= 0.0:
            why = f"{sentences.label(metric)} are zero before or after, so there is no ratio"
            return _without_data(figures, MetricReason.ZERO_RATIO, why)
        contrast = _with_spread(paired_contrast(own, is_log=metric.is_ratio))
        figures = of.with_contrast(figures, contrast, alpha=alpha)
        if figures.interval is not None:
            figures = replace(figures, interval=replace(figures.interval, method=METHOD))
        if contrast is None:
            return _Measured(figures, pair, False, False, None)
        upper = contrast.upper(1.0 - alpha)
        is_beyond = contrast.upper(alpha) > limit
        return _Measured(figures, pair, is_beyond, upper < limit, margins.native(metric, upper))

    def _latency(
        self, blank: Figures, totals: pd.DataFrame, baseline: Baseline
    ) -> _Measured | MetricResult:
        own = totals.loc[totals[COHORT] == self.evidence.treated.value, OWNER]
        found = pair_durations(tuple(own), self.evidence.durations, baseline.durations)
        if isinstance(found, str):
            return _without_data(blank, MetricReason.NO_DURATIONS, found)
        steps = found.test.steps_within(blank.margin or 1.0)
        if steps is None:
            why = "the buckets of latency p95 are too wide for its margin"
            return _without_data(blank, MetricReason.BUCKETS_TOO_WIDE, why)
        return _measured_latency(blank, found, steps, alpha=self.policy.alpha)

    def _judged(self, measured: _Measured, *, limit: float) -> MetricResult:
        figures = measured.figures
        cohorts = (str(self.evidence.treated), BEFORE)
        seen = f"before/after, {sentences.seen(figures, cohorts)}"
        if not self.is_look:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return _found(figures, Verdict.UNPROVEN, MetricReason.DWELL, f"{seen}, {tail}")
        if measured.is_beyond:
            tail = sentences.shown_beyond(figures)
            return _found(figures, Verdict.BEYOND, MetricReason.BEYOND_MARGIN, f"{seen}, {tail}")
        lacking = margins.shortfalls(
            figures.metric, limit, measured.ratios, cohorts=cohorts, policy=self.policy
        )
        if measured.bound is None:
            lacking.append("no spread between owners to make a bound of")
        if lacking:
            tail = f"with too little data to decide: {sentences.listed(lacking)}"
            return _found(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, f"{seen}, {tail}")
        figures = replace(figures, bound=measured.bound)
        tail = f"{seen}, {sentences.worst(figures)}"
        if measured.is_inside:
            return _found(figures, Verdict.WITHIN, None, tail)
        return _found(figures, Verdict.UNPROVEN, MetricReason.MARGIN_NOT_EXCLUDED, tail)


def _measured_latency(
    blank: Figures, found: PairedLatency, steps: int, *, alpha: float
) -> _Measured | MetricResult:
    test, own = found.test, found.shares(steps)
    pair, contrast = _ratios(own), _with_spread(found.contrast(steps))
    edges = test.percentile_edges()
    if pair is None:
        why = "no owner has durations both before and after"
        return _without_data(blank, MetricReason.EMPTY_COHORT, why)
    sides = [
        replace(of.side(blank.metric, ratio), value=edge)
        for ratio, edge in zip(pair, edges, strict=True)
    ]
    low, high = (found.least_excluded(confidence) for confidence in (alpha, 1.0 - alpha))
    figures = replace(
        blank,
        treated=sides[0],
        reference=sides[1],
        estimate=edges[0] / edges[1],
        tested_margin=test.cut(steps).ratio,
        interval=None
        if low is None or high is None
        else Interval(low, high, round(1.0 - 2.0 * alpha, 12), METHOD),
    )
    if contrast is None:
        return _Measured(figures, pair, False, False, None)
    is_beyond, is_inside = contrast.upper(alpha) > 0.0, contrast.upper(1.0 - alpha) < 0.0
    return _Measured(figures, pair, is_beyond, is_inside, high)


def _ratios(own: Paired) -> tuple[CohortRatio, CohortRatio] | None:
    after = cohort_ratio(own.harm_after, own.trials_after)
    before = cohort_ratio(own.harm_before, own.trials_before)
    return None if after is None or before is None else (after, before)


def _with_spread(contrast: Contrast | None) -> Contrast | None:
    # Owners who are all alike have no spread: a bound at the estimate would read as certainty.
    return None if contrast is None or contrast.standard_error <= 0.0 else contrast


def _found(
    figures: Figures, verdict: Verdict, reason: MetricReason | None, said: str
) -> MetricResult:
    return MetricResult(figures, verdict, reason, f"{sentences.LEADS[verdict]}: {said}.")


def _without_data(figures: Figures, reason: MetricReason, why: str) -> MetricResult:
    return _found(figures, Verdict.NO_DATA, reason, why)
