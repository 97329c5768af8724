"""Margins: their units, the scale of the test, and the minimum data to judge by.

On the scale of the test harm is a difference of rates of harm, or the logarithm of a ratio.
"""

import math

from guardwave.analysis import sentences
from guardwave.analysis.inference.cohorts import CohortRatio
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric

# A float holds exp of it; a larger ratio has no meaning.
LARGEST_LOGARITHM = 700.0
# Nobody would call a guard harmless that costs a thousand times as much.
LARGEST_RATIO = 1000.0


def harm_margin(metric: Metric, margin: float) -> float:
    """Return the margin on the scale of the test: a harm difference, or a log ratio.

    Raises:
        ValueError: for a margin outside (0, 1), or for a ratio not above 1 or beyond 1000.
    """
    if metric.is_ratio:
        if not 1.0 < margin <= LARGEST_RATIO:
            raise ValueError(
                f"the margin of {metric} is {margin}; it must be a ratio above 1 and at most "
                f"{LARGEST_RATIO:g}"
            )
        return math.log(margin)
    if not 0.0 < margin < 1.0:
        raise ValueError(f"the margin of {metric} is {margin}; it must be between 0 and 1")
    return margin


def native(metric: Metric, harm: float | None) -> float | None:
    """Convert a harm difference or log ratio to the metric's own units and direction."""
    if harm is None or not math.isfinite(harm):
        return None
    if metric.is_ratio:
        return math.exp(harm) if harm < LARGEST_LOGARITHM else None
    return -harm if metric.is_higher_better else harm


def shortfalls(
    metric: Metric,
    margin: float,
    ratios: tuple[CohortRatio, CohortRatio],
    *,
    cohorts: tuple[str, str],
    policy: GatePolicy,
) -> list[str]:
    """Return what the cohorts lack of the minimum data; of two lacks of a kind the first stands.

    `margin` is on the scale of the test, `ratios` and `cohorts` are (treated, reference).
    """
    least = policy.minimum_data
    expected_rate = ratios[1].ratio + margin
    lacks: dict[str, str] = {}
    for cohort, ratio in zip(cohorts, ratios, strict=True):
        if ratio.owners < least.owners:
            words = f"{ratio.owners} owners with data in {cohort} ({least.owners} needed)"
            lacks.setdefault("owners", words)
        if ratio.effective_owners < least.effective_owners:
            words = (
                f"{ratio.effective_owners:.1f} effective owners in {cohort} "
                f"({least.effective_owners:g} needed)"
            )
            lacks.setdefault("effective", words)
        if ratio.is_one_owner:
            words = f"one owner with all prompts in {cohort} (two needed)"
            lacks.setdefault("largest", words)
        elif ratio.largest_owner_share > least.largest_owner_share:
            words = (
                f"one owner with {sentences.percent(ratio.largest_owner_share)} of the prompts "
                f"in {cohort} ({100 * least.largest_owner_share:g} % at most)"
            )
            lacks.setdefault("largest", words)
        expected = ratio.trials * expected_rate
        if not metric.is_ratio and expected < least.expected_harm_events:
            words = (
                f"{expected:.1f} events to expect at the margin in {cohort} "
                f"({least.expected_harm_events:g} needed)"
            )
            lacks.setdefault("events", words)
    return list(lacks.values())
