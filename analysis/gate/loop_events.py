"""Loop events: how often other protections ended a turn, by cohort, as a note that decides nothing.

A loop event reports that a protection ended a turn: a guard, or a limit of the host. Those of other
protections than the evaluated guard should not change with its mode (domain rule
`existing_guard_changed`, which a host reports). More or fewer of them among the treated are a
reason to look. No event at all is unknown and not a rate of zero.
"""

from typing import NamedTuple

import pandas as pd

from guardwave.analysis.frames import COHORT, WaveEvidence
from guardwave.analysis.inference import CohortRatio, cohort_ratio, difference, margins
from guardwave.analysis.report import Note, Topic
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Metric

LOOPS = "loops"
# Rates are per so many prompts: such events are rare.
PROMPTS = 1000
NO_LOOP_EVENTS = (
    "No loop event of another protection came from either side. Hosts without loops and hosts that "
    "do not send agent.guard.loop_detected look alike, so this is unknown, and not a rate of zero."
)
NO_LOOPS_BY_OWNER = (
    "Loop events of other protections are unknown by owner: evidence made from counters has none, "
    "and some of this was imported without them."
)


class _Sides(NamedTuple):
    treated: CohortRatio
    reference: CohortRatio


def other_protections(
    evidence: WaveEvidence, joined: pd.DataFrame | None, policy: GatePolicy
) -> Note:
    """Report loop events of other protections per 1,000 prompts of both cohorts.

    The interval of their difference is two-sided at 1 - 2 alpha, CR2 by owner. Below the policy's
    minimum data the sentence warns not to rely on it. `joined` are guard totals beside cohort and
    prompts (`joined_totals`).
    """
    names = (evidence.treated.value, evidence.reference.value)
    return loops_note(joined, (evidence.treated, evidence.reference), names, policy=policy)


def loops_note(
    joined: pd.DataFrame | None,
    cohorts: tuple[Cohort, Cohort],
    names: tuple[str, str],
    *,
    policy: GatePolicy,
    unknown: str = NO_LOOPS_BY_OWNER,
) -> Note:
    """Report the same for any two cohorts, (treated, reference), under the names given to them.

    `unknown` is the sentence for evidence without loop events by owner.
    """
    if joined is None or LOOPS not in joined.columns:
        return _note(unknown, {})
    sides = _sides(joined, cohorts)
    if sides is None:
        return _note("Loop events of other protections are unknown: a cohort has no prompt.", {})
    treated, reference = (PROMPTS * side.ratio for side in sides)
    if treated == reference == 0.0:
        return _note(NO_LOOP_EVENTS, {})
    numbers: dict[str, int | float | str] = {
        "treated_per_1000": treated,
        "reference_per_1000": reference,
        "difference_per_1000": treated - reference,
    }
    interval, words = _interval(sides, names, policy)
    numbers |= interval
    sentence = (
        f"Other protections ended {treated:.2f} turns per 1,000 prompts in {names[0]}, "
        f"{reference:.2f} in {names[1]}; difference {treated - reference:+.2f} ({words})."
    )
    return _note(sentence, numbers)


def _interval(
    sides: _Sides, names: tuple[str, str], policy: GatePolicy
) -> tuple[dict[str, int | float | str], str]:
    """Return the ends of the difference's interval, if it has any, and the interval in words."""
    contrast = difference(sides.treated, sides.reference)
    if contrast is None:
        return {}, "no interval, since a cohort has a single owner"
    if contrast.standard_error <= 0.0:
        return {}, "no interval, since no owner differs from another"
    alpha = policy.alpha
    low, high = (PROMPTS * contrast.upper(level) for level in (alpha, 1.0 - alpha))
    words = f"{100 - 200 * alpha:g} % interval {low:+.2f} to {high:+.2f}"
    # Any rate of prompts has the same minimum data; this one has no margin to add to it.
    if margins.shortfalls(Metric.DISRUPTION, 0.0, sides, cohorts=names, policy=policy):
        words += ", of too little data to rely on"
    return {"difference_low": low, "difference_high": high}, words


def _sides(joined: pd.DataFrame, cohorts: tuple[Cohort, Cohort]) -> _Sides | None:
    with_prompts = joined[joined["started"] > 0]
    by_cohort = (with_prompts[with_prompts[COHORT] == cohort.value] for cohort in cohorts)
    treated, reference = (
        cohort_ratio(rows[LOOPS].to_numpy("float64"), rows["started"].to_numpy("float64"))
        for rows in by_cohort
    )
    return None if treated is None or reference is None else _Sides(treated, reference)


def _note(sentence: str, numbers: dict[str, int | float | str]) -> Note:
    return Note(Topic.OTHER_PROTECTIONS, False, sentence, numbers)
