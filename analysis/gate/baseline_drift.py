"""Baseline drift: cohorts that differed before the wave already, and a control that moved in it.

Both warn a person and decide nothing. Cohorts that differ by chance stay as they are: a salt that
is chosen until the cohorts look equal is no draw, and CUPED takes the difference into account.
"""

from collections.abc import Mapping

import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import (
    COHORT,
    COMPARABLE,
    OWNER,
    Baseline,
    Flags,
    WaveEvidence,
    explain_missing,
    outcomes_of,
)
from guardwave.analysis.inference import (
    DrawKey,
    Draws,
    Rerandomisation,
    latency_test,
    paired_contrast,
    paired_outcomes,
    rerandomisation,
    two_sided_p,
)
from guardwave.analysis.report import Note, Topic
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric

# A note is a warning for a p below it, divided by the number of metrics tested.
ALPHA = 0.01
COMPARED = tuple(metric for metric in Metric if metric is not Metric.LATENCY_P95)


def baseline_balance(
    evidence: WaveEvidence, drawn: frozenset[str] | None, policy: GatePolicy
) -> Note | None:
    """Run the gate's test on the days before, at a margin of zero, with the cohorts of the wave.

    Latency p95 is compared where the baseline has durations, by prompts above the pooled 95th
    percentile. `drawn` are the owners that the draw treats. None without them, or without a
    baseline.
    """
    baseline, inputs = evidence.baseline, evidence.draw
    if baseline is None or inputs is None or drawn is None:
        return None
    owners = baseline.owners[baseline.owners[OWNER].isin(inputs.owners)]
    is_drawn = owners[OWNER].isin(drawn)
    sides = (evidence.treated, evidence.reference)
    cohorts = is_drawn.map({True: sides[0].value, False: sides[1].value})
    totals = owners.assign(**{COHORT: cohorts})
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    policy = rerandomisation.two_sided_policy(policy, ALPHA / len(Metric))
    draws = Draws(key)
    p_values: dict[Metric, float] = {}
    for metric in _reported(baseline):
        outcomes = outcomes_of(totals, metric, sides)
        harm, is_treated = outcomes.harm, outcomes.is_treated
        has_harm = min(float(harm[is_treated].sum()), float(harm[~is_treated].sum())) > 0.0
        if _has_both(is_treated) and (has_harm or not metric.is_ratio):
            p = rerandomisation.two_sided_p(outcomes, metric, key, policy, draws=draws)
            p_values[metric] = p
    if baseline.durations is not None and Metric.LATENCY_P95 not in baseline.missing_reasons:
        test = latency_test(outcomes_of(totals, Metric.TURNS, sides), baseline.durations, None)
        if _has_both(test.is_treated):
            trial = Rerandomisation(test, draws)
            p_values[Metric.LATENCY_P95] = rerandomisation.two_sided_p_of(trial, policy)
    if not p_values:
        return None
    days = f"the {len(baseline.days)} days before the wave"
    apart = significant_metrics(p_values)
    sentence = f"On {days} the cohorts were alike."
    if apart:
        sentence = (
            f"On {days} the cohorts already differed in {apart}; keep the draw and read the "
            "comparison with that in mind."
        )
    return Note(Topic.BASELINE_BALANCE, bool(apart), sentence, _numbers(p_values))


def control_moved(evidence: WaveEvidence, totals: pd.DataFrame) -> Note | None:
    """Compare the reference's owners with themselves before the wave, over checked totals.

    The comparison uses the paired differences of owners with prompts in both periods
    (`inference.cohorts`). A reference that moved may share a backend with the treated, or the
    period changed. None without a comparable baseline.
    """
    baseline = evidence.baseline
    if baseline is None:
        return None
    p_values = _moves(evidence, baseline, totals)
    if not p_values:
        return None
    moved = significant_metrics(p_values)
    sentence = f"{evidence.reference} did as in the days before the wave."
    if moved:
        sentence = (
            f"{evidence.reference} moved against the days before the wave in {moved}; see whether "
            "the cohorts share a backend, or what changed for all."
        )
    sentence = sentence[0].upper() + sentence[1:]
    return Note(Topic.CONTROL_MOVED, bool(moved), sentence, _numbers(p_values))


def _moves(evidence: WaveEvidence, baseline: Baseline, totals: pd.DataFrame) -> dict[Metric, float]:
    before = baseline.owners[baseline.owners[COMPARABLE]].drop(columns=COMPARABLE)
    p_values: dict[Metric, float] = {}
    missing_reasons = explain_missing(evidence.missing)
    for metric in _reported(baseline):
        if metric in missing_reasons:
            continue
        paired = paired_outcomes(totals, before, metric, evidence.reference)
        contrast = paired_contrast(paired, is_log=metric.is_ratio)
        if contrast is not None:
            p_values[metric] = two_sided_p(contrast)
    return p_values


def _reported(baseline: Baseline) -> tuple[Metric, ...]:
    """Return the metrics of owner totals that the prompts of the baseline reported."""
    return tuple(metric for metric in COMPARED if metric not in baseline.missing_reasons)


def _has_both(is_treated: Flags) -> bool:
    """Whether both cohorts have an owner."""
    return 0 < int(is_treated.sum()) < len(is_treated)


def significant_metrics(p_values: Mapping[Metric, float]) -> str:
    """Name the metrics whose p is below its part of ALPHA (Bonferroni), each with its p."""
    return sentences.listed(
        [
            f"{sentences.label(metric)} (p = {p:.2g})"
            for metric, p in p_values.items()
            if p < ALPHA / len(p_values)
        ]
    )


def _numbers(p_values: dict[Metric, float]) -> dict[str, int | float | str]:
    return {f"p_{metric}": p for metric, p in p_values.items()}
