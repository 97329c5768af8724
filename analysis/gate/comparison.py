"""Comparison: one metric of two cohorts, its figures in native units and its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import Baseline, Durations, outcomes_of
from guardwave.analysis.inference import (
    NO_TRIALS,
    ComparisonTerms,
    DrawKey,
    Draws,
    MetricTest,
    NoComparison,
    P95Test,
    margins,
    prepare_p95_test,
    prepare_test,
)
from guardwave.analysis.report import Figures, MetricReason, MetricResult
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Metric, Verdict


@dataclass(frozen=True, slots=True)
class Judge:
    """What all metrics of one evaluation share. `cohorts` are (treated, reference).

    Between declared looks (`is_look_due` false) figures are shown and nothing is judged: verdicts
    on days of anybody's choice would be wrong more often than alpha. `names`, in the order of
    `cohorts`, replace their names in sentences. `missing_reasons` has a sentence for each metric
    that is no data (`explain_missing`).
    """

    cohorts: tuple[Cohort, Cohort]
    key: DrawKey
    policy: GatePolicy
    is_look_due: bool
    names: tuple[str, str] | None = None
    missing_reasons: Mapping[Metric, str] = field(default_factory=dict)
    draws: Draws = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", Draws(self.key))

    @property
    def cohort_names(self) -> tuple[str, str]:
        """The cohorts' names in sentences."""
        return self.cohorts if self.names is None else self.names

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
        Latency is judged on `durations`, which are of the same days as the totals. A `baseline` of
        enough days reduces the noise (`inference.covariate`).

        Raises:
            ValueError: for a margin outside (0, 1) or not above 1.
        """
        limit = 0.0 if margin is None else margins.harm_margin(metric, margin)
        shown = -margin if margin is not None and metric.is_higher_better else margin
        blank = Figures(metric, NO_TRIALS, NO_TRIALS, margin=shown)
        if metric in self.missing_reasons:
            why = self.missing_reasons[metric]
            return self._without_data(NoComparison(blank, MetricReason.MISSING_VALUES, why))
        terms = ComparisonTerms(self.cohort_names, self.policy)
        test: MetricTest | P95Test | NoComparison
        if metric is Metric.LATENCY_P95:
            # The trials of turns are prompts started, so they name every owner that started one.
            owners = outcomes_of(totals, Metric.TURNS, self.cohorts)
            test = prepare_p95_test(blank, owners, durations, baseline=baseline, terms=terms)
        else:
            outcomes = outcomes_of(totals, metric, self.cohorts)
            test = prepare_test(blank, outcomes, baseline, margin=limit, terms=terms)
        if isinstance(test, NoComparison):
            return self._without_data(test)
        figures = test.figures
        if margin is None:
            values = sentences.values(figures, self.cohort_names)
            sentence = f"For information: {values}, {sentences.interval(figures)}."
            return MetricResult(figures, None, None, sentence)
        if not self.is_look_due:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return self._result(figures, Verdict.UNPROVEN, MetricReason.DWELL, tail=tail)
        return self._judge(test)

    def _judge(self, test: MetricTest | P95Test) -> MetricResult:
        """Judge by the test at the margin: beyond, too little data, within, else unproven."""
        alpha = self.policy.alpha
        trial = test.trial(self.draws)
        decision = trial.decide(test.margin, self.policy)
        figures = replace(
            test.figures, p_harm_at_margin=decision.p_harm, permutations=decision.permutations
        )
        is_beyond = decision.p_safe <= alpha
        if test.shortfalls and not is_beyond:
            # No bound is shown here: one inside the margin would contradict the verdict.
            tail = f"with too little data to decide: {sentences.listed(test.shortfalls)}"
            return self._result(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, tail=tail)
        if not test.has_spread and not is_beyond:
            reason, tail = MetricReason.NO_SPREAD, sentences.NO_SPREAD
            return self._result(figures, Verdict.UNPROVEN, reason, tail=tail)
        bound = trial.bound(
            test.margin,
            decision,
            policy=self.policy,
            resolution=test.resolution,
            guess=test.upper,
        )
        # Both must be inside the margin, so the bound of the joint rule is the larger of the two.
        official = None if bound is None or test.upper is None else max(bound, test.upper)
        figures = replace(figures, bound=test.to_native(official))
        if is_beyond:
            reason, tail = MetricReason.BEYOND_MARGIN, sentences.shown_beyond(figures)
            return self._result(figures, Verdict.BEYOND, reason, tail=tail)
        tail = sentences.worst(figures)
        if decision.p_harm <= alpha and test.upper is not None and test.upper < test.margin:
            return self._result(figures, Verdict.WITHIN, None, tail=tail)
        reason = MetricReason.MARGIN_NOT_EXCLUDED
        return self._result(figures, Verdict.UNPROVEN, reason, tail=tail)

    def _result(
        self, figures: Figures, verdict: Verdict, reason: MetricReason | None, *, tail: str
    ) -> MetricResult:
        values = sentences.values(figures, self.cohort_names)
        tails = "; ".join([tail, *sentences.remarks(figures)])
        return MetricResult(
            figures, verdict, reason, f"{sentences.LEADS[verdict]}: {values}, {tails}."
        )

    def _without_data(self, obstacle: NoComparison) -> MetricResult:
        sentence = f"{sentences.LEADS[Verdict.NO_DATA]}: {obstacle.why}."
        verdict = None if obstacle.figures.margin is None else Verdict.NO_DATA
        return MetricResult(obstacle.figures, verdict, obstacle.reason, sentence)
