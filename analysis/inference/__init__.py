"""Inference: from the owners of two cohorts to contrasts, the decision test and its bounds."""

from guardwave.analysis.inference import margins, rerandomisation
from guardwave.analysis.inference.cohorts import (
    CohortRatio,
    Contrast,
    Paired,
    cohort_ratio,
    difference,
    log_ratio,
    paired_contrast,
    paired_outcomes,
    two_sided_p,
)
from guardwave.analysis.inference.figures import (
    NO_TRIALS,
    harmful_end,
    level_of,
    side_of,
    with_contrast,
)
from guardwave.analysis.inference.latency import (
    P95Test,
    PairedLatency,
    bound_at,
    interval_at,
    is_at_least,
    latency_test,
    pair_durations,
    prepare_p95_test,
)
from guardwave.analysis.inference.margins import harm_margin, native, shortfalls
from guardwave.analysis.inference.metric_test import (
    ComparisonTerms,
    MetricTest,
    NoComparison,
    has_spread,
    prepare_test,
    ratios,
)
from guardwave.analysis.inference.power import (
    MetricPlan,
    MissedCarriers,
    missed_carriers,
    missed_carriers_note,
    plan_metrics,
    power_of_figures,
)
from guardwave.analysis.inference.random_sets import Labels, Sets
from guardwave.analysis.inference.rerandomisation import (
    DrawKey,
    Draws,
    Rerandomisation,
    stands_for_treated,
)

__all__ = [
    "NO_TRIALS",
    "CohortRatio",
    "ComparisonTerms",
    "Contrast",
    "DrawKey",
    "Draws",
    "Labels",
    "MetricPlan",
    "MetricTest",
    "MissedCarriers",
    "NoComparison",
    "P95Test",
    "Paired",
    "PairedLatency",
    "Rerandomisation",
    "Sets",
    "bound_at",
    "cohort_ratio",
    "difference",
    "harm_margin",
    "harmful_end",
    "has_spread",
    "interval_at",
    "is_at_least",
    "latency_test",
    "level_of",
    "log_ratio",
    "margins",
    "missed_carriers",
    "missed_carriers_note",
    "native",
    "pair_durations",
    "paired_contrast",
    "paired_outcomes",
    "plan_metrics",
    "power_of_figures",
    "prepare_p95_test",
    "prepare_test",
    "ratios",
    "rerandomisation",
    "shortfalls",
    "side_of",
    "stands_for_treated",
    "two_sided_p",
    "with_contrast",
]
