"""Before and after: each owner's days of the wave against the same weekdays before it.

Where nobody is held back this is all that is left to compare. It is blocked by owner and labelled,
and no level is claimed for it: whatever changed with the period looks like an effect of the guard,
or hides one (docs/statistics.md shows how often a common shift does).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from analysis import figures as of
from analysis import margins, sentences
from analysis.baseline import Baseline
from analysis.cohorts import CohortRatio, cohort_ratio
from analysis.evidence import WaveEvidence, days_used
from analysis.frames import COHORT, OWNER, checked_totals
from analysis.histograms import Durations
from analysis.latency_bounds import bound_at, interval_at, is_at_least
from analysis.paired_latency import PairedLatency, pair_durations
from analysis.pairing import Paired, paired_contrast, paired_outcomes
from analysis.questions import has_spread
from analysis.report import Figures, MetricReason, MetricResult
from analysis.untold import why_untold
from analysis.weekdays import LEAST_WEEKDAYS, matched_days
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric, Verdict

METHOD = "paired owner t"
BEFORE = "before"


@dataclass(frozen=True, slots=True)
class _Measured:
    """What one metric showed, on the scale of the test: harm is beyond the limit or below it."""

    figures: Figures
    ratios: tuple[CohortRatio, CohortRatio]
    has_spread: bool
    is_beyond: bool = False
    is_inside: bool = False
    bound: float | None = None


class _Compared(NamedTuple):
    """Both sides of the comparison, and what its sentence calls it."""

    totals: pd.DataFrame
    durations: Durations | None
    baseline: Baseline
    told: str
    untold: Mapping[Metric, str]


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
        compared = self._compared(totals)
        if isinstance(compared, str):
            return _without_data(blank, MetricReason.NO_BASELINE, compared)
        untold = compared.untold.get(metric) or compared.baseline.untold.get(metric)
        if untold is not None:
            return _without_data(blank, MetricReason.UNTOLD, untold)
        measured = (
            self._latency(blank, compared)
            if metric is Metric.LATENCY_P95
            else self._amounts(blank, compared, limit=limit)
        )
        if isinstance(measured, MetricResult):
            return measured
        zero = 0.0 if metric is Metric.LATENCY_P95 else limit
        return self._judged(measured, compared.told, limit=zero)

    def _compared(self, totals: pd.DataFrame) -> _Compared | str:
        """Return both sides on days of the same weekdays, or in words why there are none."""
        baseline, used = self.evidence.baseline, days_used(self.evidence)
        if baseline is None:
            return "there is no week before the wave to compare with"
        own = why_untold(self.evidence.untold)
        everything = _Compared(totals, self.evidence.durations, baseline, "before/after", own)
        if not self.is_look:
            return everything
        days = matched_days(used, baseline.days)
        if days is None:
            return (
                f"the days before the wave and those of the wave have fewer than {LEAST_WEEKDAYS} "
                "weekdays in common"
            )
        if days == (tuple(used), tuple(baseline.days)):
            return everything
        matched = self.evidence.matched
        if matched is None or matched.days != days:
            return (
                "the days before the wave are not the same weekdays as those of the wave, and the "
                "evidence was not given by day"
            )
        told = (
            f"before/after on {len(days.after)} of {len(used)} days and {len(days.before)} of "
            f"{len(baseline.days)} before, each of {days.weekdays} weekdays in one proportion"
        )
        totals = checked_totals(matched.owners)
        return _Compared(totals, matched.durations, matched.baseline, told, matched.untold)

    def _amounts(
        self, blank: Figures, compared: _Compared, *, limit: float
    ) -> _Measured | MetricResult:
        metric, alpha = blank.metric, self.policy.alpha
        earlier = compared.baseline.owners
        own = paired_outcomes(compared.totals, earlier, metric, self.evidence.treated)
        pair = _ratios(own)
        if pair is None:
            why = f"no owner has a prompt for {sentences.label(metric)} both before and after"
            return _without_data(blank, MetricReason.EMPTY_COHORT, why)
        after, before = pair
        figures = replace(blank, treated=of.side(metric, after), reference=of.side(metric, before))
        if metric.is_ratio and min(after.ratio, before.ratio) <= 0.0:
            why = f"{sentences.label(metric)} are zero before or after, so there is no ratio"
            return _without_data(figures, MetricReason.ZERO_RATIO, why)
        contrast = paired_contrast(own, is_log=metric.is_ratio)
        figures = of.with_contrast(figures, contrast, alpha=alpha)
        if figures.interval is not None:
            figures = replace(figures, interval=replace(figures.interval, method=METHOD))
        if not has_spread(contrast):
            return _Measured(figures, pair, has_spread=False)
        upper = contrast.upper(1.0 - alpha)
        is_beyond, bound = contrast.upper(alpha) > limit, margins.native(metric, upper)
        return _Measured(figures, pair, True, is_beyond, upper < limit and bound is not None, bound)

    def _latency(self, blank: Figures, compared: _Compared) -> _Measured | MetricResult:
        totals = compared.totals
        own = totals.loc[totals[COHORT] == self.evidence.treated.value, OWNER]
        found = pair_durations(tuple(own), compared.durations, compared.baseline.durations)
        if isinstance(found, str):
            return _without_data(blank, MetricReason.NO_DURATIONS, found)
        steps = found.test.steps_within(blank.margin or 1.0)
        if steps is None:
            why = "the buckets of latency p95 are too wide for its margin"
            return _without_data(blank, MetricReason.BUCKETS_TOO_WIDE, why)
        return _measured_latency(blank, found, steps, alpha=self.policy.alpha)

    def _judged(self, measured: _Measured, told: str, *, limit: float) -> MetricResult:
        figures = measured.figures
        cohorts = (str(self.evidence.treated), BEFORE)
        seen = f"{told}, {sentences.seen(figures, cohorts)}"
        if not self.is_look:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return _found(figures, Verdict.UNPROVEN, MetricReason.DWELL, f"{seen}, {tail}")
        if measured.is_beyond:
            tail = sentences.shown_beyond(figures)
            return _found(figures, Verdict.BEYOND, MetricReason.BEYOND_MARGIN, f"{seen}, {tail}")
        lacking = margins.shortfalls(
            figures.metric, limit, measured.ratios, cohorts=cohorts, policy=self.policy
        )
        if lacking:
            tail = f"with too little data to decide: {sentences.listed(lacking)}"
            return _found(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, f"{seen}, {tail}")
        if not measured.has_spread:
            tail = f"{seen}, {sentences.NO_SPREAD}"
            return _found(figures, Verdict.UNPROVEN, MetricReason.NO_SPREAD, tail)
        figures = replace(figures, bound=measured.bound)
        tail = f"{seen}, {sentences.worst(figures)}"
        if measured.is_inside:
            return _found(figures, Verdict.WITHIN, None, tail)
        return _found(figures, Verdict.UNPROVEN, MetricReason.MARGIN_NOT_EXCLUDED, tail)


def _measured_latency(
    blank: Figures, found: PairedLatency, steps: int, *, alpha: float
) -> _Measured | MetricResult:
    test, pair = found.test, _ratios(found.shares(steps))
    edges = test.percentile_edges()
    if pair is None:
        why = "no owner has durations both before and after"
        return _without_data(blank, MetricReason.EMPTY_COHORT, why)
    if min(edges) <= 0.0 or math.isinf(max(edges)):
        why = "the bucket with latency p95 has no upper edge that is a number of ms above 0"
        return _without_data(blank, MetricReason.BUCKETS_TOO_WIDE, why)
    sides = [
        replace(of.side(blank.metric, ratio), value=edge)
        for ratio, edge in zip(pair, edges, strict=True)
    ]
    figures = replace(
        blank,
        treated=sides[0],
        reference=sides[1],
        estimate=edges[0] / edges[1],
        tested_margin=test.cut(steps).ratio,
    )
    contrast = found.contrast(steps)
    if not has_spread(contrast):
        return _Measured(figures, pair, has_spread=False)
    low, high = (found.least_excluded(confidence) for confidence in (alpha, 1.0 - alpha))
    interval = interval_at(
        test, (low, high), steps, figures=figures, level=of.level_of(alpha), method=METHOD
    )
    if is_at_least(figures.estimate, figures.margin) and high is not None:
        high = max(high, steps + 1)
    return _Measured(
        replace(figures, interval=interval),
        pair,
        has_spread=True,
        is_beyond=contrast.upper(alpha) > 0.0,
        is_inside=high is not None and high <= steps,
        bound=bound_at(test, high, steps, figures),
    )


def _ratios(own: Paired) -> tuple[CohortRatio, CohortRatio] | None:
    after = cohort_ratio(own.harm_after, own.trials_after)
    before = cohort_ratio(own.harm_before, own.trials_before)
    return None if after is None or before is None else (after, before)


def _found(
    figures: Figures, verdict: Verdict, reason: MetricReason | None, said: str
) -> MetricResult:
    return MetricResult(figures, verdict, reason, f"{sentences.LEADS[verdict]}: {said}.")


def _without_data(figures: Figures, reason: MetricReason, why: str) -> MetricResult:
    return _found(figures, Verdict.NO_DATA, reason, why)
