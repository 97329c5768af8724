"""Owner file: a comparison without a control plane, of a file with one row per owner.

Test, margins and minimum data are those of a gate. Only a control plane knows complete days,
coverage and invariants, so the comparison proves less than a gate and promotes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from guardwave.analysis.frames import COHORT, OWNER, checked_totals, explain_missing
from guardwave.analysis.gate import Judge, loops_note
from guardwave.analysis.inference import DrawKey, harmful_end, missed_carriers_note
from guardwave.analysis.offline.columns import Arms, read_columns
from guardwave.analysis.report import Cuped, Figures, MetricResult, Note
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Verdict

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
PAIR = (Cohort.ENFORCED, Cohort.CONTROL)
# Key of the random owner sets: the same file gets the same sets.
KEY = DrawKey("offline", "analyze", 1)
NO_LOOPS = "Loop events of other protections are unknown: the file has no column loops."
# Below this p the two cohorts lost owners at different rates.
MISSING_P = 0.001


@dataclass(frozen=True, slots=True)
class Balance:
    """The test of lost owners: Fisher's exact p, two-sided, of those without data in each arm."""

    treated_without_data: int
    control_without_data: int
    p_missing: float
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """The result of a file: the worst of its metrics and its balance. Counts are owners with data.

    `notes` are for information. `remarks` name the columns of the file that were ignored.
    """

    arms: Arms
    treated: int
    control: int
    metrics: tuple[MetricResult, ...]
    balance: Balance
    verdict: Verdict
    reason: str | None
    sentence: str
    notes: tuple[Note, ...]
    remarks: tuple[str, ...]


def analyse(
    file: pd.DataFrame, arms: Arms, policy: GatePolicy, *, is_cuped: bool = True
) -> OfflineResult:
    """Judge a file of owners by the margins of the policy's enforce gate.

    Raises:
        ValueError: naming column, row and value where the file is wrong, and for a margin out of
            its range.
    """
    owners = read_columns(file, arms)
    totals = checked_totals(owners.totals)
    names = (arms.treated, arms.control)
    reasons = explain_missing(owners.missing, dict(zip(PAIR, names, strict=True)))
    judge = Judge(PAIR, KEY, policy, is_look_due=True, names=names, missing_reasons=reasons)
    margins = policy.margins[Gate.ENFORCE]
    metrics = tuple(
        judge.compare(
            totals,
            metric,
            margins[metric],
            durations=owners.durations,
            baseline=owners.baseline if is_cuped else None,
        )
        for metric in Metric
        if metric in margins
    )
    balance = _balance(totals, arms)
    verdict, reason, sentence = _worst(metrics, balance)
    active = totals.loc[totals["started"] > 0, COHORT]
    treated, control = (int((active == cohort.value).sum()) for cohort in PAIR)
    return OfflineResult(
        arms=arms,
        treated=treated,
        control=control,
        metrics=metrics,
        balance=balance,
        verdict=verdict,
        reason=reason,
        sentence=sentence,
        notes=_notes(totals, owners.loops, arms, policy),
        remarks=owners.remarks,
    )


def to_wire(result: OfflineResult) -> Mapping[str, JsonValue]:
    """Return the answer as JSON values: null for what is unknown, never NaN or infinity."""
    balance = result.balance
    return {
        "owners": {
            "treated": result.treated,
            "control": result.control,
            "without_prompts": balance.treated_without_data + balance.control_without_data,
        },
        "metrics": {metric.figures.metric.value: _metric(metric) for metric in result.metrics},
        "balance": {
            "verdict": balance.verdict.value,
            "sentence": balance.sentence,
            "treated_without_data": balance.treated_without_data,
            "control_without_data": balance.control_without_data,
            "p_missing": balance.p_missing,
        },
        "verdict": result.verdict.value,
        "reason": result.reason,
        "sentence": result.sentence,
        "notes": [
            {"topic": note.topic.value, "sentence": note.sentence, "numbers": dict(note.numbers)}
            for note in result.notes
        ],
        "remarks": result.remarks,
    }


def _notes(
    totals: pd.DataFrame, loops: pd.DataFrame | None, arms: Arms, policy: GatePolicy
) -> tuple[Note, ...]:
    """Note what the draw of all owners can miss, and how often other protections ended a turn."""
    treated = int((totals[COHORT] == PAIR[0].value).sum())
    missed = missed_carriers_note(len(totals), treated)
    joined = None if loops is None else totals.merge(loops, on=OWNER)
    others = loops_note(joined, PAIR, arms, policy=policy, unknown=NO_LOOPS)
    return (others,) if missed is None else (missed, others)


def _balance(totals: pd.DataFrame, arms: Arms) -> Balance:
    has_data = (totals["started"] > 0).to_numpy()
    is_treated = (totals[COHORT] == PAIR[0].value).to_numpy()
    table = np.array(
        [[(has_data & arm).sum(), (~has_data & arm).sum()] for arm in (is_treated, ~is_treated)]
    )
    p = float(stats.fisher_exact(table).pvalue)
    missing = (int(table[0, 1]), int(table[1, 1]))
    counts = (
        f"{missing[0]:,} of {table[0].sum():,} {arms.treated} owners and {missing[1]:,} of "
        f"{table[1].sum():,} {arms.control} owners have no prompt (p = {p:.2g})"
    )
    if p < MISSING_P:
        why = f"Not valid: the arms lost owners differently; {counts}."
        return Balance(*missing, p, Verdict.INVALID, why)
    sentence = f"{counts}; whether the draw was fair is not known."
    return Balance(*missing, p, Verdict.WITHIN, sentence)


def _worst(metrics: Sequence[MetricResult], balance: Balance) -> tuple[Verdict, str | None, str]:
    """Return the worst verdict, and the code and the sentence of the first that has it."""
    if balance.verdict is not Verdict.WITHIN:
        return balance.verdict, "balance", balance.sentence
    with_verdicts = [(metric.verdict, metric) for metric in metrics if metric.verdict is not None]
    if not with_verdicts:
        return Verdict.NO_DATA, "no_margins", "No data: no metric has a margin."
    verdict, worst = max(with_verdicts, key=lambda pair: pair[0].rank)
    return verdict, None if worst.reason is None else worst.reason.value, worst.sentence


def _metric(result: MetricResult) -> Mapping[str, JsonValue]:
    figures = result.figures
    errors = figures.standard_errors
    answer: dict[str, JsonValue] = {
        "control": figures.reference.value,
        "treated": figures.treated.value,
        "estimate": figures.estimate,
        "margin": figures.margin,
        "tested_margin": figures.tested_margin,
        "se": None
        if errors is None
        else {"cr0": errors.cr0, "cr1": errors.cr1, "cr2": errors.cr2, "cr3": errors.cr3},
        "df": figures.degrees_of_freedom,
        "cr2_bound": harmful_end(figures.metric, figures.interval),
        "p_harm_at_margin": figures.p_harm_at_margin,
        "bound": figures.bound,
        "n_eff_treated": figures.treated.effective_owners,
        "n_eff_control": figures.reference.effective_owners,
        "cuped": None,
        "verdict": None if result.verdict is None else result.verdict.value,
        "reason": None if result.reason is None else result.reason.value,
        "sentence": result.sentence,
    }
    if figures.cuped is not None:
        answer["cuped"] = _cuped(figures.cuped)
    answer.update(_of_ratio(figures))
    return answer


def _cuped(cuped: Cuped) -> Mapping[str, JsonValue]:
    """Return the figures that the verdict agrees with where the test uses the days before."""
    interval = cuped.interval
    return {
        "variance_ratio": cuped.variance_ratio,
        "owners_with_baseline": cuped.owners_with_baseline,
        "owners_new": cuped.owners_new,
        "estimate": cuped.estimate,
        "standard_error": cuped.standard_error,
        "cr2_bound": cuped.cr2_bound,
        "interval": None if interval is None else [interval.low, interval.high],
    }


def _of_ratio(figures: Figures) -> Mapping[str, JsonValue]:
    """Return the members that only a ratio of amounts has."""
    treated, control, estimate = figures.treated.value, figures.reference.value, figures.estimate
    if not figures.metric.is_ratio or treated is None or control is None or not estimate:
        return {}
    answer: dict[str, JsonValue] = {
        "difference": treated - control,
        "log_ratio": {"estimate": math.log(estimate), "se_cr2": figures.standard_error},
    }
    if figures.fieller is not None:
        score, error = figures.fieller.score, figures.fieller.standard_error
        answer["fieller"] = {"score": score, "se": error}
    if figures.cut is not None:
        cut = figures.cut
        answer["cut"] = {
            "scale": cut.scale,
            "treated_ms": cut.treated_ms,
            "control_ms": cut.reference_ms,
            "treated_slow": cut.treated,
            "control_slow": cut.reference,
        }
    return answer
