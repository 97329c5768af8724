"""What may be wrong with the days before the wave: cohorts apart already, or a control that moved.

Both warn a person and decide nothing. Cohorts that chance left apart stay as they are, since a
salt that is drawn until they look alike is no draw; CUPED takes the difference into account.
"""

from collections.abc import Mapping

import pandas as pd

from analysis import agreement, sentences
from analysis.baseline import COMPARABLE, Baseline
from analysis.evidence import WaveEvidence
from analysis.frames import COHORT, OWNER, outcomes
from analysis.latency import latency_test
from analysis.pairing import paired_contrast, paired_outcomes, two_sided_p
from analysis.report import Note, Topic
from analysis.rerandomisation import DrawKey, Draws, Rerandomisation
from analysis.untold import why_untold
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric

# A note is a warning for a p below it, divided by the number of metrics that were looked at.
ALPHA = 0.01
COMPARED = tuple(metric for metric in Metric if metric is not Metric.LATENCY_P95)


def baseline_balance(
    evidence: WaveEvidence, drawn: frozenset[str] | None, policy: GatePolicy
) -> Note | None:
    """Run the gate's test on the days before, at a margin of zero, with the wave's own cohorts.

    Latency p95 is compared where the baseline has durations, by prompts above the pooled 95th
    percentile.

    `drawn` are those that the draw treats. None without them, or without a baseline.
    """
    baseline, inputs = evidence.baseline, evidence.draw
    if baseline is None or inputs is None or drawn is None:
        return None
    owners = baseline.owners[baseline.owners[OWNER].isin(inputs.owners)]
    is_treated = owners[OWNER].isin(drawn)
    sides = (evidence.treated, evidence.reference)
    placed = owners.assign(
        **{COHORT: is_treated.map({True: sides[0].value, False: sides[1].value})}
    )
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    strict = agreement.strict(policy, ALPHA / len(Metric))
    draws = Draws(key)
    found: dict[Metric, float] = {}
    for metric in _told(baseline):
        own = outcomes(placed, metric, sides)
        harm = [float(own.harm[at].sum()) for at in (own.is_treated, ~own.is_treated)]
        has_both = 0 < int(own.is_treated.sum()) < len(own.is_treated)
        if has_both and (min(harm) > 0.0 or not metric.is_ratio):
            found[metric] = agreement.two_sided_p(own, metric, key, strict, draws=draws)
    if baseline.durations is not None and Metric.LATENCY_P95 not in baseline.untold:
        test = latency_test(outcomes(placed, Metric.TURNS, sides), baseline.durations, None)
        if 0 < int(test.is_treated.sum()) < len(test.is_treated):
            trial = Rerandomisation(test, draws)
            found[Metric.LATENCY_P95] = agreement.two_sided_p_of(trial, strict)
    if not found:
        return None
    days = f"the {len(baseline.days)} days before the wave"
    apart = below(found)
    sentence = f"On {days} the cohorts were alike."
    if apart:
        sentence = (
            f"On {days} the cohorts already differed in {apart}; keep the draw and read the "
            "comparison with that in mind."
        )
    return Note(Topic.BASELINE_BALANCE, bool(apart), sentence, _numbers(found))


def control_moved(evidence: WaveEvidence, totals: pd.DataFrame) -> Note | None:
    """Compare the reference's owners with themselves before the wave, over checked totals.

    By the paired differences of owners with prompts in both periods (analysis.pairing).

    A reference that moved may have met the treated at a shared backend, or the period changed.
    None without a comparable baseline.
    """
    baseline = evidence.baseline
    if baseline is None:
        return None
    found = _moves(evidence, baseline, totals)
    if not found:
        return None
    moved = below(found)
    sentence = f"{evidence.reference} did as in the days before the wave."
    if moved:
        sentence = (
            f"{evidence.reference} moved against the days before the wave in {moved}; see whether "
            "the cohorts share a backend, or what changed for all."
        )
    sentence = sentence[0].upper() + sentence[1:]
    return Note(Topic.CONTROL_MOVED, bool(moved), sentence, _numbers(found))


def _moves(evidence: WaveEvidence, baseline: Baseline, totals: pd.DataFrame) -> dict[Metric, float]:
    before = baseline.owners[baseline.owners[COMPARABLE]].drop(columns=COMPARABLE)
    found: dict[Metric, float] = {}
    untold = why_untold(evidence.untold)
    for metric in _told(baseline):
        if metric in untold:
            continue
        own = paired_outcomes(totals, before, metric, evidence.reference)
        contrast = paired_contrast(own, is_log=metric.is_ratio)
        if contrast is not None:
            found[metric] = two_sided_p(contrast)
    return found


def _told(baseline: Baseline) -> tuple[Metric, ...]:
    """Return the metrics of owner totals that the days before told."""
    return tuple(metric for metric in COMPARED if metric not in baseline.untold)


def below(found: Mapping[Metric, float]) -> str:
    """Name the metrics whose p is below its part of ALPHA (Bonferroni), each with its p."""
    return sentences.listed(
        [
            f"{sentences.label(metric)} (p = {p:.2g})"
            for metric, p in found.items()
            if p < ALPHA / len(found)
        ]
    )


def _numbers(found: dict[Metric, float]) -> dict[str, int | float | str]:
    return {f"p_{metric}": p for metric, p in found.items()}
