"""One metric of a gate: its figures in native units, and the verdict of the test at the margin."""

import math
from dataclasses import dataclass, replace

import pandas as pd

from analysis import margins, sentences
from analysis.baseline import Baseline
from analysis.cohorts import CohortRatio, Contrast, cohort_ratio, difference, log_ratio
from analysis.frames import Outcomes, outcomes
from analysis.histograms import Durations
from analysis.margins import native
from analysis.report import Figures, Interval, MetricReason, MetricResult, Side
from analysis.rerandomisation import DrawKey, Rerandomisation
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric, Verdict

METHOD = "CR2 t"
# The bound is searched to this part of the standard error, and never finer than 1e-7.
BOUND_RESOLUTION = 0.01
NO_TRIALS = Side(None, owners=0, trials=0, effective_owners=None, largest_owner_share=None)


@dataclass(frozen=True, slots=True)
class Judge:
    """What all metrics of one evaluation share. `cohorts` are (treated, reference).

    Away from a declared look (`is_look` false) figures are shown and nothing is judged:
    a verdict asked for on any day would be wrong more often than alpha says.
    """

    cohorts: tuple[Cohort, Cohort]
    key: DrawKey
    policy: GatePolicy
    is_look: bool

    def compare(
        self,
        totals: pd.DataFrame,
        metric: Metric,
        margin: float | None,
        *,
        durations: Durations | None = None,
        baseline: Baseline | None = None,
    ) -> MetricResult:
        """Compare one metric over checked owner totals; without a margin it is informational.

        `margin` is how much worse it may be: a fraction for rates, a ratio above 1 for amounts.

        Raises:
            ValueError: for a margin outside (0, 1) or not above 1.
        """
        limit = None if margin is None else margins.harm_margin(metric, margin)
        shown = margin
        if margin is not None and metric.is_higher_better:
            shown = -margin
        blank = Figures(metric, NO_TRIALS, NO_TRIALS, margin=shown)
        if metric is Metric.LATENCY_P95:
            why = "latency p95 needs the durations of prompts, and none were given"
            return self._without_data(blank, MetricReason.NO_DURATIONS, why)
        own = outcomes(totals, metric, self.cohorts)
        treated = cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated])
        reference = cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated])
        sides = replace(blank, treated=_side(metric, treated), reference=_side(metric, reference))
        if treated is None or reference is None:
            empty = [
                str(cohort)
                for cohort, ratio in zip(self.cohorts, (treated, reference), strict=True)
                if ratio is None
            ]
            why = f"{sentences.label(metric)} has no prompt from {' or '.join(empty)}"
            return self._without_data(sides, MetricReason.EMPTY_COHORT, why)
        if metric.is_ratio and min(treated.ratio, reference.ratio) <= 0.0:
            which = self.cohorts[1 if reference.ratio <= 0.0 else 0]
            why = f"{sentences.label(metric)} are zero in {which}, so there is no ratio"
            return self._without_data(sides, MetricReason.ZERO_RATIO, why)
        contrast = (log_ratio if metric.is_ratio else difference)(treated, reference)
        figures = _with_contrast(sides, contrast, alpha=self.policy.alpha)
        if limit is None:
            seen = sentences.seen(figures, self.cohorts)
            sentence = f"For information: {seen}, {sentences.interval(figures)}."
            return MetricResult(figures, None, None, sentence)
        if not self.is_look:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return self._found(figures, Verdict.UNPROVEN, MetricReason.DWELL, tail=tail)
        shortfalls = margins.shortfalls(
            metric, limit, (treated, reference), cohorts=self.cohorts, policy=self.policy
        )
        return self._judged(own, figures, contrast, harm_margin=limit, shortfalls=shortfalls)

    def _judged(
        self,
        own: Outcomes,
        figures: Figures,
        contrast: Contrast | None,
        *,
        harm_margin: float,
        shortfalls: list[str],
    ) -> MetricResult:
        """Judge by the test at the margin: beyond, too little data, within, else unproven."""
        metric, alpha = figures.metric, self.policy.alpha
        trial = Rerandomisation.of(own, metric, self.key)
        test = trial.decide(harm_margin, self.policy)
        figures = replace(figures, p_harm_at_margin=test.p_harm, permutations=test.permutations)
        is_beyond = test.p_safe <= alpha
        if shortfalls and not is_beyond:
            # No bound is shown here: one inside the margin would contradict the verdict.
            tail = f"with too little data to decide: {sentences.listed(shortfalls)}"
            return self._found(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, tail=tail)
        spread = 0.0 if contrast is None else contrast.standard_error
        bound = trial.bound(
            harm_margin, test, policy=self.policy, resolution=max(BOUND_RESOLUTION * spread, 1e-7)
        )
        reported = None if contrast is None else contrast.upper(1.0 - alpha)
        # Both must be inside the margin, so the bound of the joint rule is the larger of the two.
        official = None if bound is None or reported is None else max(bound, reported)
        figures = replace(figures, bound=native(metric, official))
        if is_beyond:
            reason, tail = MetricReason.BEYOND_MARGIN, sentences.shown_beyond(figures)
            return self._found(figures, Verdict.BEYOND, reason, tail=tail)
        tail = sentences.worst(figures)
        if test.p_harm <= alpha and reported is not None and reported < harm_margin:
            return self._found(figures, Verdict.WITHIN, None, tail=tail)
        reason = MetricReason.MARGIN_NOT_EXCLUDED
        return self._found(figures, Verdict.UNPROVEN, reason, tail=tail)

    def _found(
        self, figures: Figures, verdict: Verdict, reason: MetricReason | None, *, tail: str
    ) -> MetricResult:
        seen = sentences.seen(figures, self.cohorts)
        return MetricResult(
            figures, verdict, reason, f"{sentences.LEADS[verdict]}: {seen}, {tail}."
        )

    def _without_data(self, figures: Figures, reason: MetricReason, why: str) -> MetricResult:
        sentence = f"{sentences.LEADS[Verdict.NO_DATA]}: {why}."
        verdict = None if figures.margin is None else Verdict.NO_DATA
        return MetricResult(figures, verdict, reason, sentence)


def _side(metric: Metric, ratio: CohortRatio | None) -> Side:
    if ratio is None:
        return NO_TRIALS
    return Side(
        1.0 - ratio.ratio if metric.is_higher_better else ratio.ratio,
        ratio.owners,
        int(ratio.trials),
        ratio.effective_owners,
        ratio.largest_owner_share,
    )


def _with_contrast(figures: Figures, contrast: Contrast | None, *, alpha: float) -> Figures:
    """Add estimate and interval; one owner alone has an estimate and no interval."""
    metric, treated, reference = figures.metric, figures.treated.value, figures.reference.value
    if treated is None or reference is None:
        return figures
    estimate = treated / reference if metric.is_ratio else treated - reference
    if contrast is None:
        return replace(figures, estimate=estimate)
    ends = [native(metric, contrast.upper(confidence)) for confidence in (alpha, 1.0 - alpha)]
    known = sorted(end for end in ends if end is not None and math.isfinite(end))
    level = round(1.0 - 2.0 * alpha, 12)
    return replace(
        figures,
        estimate=estimate,
        interval=Interval(known[0], known[1], level, METHOD) if len(known) == 2 else None,
        standard_error=contrast.standard_error,
        degrees_of_freedom=contrast.degrees_of_freedom,
    )
