"""The notes of an evaluation: shown beside checks and metrics, they decide nothing."""

from collections.abc import Sequence

import pandas as pd

from analysis import sentences
from analysis.consistency import saved_calls, supported_hosts
from analysis.drift import baseline_balance, control_moved
from analysis.evidence import WaveEvidence
from analysis.exposure import untold_exposure
from analysis.frames import COHORT, Settled
from analysis.loops import other_protections
from analysis.margins import harm_margin
from analysis.power import power_of_figures
from analysis.report import Comparison, MetricResult, Note, Topic
from analysis.unseen import unseen_note
from reducer.rollout.policy import GatePolicy


def notes_of(
    evidence: WaveEvidence,
    settled: Settled,
    joined: pd.DataFrame | None,
    metrics: Sequence[MetricResult],
    *,
    policy: GatePolicy,
    comparison: Comparison,
) -> tuple[Note, ...]:
    """Return what the evidence holds of all notes, in their order; what it lacks is left out.

    `joined` are the guard totals beside the owners (analysis.consistency.joined_totals).
    """
    found: list[Note | None] = [supported_hosts(evidence, joined), untold_exposure(evidence)]
    if comparison is not Comparison.NONE:
        found += [power_note(metrics, policy), saved_calls(evidence, joined, policy.alpha)]
    if comparison is Comparison.CONCURRENT:
        found.append(baseline_balance(evidence, settled.drawn, policy))
        found.append(control_moved(evidence, settled.totals))
        found.append(_unseen(evidence, settled.totals))
        found.append(other_protections(evidence, joined, policy))
    return tuple(note for note in found if note is not None)


def power_note(metrics: Sequence[MetricResult], policy: GatePolicy) -> Note | None:
    """Say how often owners such as these would show a harmless guard within each margin.

    It follows from the standard error that was seen and never from the estimate, so it is no
    second opinion on the result.
    """
    numbers: dict[str, int | float | str] = {}
    parts = []
    for result in metrics:
        figures = result.figures
        if figures.margin is None or figures.standard_error is None:
            continue
        margin = harm_margin(figures.metric, abs(figures.tested_margin or figures.margin))
        better = figures.standard_error if figures.cuped is None else figures.cuped.standard_error
        reached = power_of_figures(better, figures.degrees_of_freedom, margin, alpha=policy.alpha)
        if reached is not None:
            numbers[f"power_{figures.metric}"] = reached
            parts.append(f"{sentences.label(figures.metric)} {100.0 * reached:.0f} %")
    if not parts:
        return None
    sentence = (
        "A guard that does no harm is within the margin with a chance of "
        f"{sentences.listed(parts)}. More owners raise it, more days hardly do."
    )
    return Note(Topic.POWER, False, sentence, numbers)


def _unseen(evidence: WaveEvidence, totals: pd.DataFrame) -> Note | None:
    """Tell what the draw can miss; without a roster the owners with data stand for it."""
    cohorts = (evidence.treated, evidence.reference)
    if not evidence.rostered:
        drawn = totals.loc[totals["started"] > 0, COHORT].value_counts()
        treated, reference = (int(drawn.get(cohort.value, 0)) for cohort in cohorts)
    else:
        treated, reference = (evidence.rostered.get(cohort, 0) for cohort in cohorts)
    return unseen_note(treated + reference, treated)
