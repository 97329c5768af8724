"""A comparison without a control plane: one row per owner in, every metric judged, one answer out.

The same test, margins and minimum data as a gate's, on a file that somebody else made. What only a
control plane knows (complete days, coverage, invariants) is not asked for, so this proves less than
a gate does and promotes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from analysis.comparison import Judge
from analysis.frames import COHORT, OWNER, checked_totals
from analysis.loops import loops_note
from analysis.offline_columns import Arms, read_columns
from analysis.report import Cuped, Figures, MetricResult, Note
from analysis.rerandomisation import DrawKey
from analysis.unseen import unseen_note
from analysis.untold import why_untold
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Gate, Metric, Verdict

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
PAIR = (Cohort.ENFORCED, Cohort.CONTROL)
# Of the random owner sets: the same file meets the same ones.
KEY = DrawKey("offline", "analyze", 1)
NO_LOOPS = "Loop events of other protections are unknown: the file has no column loops."
# Of the owners without a prompt: below, the two cohorts lost owners differently.
MISSING_P = 0.001


@dataclass(frozen=True, slots=True)
class Balance:
    """Whether both arms kept their owners: Fisher's exact p, two-sided, of those without data."""

    treated_without_data: int
    control_without_data: int
    p_missing: float
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """What a file shows: the worst of its metrics and its balance. Counts are owners with data.

    `notes` are for information. `remarks` say which columns of the file were passed over.
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
        ValueError: naming column, row and value where the file is wrong (analysis.offline_columns),
            and for a margin out of its range.
    """
    owners = read_columns(file, arms)
    totals = checked_totals(owners.totals)
    names = (arms.treated, arms.control)
    untold = why_untold(owners.untold, dict(zip(PAIR, names, strict=True)))
    judge = Judge(PAIR, KEY, policy, is_look=True, names=names, untold=untold)
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
        "metrics": {each.figures.metric.value: _metric(each) for each in result.metrics},
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
    """Say what the draw can miss, of all owners of the file, and what other protections ended."""
    treated = int((totals[COHORT] == PAIR[0].value).sum())
    unseen = unseen_note(len(totals), treated)
    joined = None if loops is None else totals.merge(loops, on=OWNER)
    told = loops_note(joined, PAIR, arms, policy=policy, not_kept=NO_LOOPS)
    return (told,) if unseen is None else (unseen, told)


def _balance(totals: pd.DataFrame, arms: Arms) -> Balance:
    has_data = (totals["started"] > 0).to_numpy()
    is_treated = (totals[COHORT] == PAIR[0].value).to_numpy()
    table = np.array(
        [[(has_data & own).sum(), (~has_data & own).sum()] for own in (is_treated, ~is_treated)]
    )
    p = float(stats.fisher_exact(table).pvalue)
    missing = (int(table[0, 1]), int(table[1, 1]))
    told = (
        f"{missing[0]:,} of {table[0].sum():,} {arms.treated} owners and {missing[1]:,} of "
        f"{table[1].sum():,} {arms.control} owners have no prompt (p = {p:.2g})"
    )
    if p < MISSING_P:
        why = f"Not valid: the arms lost owners differently; {told}."
        return Balance(*missing, p, Verdict.INVALID, why)
    return Balance(*missing, p, Verdict.WITHIN, f"{told}; whether the draw was fair is not known.")


def _worst(metrics: Sequence[MetricResult], balance: Balance) -> tuple[Verdict, str | None, str]:
    """Return the worst verdict, and the code and the sentence of the first that has it."""
    if balance.verdict is not Verdict.WITHIN:
        return balance.verdict, "balance", balance.sentence
    judged = [each for each in metrics if each.verdict is not None]
    if not judged:
        return Verdict.NO_DATA, "no_margins", "No data: no metric has a margin."
    worst = max(judged, key=lambda each: (each.verdict or Verdict.WITHIN).rank)
    assert worst.verdict is not None  # of those that were judged
    reason = None if worst.reason is None else worst.reason.value
    return worst.verdict, reason, worst.sentence


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
        "cr2_bound": _harmful_end(figures),
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


def _cuped(found: Cuped) -> Mapping[str, JsonValue]:
    """Return what the verdict agrees with where the days before the wave are in the test."""
    interval = found.interval
    return {
        "variance_ratio": found.variance_ratio,
        "owners_with_baseline": found.owners_with_baseline,
        "owners_new": found.owners_new,
        "estimate": found.estimate,
        "standard_error": found.standard_error,
        "cr2_bound": found.cr2_bound,
        "interval": None if interval is None else [interval.low, interval.high],
    }


def _of_ratio(figures: Figures) -> Mapping[str, JsonValue]:
    """Return what a ratio of amounts has beside the ratio itself."""
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


def _harmful_end(figures: Figures) -> float | None:
    """Return the end of the CR2 interval on the side of harm: its one-sided bound at alpha."""
    if figures.interval is None:
        return None
    return figures.interval.low if figures.metric.is_higher_better else figures.interval.high
