"""One metric of a gate: its figures in native units, and the verdict of the test at the margin."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from analysis import latency_questions, margins, questions, sentences
from analysis.baseline import Baseline
from analysis.figures import NO_TRIALS
from analysis.frames import outcomes
from analysis.histograms import Durations
from analysis.latency_questions import LatencyQuestion
from analysis.questions import Asker, NoAnswer, Question
from analysis.report import Figures, MetricReason, MetricResult
from analysis.rerandomisation import DrawKey, Draws
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric, Verdict


@dataclass(frozen=True, slots=True)
class Judge:
    """What all metrics of one evaluation share. `cohorts` are (treated, reference).

    Away from a declared look (`is_look` false) figures are shown and nothing is judged:
    a verdict asked for on any day would be wrong more often than alpha says. Sentences say `names`,
    in the order of `cohorts`, where somebody calls them otherwise. `untold` says in words why some
    metrics are no data (analysis.untold).
    """

    cohorts: tuple[Cohort, Cohort]
    key: DrawKey
    policy: GatePolicy
    is_look: bool
    names: tuple[str, str] | None = None
    untold: Mapping[Metric, str] = field(default_factory=dict)
    draws: Draws = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", Draws(self.key))

    @property
    def called(self) -> tuple[str, str]:
        """What sentences call the cohorts."""
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
        `durations` are what latency is judged on, of the same days as the totals. A `baseline` of
        enough days is used to take out noise (analysis.cuped).

        Raises:
            ValueError: for a margin outside (0, 1) or not above 1.
        """
        limit = 0.0 if margin is None else margins.harm_margin(metric, margin)
        shown = -margin if margin is not None and metric.is_higher_better else margin
        blank = Figures(metric, NO_TRIALS, NO_TRIALS, margin=shown)
        if metric in self.untold:
            return self._without_data(NoAnswer(blank, MetricReason.UNTOLD, self.untold[metric]))
        asker = Asker(self.called, self.policy)
        asked: Question | LatencyQuestion | NoAnswer
        if metric is Metric.LATENCY_P95:
            # Turns are counted per prompt started, and so name every owner that started one.
            own = outcomes(totals, Metric.TURNS, self.cohorts)
            asked = latency_questions.of_durations(
                blank, own, durations, baseline=baseline, asker=asker
            )
        else:
            own = outcomes(totals, metric, self.cohorts)
            asked = questions.of_totals(blank, own, baseline, margin=limit, asker=asker)
        if isinstance(asked, NoAnswer):
            return self._without_data(asked)
        figures = asked.figures
        if margin is None:
            seen = sentences.seen(figures, self.called)
            sentence = f"For information: {seen}, {sentences.interval(figures)}."
            return MetricResult(figures, None, None, sentence)
        if not self.is_look:
            tail = f"{sentences.interval(figures)}; judged only when the declared days are complete"
            return self._found(figures, Verdict.UNPROVEN, MetricReason.DWELL, tail=tail)
        return self._judged(asked)

    def _judged(self, asked: Question | LatencyQuestion) -> MetricResult:
        """Judge by the test at the margin: beyond, too little data, within, else unproven."""
        alpha = self.policy.alpha
        trial = asked.trial(self.draws)
        test = trial.decide(asked.margin, self.policy)
        figures = replace(
            asked.figures, p_harm_at_margin=test.p_harm, permutations=test.permutations
        )
        is_beyond = test.p_safe <= alpha
        if asked.shortfalls and not is_beyond:
            # No bound is shown here: one inside the margin would contradict the verdict.
            tail = f"with too little data to decide: {sentences.listed(asked.shortfalls)}"
            return self._found(figures, Verdict.UNPROVEN, MetricReason.MINIMUM_DATA, tail=tail)
        if not asked.has_spread and not is_beyond:
            reason, tail = MetricReason.NO_SPREAD, sentences.NO_SPREAD
            return self._found(figures, Verdict.UNPROVEN, reason, tail=tail)
        bound = trial.bound(
            asked.margin,
            test,
            policy=self.policy,
            resolution=asked.resolution,
            guess=asked.upper,
        )
        # Both must be inside the margin, so the bound of the joint rule is the larger of the two.
        official = None if bound is None or asked.upper is None else max(bound, asked.upper)
        figures = replace(figures, bound=asked.told(official))
        if is_beyond:
            reason, tail = MetricReason.BEYOND_MARGIN, sentences.shown_beyond(figures)
            return self._found(figures, Verdict.BEYOND, reason, tail=tail)
        tail = sentences.worst(figures)
        if test.p_harm <= alpha and asked.upper is not None and asked.upper < asked.margin:
            return self._found(figures, Verdict.WITHIN, None, tail=tail)
        reason = MetricReason.MARGIN_NOT_EXCLUDED
        return self._found(figures, Verdict.UNPROVEN, reason, tail=tail)

    def _found(
        self, figures: Figures, verdict: Verdict, reason: MetricReason | None, *, tail: str
    ) -> MetricResult:
        seen = sentences.seen(figures, self.called)
        said = "; ".join([tail, *sentences.remarks(figures)])
        return MetricResult(
            figures, verdict, reason, f"{sentences.LEADS[verdict]}: {seen}, {said}."
        )

    def _without_data(self, asked: NoAnswer) -> MetricResult:
        sentence = f"{sentences.LEADS[Verdict.NO_DATA]}: {asked.why}."
        verdict = None if asked.figures.margin is None else Verdict.NO_DATA
        return MetricResult(asked.figures, verdict, asked.reason, sentence)
