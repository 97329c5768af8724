"""Verdict: the evaluation of a gate, which is the worst of its checks and metrics, with its notes.

Policy and evidence go in, a `GateEvaluation` comes out. Notes decide nothing.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd

from guardwave.analysis import sentences
from guardwave.analysis.frames import (
    COHORT,
    SettledTotals,
    WaveEvidence,
    comparison_of,
    days_used,
    explain_missing,
    is_look_due,
    settled_totals,
)
from guardwave.analysis.gate.balance import drawn_owners
from guardwave.analysis.gate.baseline_drift import baseline_balance, control_moved
from guardwave.analysis.gate.before_after import BeforeAfter
from guardwave.analysis.gate.checks import run_checks
from guardwave.analysis.gate.comparison import Judge
from guardwave.analysis.gate.exposure import missing_exposure
from guardwave.analysis.gate.loop_events import other_protections
from guardwave.analysis.gate.stop_consistency import joined_totals, saved_calls, supported_hosts
from guardwave.analysis.inference import (
    DrawKey,
    harm_margin,
    missed_carriers_note,
    power_of_figures,
)
from guardwave.analysis.report import (
    Check,
    Comparison,
    Days,
    GateEvaluation,
    MetricResult,
    NotCounted,
    Note,
    Topic,
)
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict

# Shown with an interval where the policy has no margin for them; they decide nothing.
INFORMATIONAL = {Gate.ENFORCE: (Metric.CANCELLATION,)}


def evaluate(evidence: WaveEvidence, policy: GatePolicy) -> GateEvaluation:
    """Evaluate one gate. The verdict is the worst of all checks and all metrics with a margin.

    "Not shown to be harmful" is not "shown to be harmless": where the evidence cannot decide, the
    verdict is unproven or no data, and neither promotes. The same evidence and policy give the same
    evaluation.

    Raises:
        ValueError: for owner totals that fail their checks, and for a policy that names no
            metric for a gate that compares cohorts.
    """
    margins = _margins(evidence.gate, policy)
    sides = (evidence.treated, evidence.reference)
    settled = settled_totals(evidence.owners, drawn_owners(evidence), sides)
    totals = settled.totals
    joined = joined_totals(evidence, totals)
    checks = run_checks(evidence, settled, joined, policy)
    compared = _compare_metrics(evidence, totals, policy, margins=margins)
    metrics, kind = compared.metrics, compared.kind
    verdict = _worst([check.verdict for check in checks], [result.verdict for result in metrics])
    sentence = sentences.gate(checks, metrics, verdict)
    if kind is Comparison.BEFORE_AFTER:
        sentence = f"{sentence} {sentences.BEFORE_AFTER}"
    return GateEvaluation(
        environment=evidence.environment,
        guard=evidence.guard,
        gate=evidence.gate,
        wave=evidence.wave,
        treated=evidence.treated,
        reference=evidence.reference,
        verdict=verdict,
        sentence=sentence,
        alpha=policy.alpha,
        policy_version=policy.version,
        days=_days(evidence),
        owners=_owners_with_data(totals, (evidence.treated, evidence.reference)),
        rostered=evidence.rostered,
        lost=evidence.lost,
        metrics=metrics,
        information=compared.information,
        checks=checks,
        notes=notes_of(evidence, settled, joined, metrics, policy=policy, comparison=kind),
        comparison=kind,
    )


class _MetricResults(NamedTuple):
    kind: Comparison
    metrics: tuple[MetricResult, ...]
    information: tuple[MetricResult, ...]


def _compare_metrics(
    evidence: WaveEvidence,
    totals: pd.DataFrame,
    policy: GatePolicy,
    *,
    margins: Mapping[Metric, float],
) -> _MetricResults:
    metrics = [metric for metric in Metric if metric in margins]
    kind = comparison_of(evidence)
    if kind is Comparison.BEFORE_AFTER:
        paired = BeforeAfter(evidence, policy, is_look_due(evidence, policy))
        results = tuple(paired.compare(totals, metric, margins[metric]) for metric in metrics)
        return _MetricResults(kind, results, ())
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    judge = Judge(
        (evidence.treated, evidence.reference),
        key,
        policy,
        is_look_due(evidence, policy),
        missing_reasons=explain_missing(evidence.missing),
    )
    compare = partial(
        judge.compare, totals, durations=evidence.durations, baseline=evidence.baseline
    )
    extra = [metric for metric in INFORMATIONAL.get(evidence.gate, ()) if metric not in margins]
    return _MetricResults(
        kind,
        tuple(compare(metric, margins[metric]) for metric in metrics),
        tuple(compare(metric, None) for metric in extra),
    )


def _margins(gate: Gate, policy: GatePolicy) -> Mapping[Metric, float]:
    # Shadow has no reference cohort to compare with.
    if gate is Gate.SHADOW:
        return {}
    margins = policy.margins.get(gate, {})
    if not margins:
        raise ValueError(
            f"policy {policy.version!r} names no metric for the {gate} gate; name at least one, "
            "or nothing would be compared"
        )
    return margins


def _worst(checks: list[Verdict], metrics: list[Verdict | None]) -> Verdict:
    verdicts = [verdict for verdict in (*checks, *metrics) if verdict is not None]
    return max(verdicts, key=lambda verdict: verdict.rank)


def _days(evidence: WaveEvidence) -> Days:
    skipped = [day for day in evidence.days if not day.is_complete]
    return Days(
        declared=evidence.declared_days,
        complete=None if Check.DWELL in evidence.unknown else len(evidence.days) - len(skipped),
        used=days_used(evidence),
        not_counted=tuple(NotCounted(day.day, day.reason or "not complete") for day in skipped),
    )


def _owners_with_data(totals: pd.DataFrame, cohorts: tuple[Cohort, Cohort]) -> Mapping[Cohort, int]:
    active = totals.loc[totals["started"] > 0, COHORT]
    return {cohort: int((active == cohort.value).sum()) for cohort in cohorts}


def notes_of(
    evidence: WaveEvidence,
    settled: SettledTotals,
    joined: pd.DataFrame | None,
    metrics: Sequence[MetricResult],
    *,
    policy: GatePolicy,
    comparison: Comparison,
) -> tuple[Note, ...]:
    """Return the notes that the evidence has the data for, in a fixed order.

    `joined` are the guard totals beside the owners (`joined_totals`).
    """
    notes: list[Note | None] = [supported_hosts(evidence, joined), missing_exposure(evidence)]
    if comparison is not Comparison.NONE:
        notes += [power_note(metrics, policy), saved_calls(evidence, joined, policy.alpha)]
    if comparison is Comparison.CONCURRENT:
        notes.append(baseline_balance(evidence, settled.drawn, policy))
        notes.append(control_moved(evidence, settled.totals))
        notes.append(_missed_carriers(evidence, settled.totals))
        notes.append(other_protections(evidence, joined, policy))
    return tuple(note for note in notes if note is not None)


def power_note(metrics: Sequence[MetricResult], policy: GatePolicy) -> Note | None:
    """Note how often such owners would show a harmless guard to be within each margin.

    It depends on the standard error and not on the estimate, so it is no second opinion on the
    result.
    """
    numbers: dict[str, int | float | str] = {}
    parts = []
    for result in metrics:
        figures = result.figures
        if figures.margin is None or figures.standard_error is None:
            continue
        margin = harm_margin(figures.metric, abs(figures.tested_margin or figures.margin))
        error = figures.standard_error if figures.cuped is None else figures.cuped.standard_error
        power = power_of_figures(error, figures.degrees_of_freedom, margin, alpha=policy.alpha)
        if power is not None:
            numbers[f"power_{figures.metric}"] = power
            parts.append(f"{sentences.label(figures.metric)} {100.0 * power:.0f} %")
    if not parts:
        return None
    sentence = (
        "A guard that does no harm is within the margin with a chance of "
        f"{sentences.listed(parts)}. More owners raise it, more days hardly do."
    )
    return Note(Topic.POWER, False, sentence, numbers)


def _missed_carriers(evidence: WaveEvidence, totals: pd.DataFrame) -> Note | None:
    """Note what the draw can miss; without a roster the owners with data stand for it."""
    cohorts = (evidence.treated, evidence.reference)
    counts = evidence.rostered or _owners_with_data(totals, cohorts)
    treated, reference = (counts.get(cohort, 0) for cohort in cohorts)
    return missed_carriers_note(treated + reference, treated)
