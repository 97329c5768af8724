"""Stop consistency: whether a guard stops where it said it would, and how many calls that saves.

Both use the guard's decisions by owner. Of more decisions than prompts only as many as prompts
count.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from guardwave.analysis import sentences
from guardwave.analysis.frames import COHORT, OWNER, Outcomes, WaveEvidence, checked_guard_totals
from guardwave.analysis.inference import (
    CohortRatio,
    DrawKey,
    cohort_ratio,
    difference,
    margins,
    ratios,
    rerandomisation,
)
from guardwave.analysis.report import Check, CheckResult, Note, Topic
from guardwave.reducer import number_format
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Metric, Verdict

STOPPED = "stopped"
WOULD_STOPPED = "would_stopped"
CALLS_AFTER = "calls_after_would_stop"
UNRELIABLE = "unreliable"


class Saving(NamedTuple):
    """Tool calls after a stop that was not carried out: the mean, and its two-sided interval.

    There is no interval where no owner differs from another.
    """

    mean: float
    interval: tuple[float, float] | None


def joined_totals(evidence: WaveEvidence, totals: pd.DataFrame) -> pd.DataFrame | None:
    """Return what the guard did by owner beside cohort and prompts started; None if unreported.

    An owner without guard totals is left out: its missing counts are no zeros.
    """
    if evidence.guard_totals is None:
        return None
    columns = checked_guard_totals(evidence.guard_totals)
    return totals[[OWNER, COHORT, "started"]].merge(columns, on=OWNER, how="inner")


def stop_consistency(
    evidence: WaveEvidence, joined: pd.DataFrame | None, policy: GatePolicy, *, is_look_due: bool
) -> CheckResult:
    """Judge whether the treated stop as many prompts as the reference would have stopped."""
    if joined is None or not {STOPPED, WOULD_STOPPED} <= set(joined.columns):
        return _result(Verdict.NO_DATA, "Stops and would-be stops were not reported by owner.", {})
    stops = _stops(evidence, joined)
    treated, reference = ratios(stops)
    if treated is None or reference is None:
        return _result(Verdict.NO_DATA, "A cohort has no prompt whose stops are known.", {})
    band = policy.stop_band
    numbers: dict[str, int | float | str] = {
        "stopped_share": treated.ratio,
        "would_stop_share": reference.ratio,
        "difference": treated.ratio - reference.ratio,
        "band": band,
    }
    stopped, would_stop = (sentences.rate(side.ratio) for side in (treated, reference))
    shares = (
        f"{evidence.treated} stopped {stopped} of prompts, {evidence.reference} would have stopped "
        f"{would_stop}"
    )
    shares = shares[0].upper() + shares[1:]
    if not is_look_due:
        later = f"{shares}; judged only when the declared days are complete."
        return _result(Verdict.UNPROVEN, later, numbers)
    verdict, why = _judge(stops, (treated, reference), evidence=evidence, policy=policy)
    return _result(verdict, f"{shares}; {why}.", numbers)


def saved_calls(evidence: WaveEvidence, joined: pd.DataFrame | None, alpha: float) -> Note | None:
    """Estimate the tool calls saved: stops x the reference's mean calls after a would-be stop."""
    needed = {STOPPED, WOULD_STOPPED, CALLS_AFTER}
    if joined is None or not needed <= set(joined.columns):
        return None
    stops = int(joined.loc[joined[COHORT] == evidence.treated.value, STOPPED].sum())
    saving = _saving(joined[joined[COHORT] == evidence.reference.value], alpha)
    if saving is None:
        return None
    numbers: dict[str, int | float | str] = {
        "stops": stops,
        "calls_after_would_stop": saving.mean,
        "saved": stops * saving.mean,
    }
    words = "no interval, since no owner differs from another"
    if saving.interval is not None:
        low, high = (stops * end for end in saving.interval)
        numbers |= {"saved_low": low, "saved_high": high}
        words = f"{100 - 200 * alpha:g} % interval {low:,.0f} to {high:,.0f}"
    sentence = (
        f"About {stops * saving.mean:,.0f} tool calls saved by {stops:,} stops ({words}): "
        f"{evidence.reference} made {saving.mean:.2f} after a would-be stop"
    )
    before = _before(evidence, alpha)
    if before is not None:
        numbers["calls_after_would_stop_before"] = before.mean
        ends = before.interval
        words = "no interval" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
        sentence += f", and {before.mean:.2f} ({words}) before"
    return Note(Topic.SAVED_CALLS, False, f"{sentence}.", numbers)


def supported_hosts(evidence: WaveEvidence, joined: pd.DataFrame | None) -> Note | None:
    """Count the prompts whose input the guard could not rely on; comparisons keep them."""
    if joined is None or UNRELIABLE not in joined.columns:
        return None
    numbers: dict[str, int | float | str] = {}
    parts = []
    prompts = 0
    for cohort in dict.fromkeys((evidence.treated, evidence.reference)):
        of_cohort = joined[joined[COHORT] == cohort.value]
        unreliable, started = int(of_cohort[UNRELIABLE].sum()), int(of_cohort["started"].sum())
        numbers |= {f"{cohort}_unreliable": unreliable, f"{cohort}_prompts": started}
        parts.append(f"{unreliable:,} of {started:,} prompts in {cohort}")
        prompts += started
    if not prompts:
        return None
    sentence = f"Input was unreliable for {sentences.listed(parts)}"
    if evidence.treated is not evidence.reference:
        sentence += "; they stay in the comparison"
    sentence += "."
    return Note(Topic.SUPPORTED_HOSTS, False, sentence, numbers)


def _result(
    verdict: Verdict, sentence: str, numbers: Mapping[str, int | float | str]
) -> CheckResult:
    return CheckResult(Check.STOP_CONSISTENCY, verdict, sentence, numbers)


def _stops(evidence: WaveEvidence, joined: pd.DataFrame) -> Outcomes:
    sides = [evidence.treated.value, evidence.reference.value]
    rows = joined[joined[COHORT].isin(sides) & (joined["started"] > 0)]
    is_treated = (rows[COHORT] == evidence.treated.value).to_numpy(dtype=np.bool_)
    started = rows["started"].to_numpy(dtype=np.float64)
    decisions = np.where(is_treated, rows[STOPPED], rows[WOULD_STOPPED])
    return Outcomes(tuple(rows[OWNER]), is_treated, np.minimum(decisions, started), started)


def _judge(
    stops: Outcomes,
    sides: tuple[CohortRatio, CohortRatio],
    *,
    evidence: WaveEvidence,
    policy: GatePolicy,
) -> tuple[Verdict, str]:
    """Judge by the two tests at the band and by the interval of the difference: both must agree."""
    band, alpha = policy.stop_band, policy.alpha
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    agreement = rerandomisation.agreement(stops, band, key, policy)
    limit = number_format.margin(Metric.DISRUPTION, band).removeprefix("+")
    allowed = f"they may differ by {limit} pp"
    if agreement.p_outside <= alpha:
        return Verdict.BEYOND, f"shown to differ by more than the {limit} pp allowed"
    shortages = margins.shortfalls(
        # Any rate of prompts has the same minimum data.
        Metric.DISRUPTION,
        band,
        sides,
        cohorts=(evidence.treated, evidence.reference),
        policy=policy,
    )
    if shortages:
        return Verdict.UNPROVEN, f"too little data to decide: {sentences.listed(shortages)}"
    contrast = difference(*sides)
    if contrast is None or contrast.standard_error <= 0.0:
        is_inside = agreement.p_inside <= alpha
        words = f"no interval, since no owner differs from another; {allowed}"
    else:
        low, high = contrast.upper(alpha), contrast.upper(1.0 - alpha)
        is_inside = agreement.p_inside <= alpha and -band < low and high < band
        level = f"{100 - 200 * alpha:g} % interval of the difference"
        ends = " to ".join(number_format.ends(Metric.DISRUPTION, low, high, band))
        words = f"{level} {ends} pp; {allowed}"
    return (Verdict.WITHIN if is_inside else Verdict.UNPROVEN), words


def _saving(rows: pd.DataFrame, alpha: float) -> Saving | None:
    """Return the mean calls after a would-be stop; None with fewer than two owners that had one."""
    rows = rows[rows[WOULD_STOPPED] > 0]
    ratio = cohort_ratio(
        rows[CALLS_AFTER].to_numpy(dtype=np.float64), rows[WOULD_STOPPED].to_numpy(dtype=np.float64)
    )
    if ratio is None:
        return None
    variance, freedom = ratio.variance("CR2"), ratio.degrees_of_freedom
    if variance is None or freedom is None:
        return None
    if variance <= 0.0:
        return Saving(ratio.ratio, None)
    width = float(special.stdtrit(freedom, 1.0 - alpha)) * math.sqrt(variance)
    return Saving(ratio.ratio, (max(0.0, ratio.ratio - width), ratio.ratio + width))


def _before(evidence: WaveEvidence, alpha: float) -> Saving | None:
    if evidence.guard_totals_before is None:
        return None
    before = checked_guard_totals(evidence.guard_totals_before)
    return _saving(before, alpha) if {WOULD_STOPPED, CALLS_AFTER} <= set(before.columns) else None
