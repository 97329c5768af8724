"""What a metric asks of the decision test: figures, margin, and the bound it must agree with."""

from dataclasses import dataclass, replace
from typing import TypeGuard

from analysis import figures as of
from analysis import margins, sentences
from analysis.baseline import Baseline
from analysis.cohorts import CohortRatio, Contrast, cohort_ratio
from analysis.cuped import Adjustment, Covariates, adjusted, covariates_of
from analysis.frames import Outcomes
from analysis.report import Figures, MetricReason
from analysis.rerandomisation import Draws, Rerandomisation
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric

# The bound is searched to this part of the standard error, or of the margin where that is more.
OF_STANDARD_ERROR = 0.01
OF_MARGIN = 0.001
NOTHING_LEFT = "with the days before the wave taken out, owners have no spread to compare by"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: what the cohorts are called (treated, reference), and the policy to judge by."""

    cohorts: tuple[str, str]
    policy: GatePolicy

    def without(self, pair: tuple[CohortRatio | None, CohortRatio | None]) -> str:
        """Name the cohorts that have no owner."""
        named = zip(self.cohorts, pair, strict=True)
        return " or ".join(str(cohort) for cohort, ratio in named if ratio is None)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why a metric cannot be compared."""

    figures: Figures
    reason: MetricReason
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A metric ready for the test; `upper` is the CR2 bound, on the scale of the test.

    `margin` is 0 for a metric without one, of which only the figures are shown. Owners who are all
    alike have no spread, and then there is no bound that anything can be judged by.
    """

    figures: Figures
    outcomes: Outcomes
    adjustment: Adjustment | None
    margin: float
    resolution: float
    upper: float | None
    has_spread: bool
    shortfalls: tuple[str, ...]

    def trial(self, draws: Draws) -> Rerandomisation:
        """Return the test of this metric."""
        metric = self.figures.metric
        return Rerandomisation.of(
            self.outcomes, metric, draws.key, adjustment=self.adjustment, draws=draws
        )

    def told(self, harm: float | None) -> float | None:
        """Return a bound on the scale of the test in native units."""
        return margins.native(self.figures.metric, harm)


def of_totals(
    blank: Figures, own: Outcomes, baseline: Baseline | None, *, margin: float, asker: Asker
) -> Question | NoAnswer:
    """Ask about a metric of owner totals; `margin` is on the scale of the test."""
    metric, alpha = blank.metric, asker.policy.alpha
    treated, reference = ratios(own)
    figures = replace(blank, treated=of.side(metric, treated), reference=of.side(metric, reference))
    if treated is None or reference is None:
        why = f"{sentences.label(metric)} has no prompt from {asker.without((treated, reference))}"
        return NoAnswer(figures, MetricReason.EMPTY_COHORT, why)
    if metric.is_ratio and min(treated.ratio, reference.ratio) <= 0.0:
        which = asker.cohorts[1 if reference.ratio <= 0.0 else 0]
        why = f"{sentences.label(metric)} are zero in {which}, so there is no ratio"
        return NoAnswer(figures, MetricReason.ZERO_RATIO, why)
    pair = (treated, reference)
    contrast = of.contrast_of(metric, pair)
    figures = of.with_contrast(figures, contrast, alpha=alpha)
    figures = replace(figures, standard_errors=of.standard_errors(pair))
    if blank.margin is not None:
        score = of.fieller(pair, blank.margin) if metric.is_ratio else None
        figures = replace(figures, tested_margin=blank.margin, fieller=score)
    covariates = covariates_of(baseline, metric, own.owners)
    figures, contrast, adjustment = _with_cuped(figures, own, contrast, covariates, alpha=alpha)
    spread = 0.0 if contrast is None else contrast.standard_error
    return Question(
        figures,
        own,
        adjustment,
        margin,
        max(OF_STANDARD_ERROR * spread, OF_MARGIN * margin, 1e-7),
        None if contrast is None or spread <= 0.0 else contrast.upper(1.0 - alpha),
        contrast is None or spread > 0.0,
        tuple(margins.shortfalls(metric, margin, pair, cohorts=asker.cohorts, policy=asker.policy)),
    )


def ratios(own: Outcomes) -> tuple[CohortRatio | None, CohortRatio | None]:
    """Summarise both cohorts, (treated, reference); None for one without an owner."""
    return (
        cohort_ratio(own.harm[own.is_treated], own.trials[own.is_treated]),
        cohort_ratio(own.harm[~own.is_treated], own.trials[~own.is_treated]),
    )


def contrast_with(own: Outcomes, metric: Metric, adjustment: Adjustment) -> Contrast | None:
    """Contrast the cohorts with what the baseline foretold taken out of the owners' harm."""
    treated, reference = ratios(adjusted(own, adjustment))
    if treated is None or reference is None:
        return None
    return of.contrast_of(metric, (treated, reference))


def has_spread(contrast: Contrast | None) -> TypeGuard[Contrast]:
    """Whether there is a contrast, and owners who differ."""
    return contrast is not None and contrast.standard_error > 0.0


def _with_cuped(
    figures: Figures,
    own: Outcomes,
    plain: Contrast | None,
    covariates: Covariates | str,
    *,
    alpha: float,
) -> tuple[Figures, Contrast | None, Adjustment | None]:
    """Return the figures with what CUPED did, and the contrast that the test must agree with.

    Test, bound and interval are adjusted together or not at all: an adjusted test beside a bound
    that is not could contradict each other.
    """
    if isinstance(covariates, str):
        return replace(figures, without_cuped=covariates), plain, None
    adjustment = Adjustment.of(covariates)
    better = contrast_with(own, figures.metric, adjustment)
    told = None
    if has_spread(plain) and has_spread(better):
        told = of.cuped(figures.metric, covariates, plain, better, alpha=alpha)
    if told is None:
        return replace(figures, without_cuped=NOTHING_LEFT), plain, None
    return replace(figures, cuped=told), better, adjustment
