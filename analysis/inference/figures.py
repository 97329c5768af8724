"""Figures of one metric: from the ratios of both cohorts to native units."""

import math
from dataclasses import replace

from guardwave.analysis.inference.cohorts import (
    CohortRatio,
    Contrast,
    Correction,
    difference,
    log_ratio,
)
from guardwave.analysis.inference.covariate import Covariates
from guardwave.analysis.inference.margins import native
from guardwave.analysis.report import Cuped, Fieller, Figures, Interval, Side, StandardErrors
from guardwave.reducer.vocabulary import Metric

METHOD = "CR2 t"
CUPED_METHOD = "CR2 t, CUPED"
NO_TRIALS = Side(None, owners=0, trials=0, effective_owners=None, largest_owner_share=None)
CORRECTIONS: tuple[Correction, ...] = ("CR0", "CR1", "CR2", "CR3")

Pair = tuple[CohortRatio, CohortRatio]


def side_of(metric: Metric, ratio: CohortRatio | None) -> Side:
    """Return one cohort's value in native units, with the data behind it."""
    if ratio is None:
        return NO_TRIALS
    return Side(
        1.0 - ratio.ratio if metric.is_higher_better else ratio.ratio,
        ratio.owners,
        int(ratio.trials),
        ratio.effective_owners,
        ratio.largest_owner_share,
    )


def contrast_of(metric: Metric, pair: Pair) -> Contrast | None:
    """Contrast (treated, reference) with CR2 on the scale of the test.

    None where a cohort has a single owner, and for a ratio that is not above 0.
    """
    if not metric.is_ratio:
        return difference(*pair)
    return log_ratio(*pair) if min(ratio.ratio for ratio in pair) > 0.0 else None


def with_contrast(figures: Figures, contrast: Contrast | None, *, alpha: float) -> Figures:
    """Add estimate and interval; a single owner has an estimate and no interval.

    There is no interval either where no owner differs from another: a width of zero would look like
    certainty.
    """
    metric, treated, reference = figures.metric, figures.treated.value, figures.reference.value
    if treated is None or reference is None:
        return figures
    estimate = treated / reference if metric.is_ratio else treated - reference
    if contrast is None or contrast.standard_error <= 0.0:
        return replace(figures, estimate=estimate)
    return replace(
        figures,
        estimate=estimate,
        interval=interval_of(metric, contrast, alpha=alpha),
        standard_error=contrast.standard_error,
        degrees_of_freedom=contrast.degrees_of_freedom,
    )


def interval_of(
    metric: Metric, contrast: Contrast, *, alpha: float, method: str = METHOD
) -> Interval | None:
    """Return the two-sided interval between both one-sided bounds; None where one is unknown."""
    ends = [native(metric, contrast.upper(confidence)) for confidence in (alpha, 1.0 - alpha)]
    finite = sorted(end for end in ends if end is not None)
    if len(finite) != len(ends):
        return None
    return Interval(finite[0], finite[1], level_of(alpha), method)


def level_of(alpha: float) -> float:
    """Return the level of the two-sided interval between two one-sided bounds at alpha."""
    return round(1.0 - 2.0 * alpha, 12)


def harmful_end(metric: Metric, interval: Interval | None) -> float | None:
    """Return the end of an interval on the side of harm: the one-sided bound at alpha."""
    if interval is None:
        return None
    return interval.low if metric.is_higher_better else interval.high


def standard_errors_of(pair: Pair) -> StandardErrors | None:
    """Return all four standard errors of the difference; None for one owner, or without spread."""
    contrasts = [difference(*pair, correction) for correction in CORRECTIONS]
    errors = [contrast.standard_error for contrast in contrasts if contrast is not None]
    if len(errors) < len(CORRECTIONS) or min(errors) <= 0.0:
        return None
    return StandardErrors(*errors)


def fieller_of(pair: Pair, margin: float) -> Fieller | None:
    """Return the score of a ratio at its margin: R_T - m R_C, with variance V_T + m^2 V_C."""
    treated, reference = (ratio.variance("CR2") for ratio in pair)
    if treated is None or reference is None:
        return None
    error = math.sqrt(treated + margin**2 * reference)
    if error <= 0.0:
        return None
    return Fieller(pair[0].ratio - margin * pair[1].ratio, error)


def cuped_of(
    metric: Metric, covariates: Covariates, plain: Contrast, adjusted: Contrast, *, alpha: float
) -> Cuped | None:
    """Return the effect of CUPED, from the contrasts without and with it, both with a spread."""
    estimate = native(metric, adjusted.estimate)
    if estimate is None:
        return None
    interval = interval_of(metric, adjusted, alpha=alpha, method=CUPED_METHOD)
    return Cuped(
        (adjusted.standard_error / plain.standard_error) ** 2,
        covariates.owners_with_baseline,
        len(covariates.trials) - covariates.owners_with_baseline,
        covariates.days,
        estimate,
        adjusted.standard_error,
        interval,
        harmful_end(metric, interval),
    )
