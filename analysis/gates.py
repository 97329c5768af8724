"""The verdict of a gate: policy and evidence in, checks and metrics judged, the worst one out."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import pandas as pd

from analysis import sentences
from analysis.balance import drawn_owners
from analysis.before_after import BeforeAfter
from analysis.checks import run_checks
from analysis.comparison import Judge
from analysis.consistency import joined_totals
from analysis.evidence import Share, WaveDay, WaveEvidence, comparison_of, days_used, is_look
from analysis.frames import COHORT, settled_totals
from analysis.notes import notes_of
from analysis.report import (
    Check,
    Comparison,
    Days,
    GateEvaluation,
    MetricResult,
    NotCounted,
)
from analysis.rerandomisation import DrawKey
from analysis.untold import why_untold
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Gate, Metric, Verdict

__all__ = ["Share", "WaveDay", "WaveEvidence", "days_used", "evaluate"]

# Shown with their interval in a gate whose policy does not name them; they decide nothing.
INFORMATIONAL = {Gate.ENFORCE: (Metric.CANCELLATION,)}


def evaluate(evidence: WaveEvidence, policy: GatePolicy) -> GateEvaluation:
    """Evaluate one gate. The verdict is the worst of every check and every metric with a margin.

    "Not shown to be harmful" is not "shown to be harmless": what the evidence cannot decide is
    unproven or no data, and neither promotes. The same evidence and policy give the same
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
    compared = _compared(evidence, totals, policy, margins=margins)
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


class _Compared(NamedTuple):
    kind: Comparison
    metrics: tuple[MetricResult, ...]
    information: tuple[MetricResult, ...]


def _compared(
    evidence: WaveEvidence,
    totals: pd.DataFrame,
    policy: GatePolicy,
    *,
    margins: Mapping[Metric, float],
) -> _Compared:
    named = [metric for metric in Metric if metric in margins]
    kind = comparison_of(evidence)
    if kind is Comparison.BEFORE_AFTER:
        paired = BeforeAfter(evidence, policy, is_look(evidence, policy))
        return _Compared(
            kind, tuple(paired.compare(totals, metric, margins[metric]) for metric in named), ()
        )
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    judge = Judge(
        (evidence.treated, evidence.reference),
        key,
        policy,
        is_look(evidence, policy),
        untold=why_untold(evidence.untold),
    )
    compare = partial(
        judge.compare, totals, durations=evidence.durations, baseline=evidence.baseline
    )
    shown = [metric for metric in INFORMATIONAL.get(evidence.gate, ()) if metric not in margins]
    return _Compared(
        kind,
        tuple(compare(metric, margins[metric]) for metric in named),
        tuple(compare(metric, None) for metric in shown),
    )


def _margins(gate: Gate, policy: GatePolicy) -> Mapping[Metric, float]:
    # Shadow has no reference cohort: nobody can be compared with anybody.
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
    judged = [verdict for verdict in (*checks, *metrics) if verdict is not None]
    return max(judged, key=lambda verdict: verdict.rank)


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
