"""Whether a guard stops where it said it would, and how many tool calls its stops save.

Both read the guard's decisions by owner: those of an owner above one a prompt count as one each.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from analysis import agreement, margins, sentences
from analysis.cohorts import CohortRatio, cohort_ratio, difference
from analysis.evidence import WaveEvidence
from analysis.frames import COHORT, OWNER, Outcomes
from analysis.guard_totals import checked_guard_totals
from analysis.report import Check, CheckResult, Note, Topic
from analysis.rerandomisation import DrawKey
from reducer import written
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Metric, Verdict

STOPPED = "stopped"
WOULD_STOPPED = "would_stopped"
CALLS_AFTER = "calls_after_would_stop"
UNRELIABLE = "unreliable"


class Saving(NamedTuple):
    """Tool calls after a stop that was not carried out: the mean, and its two-sided interval.

    Owners who are all alike have no interval.
    """

    mean: float
    interval: tuple[float, float] | None


def joined_totals(evidence: WaveEvidence, totals: pd.DataFrame) -> pd.DataFrame | None:
    """Return what the guard did by owner beside cohort and prompts started; None if unreported.

    An owner whose guard totals are lacking is left out, not read as zero.
    """
    if evidence.guard_totals is None:
        return None
    columns = checked_guard_totals(evidence.guard_totals)
    return totals[[OWNER, COHORT, "started"]].merge(columns, on=OWNER, how="inner")


def stop_consistency(
    evidence: WaveEvidence, joined: pd.DataFrame | None, policy: GatePolicy, *, is_look: bool
) -> CheckResult:
    """Judge whether stops per prompt of the treated are those that the reference would have had."""
    if joined is None or not {STOPPED, WOULD_STOPPED} <= set(joined.columns):
        return _told(Verdict.NO_DATA, "Stops and would-be stops were not reported by owner.", {})
    own = _stops(evidence, joined)
    sides = [cohort_ratio(own.harm[at], own.trials[at]) for at in (own.is_treated, ~own.is_treated)]
    treated, reference = sides
    if treated is None or reference is None:
        return _told(Verdict.NO_DATA, "A cohort has no prompt whose stops are known.", {})
    band = policy.stop_band
    numbers: dict[str, int | float | str] = {
        "stopped_share": treated.ratio,
        "would_stop_share": reference.ratio,
        "difference": treated.ratio - reference.ratio,
        "band": band,
    }
    stopped, would_stop = (sentences.rate(side.ratio) for side in (treated, reference))
    seen = (
        f"{evidence.treated} stopped {stopped} of prompts, {evidence.reference} would have stopped "
        f"{would_stop}"
    )
    seen = seen[0].upper() + seen[1:]
    if not is_look:
        later = f"{seen}; judged only when the declared days are complete."
        return _told(Verdict.UNPROVEN, later, numbers)
    verdict, why = _judged(own, (treated, reference), evidence=evidence, policy=policy)
    return _told(verdict, f"{seen}; {why}.", numbers)


def saved_calls(evidence: WaveEvidence, joined: pd.DataFrame | None, alpha: float) -> Note | None:
    """Estimate the tool calls that stops saved: reference's mean after a would-be stop x stops."""
    wanted = {STOPPED, WOULD_STOPPED, CALLS_AFTER}
    if joined is None or not wanted <= set(joined.columns):
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
    told = "no interval, since no owner differs from another"
    if saving.interval is not None:
        low, high = (stops * end for end in saving.interval)
        numbers |= {"saved_low": low, "saved_high": high}
        told = f"{100 - 200 * alpha:g} % interval {low:,.0f} to {high:,.0f}"
    sentence = (
        f"About {stops * saving.mean:,.0f} tool calls saved by {stops:,} stops ({told}): "
        f"{evidence.reference} made {saving.mean:.2f} after a would-be stop"
    )
    before = _before(evidence, alpha)
    if before is not None:
        numbers["calls_after_would_stop_before"] = before.mean
        ends = before.interval
        told = "no interval" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"
        sentence += f", and {before.mean:.2f} ({told}) before"
    return Note(Topic.SAVED_CALLS, False, f"{sentence}.", numbers)


def supported_hosts(evidence: WaveEvidence, joined: pd.DataFrame | None) -> Note | None:
    """Count prompts whose input the guard could not rely on; comparisons keep them."""
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


def _told(verdict: Verdict, sentence: str, numbers: Mapping[str, int | float | str]) -> CheckResult:
    return CheckResult(Check.STOP_CONSISTENCY, verdict, sentence, numbers)


def _stops(evidence: WaveEvidence, joined: pd.DataFrame) -> Outcomes:
    sides = [evidence.treated.value, evidence.reference.value]
    chosen = joined[joined[COHORT].isin(sides) & (joined["started"] > 0)]
    is_treated = (chosen[COHORT] == evidence.treated.value).to_numpy(dtype=np.bool_)
    started = chosen["started"].to_numpy(dtype=np.float64)
    decisions = np.where(is_treated, chosen[STOPPED], chosen[WOULD_STOPPED])
    return Outcomes(tuple(chosen[OWNER]), is_treated, np.minimum(decisions, started), started)


def _judged(
    own: Outcomes,
    sides: tuple[CohortRatio, CohortRatio],
    *,
    evidence: WaveEvidence,
    policy: GatePolicy,
) -> tuple[Verdict, str]:
    """Judge by the two tests at the band, and the interval of the difference beside them."""
    band, alpha = policy.stop_band, policy.alpha
    key = DrawKey(evidence.environment, evidence.guard, evidence.wave)
    tested = agreement.agreement(own, band, key, policy)
    limit = written.margin(Metric.DISRUPTION, band).removeprefix("+")
    told = f"they may differ by {limit} pp"
    if tested.p_outside <= alpha:
        return Verdict.BEYOND, f"shown to differ by more than the {limit} pp allowed"
    lacking = margins.shortfalls(
        # Any rate of prompts has the same minimum data.
        Metric.DISRUPTION,
        band,
        sides,
        cohorts=(evidence.treated, evidence.reference),
        policy=policy,
    )
    if lacking:
        return Verdict.UNPROVEN, f"too little data to decide: {sentences.listed(lacking)}"
    contrast = difference(*sides)
    if contrast is None or contrast.standard_error <= 0.0:
        is_inside = tested.p_inside <= alpha
        shown = f"no interval, since no owner differs from another; {told}"
    else:
        low, high = contrast.upper(alpha), contrast.upper(1.0 - alpha)
        is_inside = tested.p_inside <= alpha and -band < low and high < band
        level = f"{100 - 200 * alpha:g} % interval of the difference"
        ends = " to ".join(written.ends(Metric.DISRUPTION, low, high, band))
        shown = f"{level} {ends} pp; {told}"
    return (Verdict.WITHIN if is_inside else Verdict.UNPROVEN), shown


def _saving(decided: pd.DataFrame, alpha: float) -> Saving | None:
    """Return the mean calls after a would-be stop; None with fewer than two owners that had one."""
    had = decided[decided[WOULD_STOPPED] > 0]
    ratio = cohort_ratio(
        had[CALLS_AFTER].to_numpy(dtype=np.float64), had[WOULD_STOPPED].to_numpy(dtype=np.float64)
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
