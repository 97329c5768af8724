"""How often other protections ended a turn, by cohort: it decides nothing; unheard is not zero.

A loop event says that some protection ended a turn: a guard, or a limit of the host. Those of
others than the evaluated guard should not move when its mode does (domain rule
`existing_guard_changed`, which a host reports): more of them among the treated, or fewer, is a
reason to look.
"""

from typing import NamedTuple

import pandas as pd

from analysis import margins
from analysis.cohorts import CohortRatio, cohort_ratio, difference
from analysis.evidence import WaveEvidence
from analysis.frames import COHORT
from analysis.report import Note, Topic
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric

LOOPS = "loops"
# Rates are told for so many prompts: such events are rare.
PROMPTS = 1000
UNHEARD = (
    "No loop event of another protection came from either side. Hosts without loops and hosts that "
    "do not send agent.guard.loop_detected look alike, so this is unknown, and not a rate of zero."
)
NOT_KEPT = (
    "Loop events of other protections are unknown by owner: evidence made from counters has none, "
    "and some of this was imported without them."
)


class _Sides(NamedTuple):
    treated: CohortRatio
    reference: CohortRatio


def other_protections(
    evidence: WaveEvidence, joined: pd.DataFrame | None, policy: GatePolicy
) -> Note:
    """Tell loop events of other protections per 1,000 prompts of both cohorts, and how they differ.

    The interval of the difference is two-sided at 1 - 2 alpha, CR2 by owner, and told as not to be
    relied on below the policy's minimum data. `joined` are guard totals beside cohort and prompts
    (analysis.consistency.joined_totals).
    """
    names = (evidence.treated.value, evidence.reference.value)
    return loops_note(joined, (evidence.treated, evidence.reference), names, policy=policy)


def loops_note(
    joined: pd.DataFrame | None,
    cohorts: tuple[Cohort, Cohort],
    names: tuple[str, str],
    *,
    policy: GatePolicy,
    not_kept: str = NOT_KEPT,
) -> Note:
    """Tell the same of any two cohorts, (treated, reference), under the names given to them."""
    if joined is None or LOOPS not in joined.columns:
        return _note(not_kept, {})
    sides = _sides(joined, cohorts)
    if sides is None:
        return _note("Loop events of other protections are unknown: a cohort has no prompt.", {})
    treated, reference = (PROMPTS * side.ratio for side in sides)
    if treated == reference == 0.0:
        return _note(UNHEARD, {})
    numbers: dict[str, int | float | str] = {
        "treated_per_1000": treated,
        "reference_per_1000": reference,
        "difference_per_1000": treated - reference,
    }
    interval, told = _interval(sides, names, policy)
    numbers |= interval
    sentence = (
        f"Other protections ended {treated:.2f} turns per 1,000 prompts in {names[0]}, "
        f"{reference:.2f} in {names[1]}; difference {treated - reference:+.2f} ({told})."
    )
    return _note(sentence, numbers)


def _interval(
    sides: _Sides, names: tuple[str, str], policy: GatePolicy
) -> tuple[dict[str, int | float | str], str]:
    """Return the ends of the difference's interval, if there are any, and what to say of them."""
    contrast = difference(sides.treated, sides.reference)
    if contrast is None:
        return {}, "no interval, since a cohort has a single owner"
    if contrast.standard_error <= 0.0:
        return {}, "no interval, since no owner differs from another"
    alpha = policy.alpha
    low, high = (PROMPTS * contrast.upper(level) for level in (alpha, 1.0 - alpha))
    told = f"{100 - 200 * alpha:g} % interval {low:+.2f} to {high:+.2f}"
    # Any rate of prompts has the same minimum data; this one has no margin to add to it.
    if margins.shortfalls(Metric.DISRUPTION, 0.0, sides, cohorts=names, policy=policy):
        told += ", of too little data to rely on"
    return {"difference_low": low, "difference_high": high}, told


def _sides(joined: pd.DataFrame, cohorts: tuple[Cohort, Cohort]) -> _Sides | None:
    with_prompts = joined[joined["started"] > 0]
    found = []
    for cohort in cohorts:
        own = with_prompts[with_prompts[COHORT] == cohort.value]
        found.append(
            cohort_ratio(
                own[LOOPS].to_numpy(dtype="float64"), own["started"].to_numpy(dtype="float64")
            )
        )
    treated, reference = found
    return None if treated is None or reference is None else _Sides(treated, reference)


def _note(sentence: str, numbers: dict[str, int | float | str]) -> Note:
    return Note(Topic.OTHER_PROTECTIONS, False, sentence, numbers)
