"""Version purity: whether a wave compares the versions that it pins, and only those.

First prompts of versions that are not pinned, then each pinned version: it must have run in the
treated cohort, and in both cohorts in the same proportion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from guardwave.analysis.frames import (
    COHORT,
    OWNER,
    Outcomes,
    Share,
    WaveEvidence,
    checked_guard_totals,
)
from guardwave.analysis.inference import DrawKey, Draws, rerandomisation
from guardwave.analysis.report import Check, CheckResult
from guardwave.analysis.sentences import listed, share
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Cohort, Metric, Verdict

# From this share of a cohort's prompts on, other versions make the comparison invalid.
OFF_PIN_LIMIT = Fraction(1, 100)
# Below it a share differs between cohorts by more than chance.
ALPHA = 0.001
OFF_PIN = "off_pin"
_NOT_REPORTED = "Version purity is not known: nobody reported the versions of prompts."
_UNKNOWN_VERSIONS = (
    "The pinned versions were not reported, so it is not known whether each of them ran."
)
_VERSION, _STARTED = "version", "started"


def version_purity(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> CheckResult:
    """Judge the prompts of versions that the wave does not pin, then those of each pinned one."""
    pure = _off_pin(evidence, totals, policy)
    return pure if pure.verdict is not Verdict.WITHIN else _pinned(pure, evidence, totals, policy)


def pinned_prompts(owner_days: pd.DataFrame, pin: Sequence[str]) -> pd.DataFrame:
    """Return the started prompts of each owner (the index) on each pinned version (the columns).

    `owner_days` are those of the days used, with `owner`, `version` and `started`.
    """
    sums = owner_days.groupby([OWNER, _VERSION], sort=True)[_STARTED].sum()
    return sums.unstack(fill_value=0).reindex(columns=list(pin), fill_value=0)


def _off_pin(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> CheckResult:
    """Judge off-pin prompts in each cohort and between cohorts; the comparison keeps them."""
    numbers: dict[str, int | float | str] = {"allowed_below_share": float(OFF_PIN_LIMIT)}
    if evidence.off_pin is None:
        sentence = evidence.unknown.get(Check.VERSION_PURITY, _NOT_REPORTED)
        return CheckResult(Check.VERSION_PURITY, Verdict.NO_DATA, sentence, numbers)
    off_pin = {cohort: part for cohort, part in evidence.off_pin.items() if part.whole}
    if not off_pin:
        sentence = "Version purity is not known: no prompt was started."
        return CheckResult(Check.VERSION_PURITY, Verdict.NO_DATA, sentence, numbers)
    for cohort, off in sorted(off_pin.items()):
        numbers |= {f"{cohort}_off_pin": off.part, f"{cohort}_prompts": off.whole}
    if not any(off.part for off in off_pin.values()):
        sentence = "Every prompt came from a pinned version."
        return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, sentence, numbers)
    sentence = f"Versions that are not pinned started {_by_cohort(off_pin)}"
    if any(off.part >= OFF_PIN_LIMIT * off.whole for off in off_pin.values()):
        above = f"{sentence}; less than {100 * float(OFF_PIN_LIMIT):g} % is asked for."
        return CheckResult(Check.VERSION_PURITY, Verdict.INVALID, above, numbers)
    p = _p_between(evidence, totals, policy)
    if p is None:
        return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, f"{sentence}.", numbers)
    numbers["p_between"] = p
    if p < ALPHA:
        apart = f"{sentence}; the cohorts differ by more than chance (p = {p:.2g})."
        return CheckResult(Check.VERSION_PURITY, Verdict.INVALID, apart, numbers)
    together = f"{sentence}; the cohorts do not differ by more than chance (p = {p:.2g})."
    return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, together, numbers)


def _pinned(
    pure: CheckResult, evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy
) -> CheckResult:
    """Judge whether each pinned version ran in the treated cohort, and equally in both cohorts.

    `pure` is the result of the prompts of other versions, which is within. Where the cohorts differ
    in their part of a version, the effects of guard and version cannot be separated.
    """
    if evidence.pinned is None:
        return replace(pure, sentence=f"{pure.sentence} {_UNKNOWN_VERSIONS}")
    prompts = evidence.pinned.reindex(totals[OWNER], fill_value=0)
    ran = _in_cohort(prompts, totals, evidence.treated)
    silent = [str(version) for version, count in ran.items() if count == 0]
    if len(ran) == 1 and not silent:
        return pure
    numbers = {**pure.numbers, "pinned_versions": len(ran), "pinned_without_prompts": len(silent)}
    # All versions share the random sets of owners.
    draws = Draws(DrawKey(evidence.environment, evidence.guard, evidence.wave))
    # A single version cannot be confounded with the guard, and one that nobody ran differs nowhere.
    for version in [name for name in prompts.columns if len(ran) > 1 and prompts[name].any()]:
        p = _p_of(evidence, totals, prompts[version], policy=policy, draws=draws)
        if p is not None and p < ALPHA:
            sides = (evidence.treated, evidence.reference)
            parts = [_part(prompts[version], totals, cohort) for cohort in sides]
            sentence = (
                f"Version {version} started {listed(parts)}: the cohorts differ by more than "
                f"chance (p = {p:.2g}), and what the guard does cannot be separated from what the "
                "version does; start a wave that pins one of them."
            )
            return replace(
                pure,
                verdict=Verdict.INVALID,
                sentence=sentence,
                numbers={**numbers, "p_versions": p},
            )
    if silent:
        sentence = _unproven(silent, evidence.treated, is_all=len(silent) == len(ran))
        return replace(pure, verdict=Verdict.UNPROVEN, sentence=sentence, numbers=numbers)
    counts = listed([f"{count:,} on {version}" for version, count in ran.items()])
    sentence = f"{pure.sentence} Prompts of {evidence.treated} started: {counts}."
    return replace(pure, sentence=sentence, numbers=numbers)


def _unproven(silent: Sequence[str], cohort: Cohort, *, is_all: bool) -> str:
    is_one = len(silent) == 1
    subject = f"Version {listed(silent)} is" if is_one else f"Versions {listed(silent)} are"
    it = "it" if is_one else "them"
    sentence = f"{subject} pinned, but {cohort} started no prompt on {it} on the days used"
    if is_all:
        return f"{sentence}."
    return f"{sentence}; leave {it} out of the pin: start a wave that pins only what runs."


def _in_cohort(prompts: pd.DataFrame, totals: pd.DataFrame, cohort: Cohort) -> pd.Series:
    return prompts[(totals[COHORT] == cohort.value).to_numpy()].sum()


def _part(prompts: pd.Series, totals: pd.DataFrame, cohort: Cohort) -> str:
    is_member = (totals[COHORT] == cohort.value).to_numpy()
    part, whole = int(prompts[is_member].sum()), int(totals.loc[is_member, _STARTED].sum())
    return f"{part:,} of {whole:,} prompts ({share(part, whole)}) in {cohort}"


def _by_cohort(off_pin: Mapping[Cohort, Share]) -> str:
    return listed(
        [
            f"{off.part:,} of {off.whole:,} prompts ({share(off.part, off.whole)}) in {cohort}"
            for cohort, off in sorted(off_pin.items())
        ]
    )


def _p_between(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> float | None:
    """Return p of equal off-pin parts; None where they were not reported by owner."""
    if evidence.guard_totals is None:
        return None
    columns = checked_guard_totals(evidence.guard_totals)
    if OFF_PIN not in columns:
        return None
    prompts = columns.set_index(OWNER)[OFF_PIN].reindex(totals[OWNER])
    draws = Draws(DrawKey(evidence.environment, evidence.guard, evidence.wave))
    return _p_of(evidence, totals, prompts, policy=policy, draws=draws)


def _p_of(
    evidence: WaveEvidence,
    totals: pd.DataFrame,
    prompts: pd.Series,
    *,
    policy: GatePolicy,
    draws: Draws,
) -> float | None:
    """Return p of equal parts in both cohorts; None where a cohort has no owner to compare.

    `prompts` is the part of each owner, in the order of `totals`. An owner whose part is missing is
    left out.
    """
    if evidence.treated is evidence.reference:
        return None
    joined = totals.assign(part=prompts.to_numpy())
    sides = joined[COHORT].isin([evidence.treated.value, evidence.reference.value])
    joined = joined[sides & (joined["started"] > 0) & joined["part"].notna()]
    is_treated = (joined[COHORT] == evidence.treated.value).to_numpy(dtype=np.bool_)
    if not 0 < int(is_treated.sum()) < len(is_treated):
        return None
    policy = rerandomisation.two_sided_policy(policy, ALPHA)
    outcomes = Outcomes(
        tuple(joined[OWNER]),
        is_treated,
        joined["part"].to_numpy(dtype=np.float64),
        joined["started"].to_numpy(dtype=np.float64),
    )
    return rerandomisation.two_sided_p(outcomes, Metric.DISRUPTION, draws.key, policy, draws=draws)
