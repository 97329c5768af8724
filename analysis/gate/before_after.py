"""Before/after: the comparison of each owner with its own days before the wave.

It is for a wave that holds nobody back. It is blocked by owner, labelled, and claims no level:
whatever changed with the period looks like an effect of the guard, or hides one. How often a common
shift does so is in docs/statistics.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import (
    COHORT,
    LEAST_WEEKDAYS,
    OWNER,
    Baseline,
    Durations,
    WaveEvidence,
    checked_totals,
    days_used,
    explain_missing,
    matched_days,
)
from guardwave.analysis.inference import (
    NO_TRIALS,
    CohortRatio,
    Paired,
    PairedLatency,
    bound_at,
    cohort_ratio,
    has_spread,
    interval_at,
    is_at_least,
    level_of,
    margins,
    pair_durations,
    paired_contrast,
    paired_outcomes,
    side_of,
    with_contrast,
)
from guardwave.analysis.report import Figures, MetricReason, MetricResult
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric, Verdict

METHOD = "paired owner t"
BEFORE = "before"


@dataclass(frozen=True, slots=True)
class _Measurement:
    """One metric with its bounds: `is_beyond` and `is_inside` compare them with the limit."""

    figures: Figures
    ratios: tuple[CohortRatio, CohortRatio]
    has_spread: bool
    is_beyond: bool = False
    is_inside: bool = False
    bound: float | None = None


class _Periods(NamedTuple):
    """Both periods of the comparison; `label` names it in a sentence."""

    totals: pd.DataFrame
    durations: Durations | None
    baseline: Baseline
    label: str
    missing_reasons: Mapping[Metric, str]


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """Compares the treated owners of a wave with themselves in the week before it."""

    evidence: WaveEvidence
    policy: GatePolicy
    is_look_due: bool

    def compare(self, totals: pd.DataFrame, metric: Metric, margin: float) -> MetricResult:
        """Compare one metric over checked owner totals and the evidence's baseline.

        Raises:
            ValueError: for a margin outside (0, 1) or not above 1.
        """
        limit = margins.harm_margin(metric, margin)
        shown = -margin if metric.is_higher_better else margin
        blank = Figures(metric, NO_TRIALS, NO_TRIALS, margin=shown, tested_margin=shown)
        periods = self._periods(totals)
        if isinstance(periods, str):
            return _without_data(blank, MetricReason.NO_BASELINE, periods)
        missing = periods.missing_reasons.get(metric)
        missing = missing or periods.baseline.missing_reasons.get(metric)
        if missing is not None:
            return _without_data(blank, MetricReason.MISSING_VALUES, missing)
        measurement = (
            self._latency(blank, periods)
            if metric is Metric.LATENCY_P95
            else self._amounts(blank, periods, limit=limit)
        )
        if isinstance(measurement, MetricResult):
            return measurement
        limit = 0.0 if metric is Metric.LATENCY_P95 else limit
        return self._judge(measurement, periods.label, limit=limit)

    def _periods(self, totals: pd.DataFrame) -> _Periods | str:
        """Return both periods on days of the same weekdays, or in words why there are none."""
        baseline, used = self.evidence.baseline, days_used(self.evidence)
        if baseline is None:
            return "there is no week before the wave to compare with"
        missing_reasons = explain_missing(self.evidence.missing)
        whole = _Periods(totals, self.evidence.durations, baseline, "before/after", missing_reasons)
        if not self.is_look_due:
            return whole
        days = matched_days(used, baseline.days)
        if days is None:
            return (
                f"the days before the wave and those of the wave have fewer than {LEAST_WEEKDAYS} "
                "weekdays in common"
            )
        if days == (tuple(used), tuple(baseline.days)):
            return whole
        matched = self.evidence.matched
        if matched is None or matched.days != days:
            return (
                "the days before the wave are not the same weekdays as those of the wave, and the "
                "evidence was not given by day"
            )
        label = (
            f"before/after on {len(days.after)} of {len(used)} days and {len(days.before)} of "
            f"{len(baseline.days)} before, each of {days.weekdays} weekdays in one proportion"
        )
        totals = checked_totals(matched.owners)
        return _Periods(totals, matched.durations, matched.baseline, label, matched.missing_reasons)

    def _amounts(
        self, blank: Figures, periods: _Periods, *, limit: float
    ) -> _Measurement | MetricResult:
        metric, alpha = blank.metric, self.policy.alpha
        earlier = periods.baseline.owners
        outcomes = paired_outcomes(periods.totals, earlier, metric, self.evidence.treated)
        pair = _ratios(outcomes)
        if pair is None:
            why = f"no owner has a prompt for {sentences.label(metric)} both before and after"
            return _without_data(blank, MetricReason.EMPTY_COHORT, why)
        after, before = pair
        figures = replace(blank, treated=side_of(metric, after), reference=side_of(metric, before))
        if metric.is_ratio and min(after.ratio, before.ratio) <= 0.0:
            why = f"{sentences.label(metric)} are zero before or after, so there is no ratio"
            return _without_data(figures, MetricReason.ZERO_RATIO, why)
        contrast = paired_contrast(outcomes, is_log=metric.is_ratio)
        figures = with_contrast(figures, contrast, alpha=alpha)
        if figures.interval is not None:
            figures = replace(figures, interval=replace(figures.interval, method=METHOD))
        if not has_spread(contrast):
            return _Measurement(figures, pair, has_spread=False)
        upper = contrast.upper(1.0 - alpha)
        is_beyond, bound = contrast.upper(alpha) > limit, margins.native(metric, upper)
        is_inside = upper < limit and bound is not None
        return _Measurement(figures, pair, True, is_beyond, is_inside, bound)

    def _latency(self, blank: Figures, periods: _Periods) -> _Measurement | MetricResult:
        totals = periods.totals
        owners = totals.loc[totals[COHORT] == self.evidence.treated.value, OWNER]
        paired = pair_durations(tuple(owners), periods.durations, periods.baseline.durations)
        if isinstance(paired, str):
            return _without_data(blank, MetricReason.NO_DURATIONS, paired)
        steps = paired.test.steps_within(blank.margin or 1.0)
        if steps is None:
            why = "the buckets of latency p95 are too wide for its margin"
            return _without_data(blank, MetricReason.BUCKETS_TOO_WIDE, why)
        return _measure_latency(blank, paired, steps, alpha=self.policy.alpha)

    def _judge(self, measurement: _Measurement, label: str, *, limit: float) -> MetricResult:
        figures = measurement.figures
        cohorts = (str(self.evidence.treated), BEFORE)
        values = f"{label}, {sentences.values(figures, cohorts)}"
        if not self.is_look_due:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return _result(figures, Verdict.UNPROVEN, MetricReason.DWELL, f"{values}, {tail}")
        if measurement.is_beyond:
            tail = sentences.shown_beyond(figures)
            return _result(figures, Verdict.BEYOND, MetricReason.BEYOND_MARGIN, f"{values}, {tail}")
        shortages = margins.shortfalls(
            figures.metric, limit, measurement.ratios, cohorts=cohorts, policy=self.policy
        )
        if shortages:
            tail = f"with too little data to decide: {sentences.listed(shortages)}"
            reason = MetricReason.MINIMUM_DATA
            return _result(figures, Verdict.UNPROVEN, reason, f"{values}, {tail}")
        if not measurement.has_spread:
            sentence = f"{values}, {sentences.NO_SPREAD}"
            return _result(figures, Verdict.UNPROVEN, MetricReason.NO_SPREAD, sentence)
        figures = replace(figures, bound=measurement.bound)
        sentence = f"{values}, {sentences.worst(figures)}"
        if measurement.is_inside:
            return _result(figures, Verdict.WITHIN, None, sentence)
        return _result(figures, Verdict.UNPROVEN, MetricReason.MARGIN_NOT_EXCLUDED, sentence)


def _measure_latency(
    blank: Figures, paired: PairedLatency, steps: int, *, alpha: float
) -> _Measurement | MetricResult:
    test, pair = paired.test, _ratios(paired.shares(steps))
    edges = test.percentile_edges()
    if pair is None:
        why = "no owner has durations both before and after"
        return _without_data(blank, MetricReason.EMPTY_COHORT, why)
    if min(edges) <= 0.0 or math.isinf(max(edges)):
        why = "the bucket with latency p95 has no upper edge that is a number of ms above 0"
        return _without_data(blank, MetricReason.BUCKETS_TOO_WIDE, why)
    sides = [
        replace(side_of(blank.metric, ratio), value=edge)
        for ratio, edge in zip(pair, edges, strict=True)
    ]
    figures = replace(
        blank,
        treated=sides[0],
        reference=sides[1],
        estimate=edges[0] / edges[1],
        tested_margin=test.cut(steps).ratio,
    )
    contrast = paired.contrast(steps)
    if not has_spread(contrast):
        return _Measurement(figures, pair, has_spread=False)
    low, high = (paired.least_excluded(confidence) for confidence in (alpha, 1.0 - alpha))
    interval = interval_at(
        test, (low, high), steps, figures=figures, level=level_of(alpha), method=METHOD
    )
    if is_at_least(figures.estimate, figures.margin) and high is not None:
        high = max(high, steps + 1)
    return _Measurement(
        replace(figures, interval=interval),
        pair,
        has_spread=True,
        is_beyond=contrast.upper(alpha) > 0.0,
        is_inside=high is not None and high <= steps,
        bound=bound_at(test, high, steps, figures),
    )


def _ratios(paired: Paired) -> tuple[CohortRatio, CohortRatio] | None:
    after = cohort_ratio(paired.harm_after, paired.trials_after)
    before = cohort_ratio(paired.harm_before, paired.trials_before)
    return None if after is None or before is None else (after, before)


def _result(
    figures: Figures, verdict: Verdict, reason: MetricReason | None, sentence: str
) -> MetricResult:
    return MetricResult(figures, verdict, reason, f"{sentences.LEADS[verdict]}: {sentence}.")


def _without_data(figures: Figures, reason: MetricReason, why: str) -> MetricResult:
    return _result(figures, Verdict.NO_DATA, reason, why)
