"""Metric test: a metric of owner totals, made ready for the decision test at its margin."""

from dataclasses import dataclass, replace
from typing import TypeGuard

from guardwave.analysis import sentences
from guardwave.analysis.frames import Baseline, Outcomes
from guardwave.analysis.inference import margins
from guardwave.analysis.inference.cohorts import CohortRatio, Contrast, cohort_ratio
from guardwave.analysis.inference.covariate import Adjustment, Covariates, adjusted, covariates_of
from guardwave.analysis.inference.figures import (
    contrast_of,
    cuped_of,
    fieller_of,
    side_of,
    standard_errors_of,
    with_contrast,
)
from guardwave.analysis.inference.rerandomisation import Draws, Rerandomisation
from guardwave.analysis.report import Figures, MetricReason
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric

# Resolution of the bound, as a part of the standard error or of the margin: the larger counts.
OF_STANDARD_ERROR = 0.01
OF_MARGIN = 0.001
NO_SPREAD_LEFT = "with the days before the wave taken out, owners have no spread to compare by"


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """The names of the cohorts (treated, reference), and the policy to judge by."""

    cohorts: tuple[str, str]
    policy: GatePolicy

    def empty_cohorts(self, pair: tuple[CohortRatio | None, CohortRatio | None]) -> str:
        """Name the cohorts that have no owner."""
        by_cohort = zip(self.cohorts, pair, strict=True)
        return " or ".join(str(cohort) for cohort, ratio in by_cohort if ratio is None)


@dataclass(frozen=True, slots=True)
class NoComparison:
    """The reason why a metric cannot be compared, with the figures that are known anyway."""

    figures: Figures
    reason: MetricReason
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class MetricTest:
    """A metric ready for the test; `upper` is the CR2 bound, on the scale of the test.

    `margin` is 0 for a metric without one, whose figures are only shown. Without a spread between
    owners there is no bound to judge by.
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

    def to_native(self, harm: float | None) -> float | None:
        """Return a bound on the scale of the test in native units."""
        return margins.native(self.figures.metric, harm)


def prepare_test(
    blank: Figures,
    outcomes: Outcomes,
    baseline: Baseline | None,
    *,
    margin: float,
    terms: ComparisonTerms,
) -> MetricTest | NoComparison:
    """Prepare the test of a metric of owner totals; `margin` is on the scale of the test."""
    metric, alpha = blank.metric, terms.policy.alpha
    treated, reference = ratios(outcomes)
    figures = replace(blank, treated=side_of(metric, treated), reference=side_of(metric, reference))
    if treated is None or reference is None:
        empty = terms.empty_cohorts((treated, reference))
        why = f"{sentences.label(metric)} has no prompt from {empty}"
        return NoComparison(figures, MetricReason.EMPTY_COHORT, why)
    if metric.is_ratio and min(treated.ratio, reference.ratio) <= 0.0:
        which = terms.cohorts[1 if reference.ratio <= 0.0 else 0]
        why = f"{sentences.label(metric)} are zero in {which}, so there is no ratio"
        return NoComparison(figures, MetricReason.ZERO_RATIO, why)
    pair = (treated, reference)
    contrast = contrast_of(metric, pair)
    figures = with_contrast(figures, contrast, alpha=alpha)
    figures = replace(figures, standard_errors=standard_errors_of(pair))
    if blank.margin is not None:
        score = fieller_of(pair, blank.margin) if metric.is_ratio else None
        figures = replace(figures, tested_margin=blank.margin, fieller=score)
    covariates = covariates_of(baseline, metric, outcomes.owners)
    figures, contrast, adjustment = _with_cuped(
        figures, outcomes, contrast, covariates, alpha=alpha
    )
    spread = 0.0 if contrast is None else contrast.standard_error
    return MetricTest(
        figures,
        outcomes,
        adjustment,
        margin,
        max(OF_STANDARD_ERROR * spread, OF_MARGIN * margin, 1e-7),
        None if contrast is None or spread <= 0.0 else contrast.upper(1.0 - alpha),
        contrast is None or spread > 0.0,
        tuple(margins.shortfalls(metric, margin, pair, cohorts=terms.cohorts, policy=terms.policy)),
    )


def ratios(outcomes: Outcomes) -> tuple[CohortRatio | None, CohortRatio | None]:
    """Summarise both cohorts, (treated, reference); None for one without an owner."""
    harm, trials, is_treated = outcomes.harm, outcomes.trials, outcomes.is_treated
    return (
        cohort_ratio(harm[is_treated], trials[is_treated]),
        cohort_ratio(harm[~is_treated], trials[~is_treated]),
    )


def adjusted_contrast(
    outcomes: Outcomes, metric: Metric, adjustment: Adjustment
) -> Contrast | None:
    """Contrast the cohorts after the owners' harm was adjusted by the baseline."""
    treated, reference = ratios(adjusted(outcomes, adjustment))
    if treated is None or reference is None:
        return None
    return contrast_of(metric, (treated, reference))


def has_spread(contrast: Contrast | None) -> TypeGuard[Contrast]:
    """Whether there is a contrast, with a spread between owners."""
    return contrast is not None and contrast.standard_error > 0.0


def _with_cuped(
    figures: Figures,
    outcomes: Outcomes,
    plain: Contrast | None,
    covariates: Covariates | str,
    *,
    alpha: float,
) -> tuple[Figures, Contrast | None, Adjustment | None]:
    """Return the figures with the effect of CUPED, and the contrast that the test must agree with.

    Test, bound and interval are adjusted together or not at all: an adjusted test could contradict
    a plain bound.
    """
    if isinstance(covariates, str):
        return replace(figures, without_cuped=covariates), plain, None
    adjustment = Adjustment.of(covariates)
    contrast = adjusted_contrast(outcomes, figures.metric, adjustment)
    cuped = None
    if has_spread(plain) and has_spread(contrast):
        cuped = cuped_of(figures.metric, covariates, plain, contrast, alpha=alpha)
    if cuped is None:
        return replace(figures, without_cuped=NO_SPREAD_LEFT), plain, None
    return replace(figures, cuped=cuped), contrast, adjustment
