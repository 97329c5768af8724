"""Version purity: a wave compares the versions that it pins, or it compares nothing."""

from collections.abc import Mapping
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd

from analysis import agreement
from analysis.evidence import Share, WaveEvidence
from analysis.frames import COHORT, OWNER, Outcomes
from analysis.guard_totals import checked_guard_totals
from analysis.pinned import judge_pinned
from analysis.report import Check, CheckResult
from analysis.rerandomisation import DrawKey, Draws
from analysis.sentences import listed, share
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Cohort, Metric, Verdict

# Of a cohort's prompts, from which share on those of other versions make the comparison invalid.
OFF_PIN_LIMIT = Fraction(1, 100)
# Below it the share differs between cohorts by more than chance.
ALPHA = 0.001
OFF_PIN = "off_pin"
_UNTOLD = "Version purity is not known: nobody reported the versions of prompts."


def version_purity(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> CheckResult:
    """Judge prompts of versions that the wave does not pin, then those of each that it pins."""
    pure = _off_pin(evidence, totals, policy)
    if pure.verdict is not Verdict.WITHIN:
        return pure
    # Versions are compared by the same random sets of owners.
    draws = Draws(DrawKey(evidence.environment, evidence.guard, evidence.wave))
    compare = partial(_p_of, evidence, totals, policy=policy, draws=draws)
    return judge_pinned(pure, evidence, totals, p_between=compare, alpha=ALPHA)


def _off_pin(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> CheckResult:
    """Judge off-pin prompts by cohort and between cohorts; they stay in, as intended to treat."""
    numbers: dict[str, int | float | str] = {"allowed_below_share": float(OFF_PIN_LIMIT)}
    if evidence.off_pin is None:
        sentence = evidence.unknown.get(Check.VERSION_PURITY, _UNTOLD)
        return CheckResult(Check.VERSION_PURITY, Verdict.NO_DATA, sentence, numbers)
    seen = {cohort: part for cohort, part in evidence.off_pin.items() if part.whole}
    if not seen:
        sentence = "Version purity is not known: no prompt was started."
        return CheckResult(Check.VERSION_PURITY, Verdict.NO_DATA, sentence, numbers)
    for cohort, off in sorted(seen.items()):
        numbers |= {f"{cohort}_off_pin": off.part, f"{cohort}_prompts": off.whole}
    if not any(off.part for off in seen.values()):
        sentence = "Every prompt came from a pinned version."
        return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, sentence, numbers)
    sentence = f"Versions that are not pinned started {_told(seen)}"
    if any(off.part >= OFF_PIN_LIMIT * off.whole for off in seen.values()):
        asked = f"{sentence}; less than {100 * float(OFF_PIN_LIMIT):g} % is asked for."
        return CheckResult(Check.VERSION_PURITY, Verdict.INVALID, asked, numbers)
    p = _p_between(evidence, totals, policy)
    if p is None:
        return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, f"{sentence}.", numbers)
    numbers["p_between"] = p
    if p < ALPHA:
        apart = f"{sentence}; the cohorts differ by more than chance (p = {p:.2g})."
        return CheckResult(Check.VERSION_PURITY, Verdict.INVALID, apart, numbers)
    alike = f"{sentence}; the cohorts do not differ by more than chance (p = {p:.2g})."
    return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, alike, numbers)


def _told(seen: Mapping[Cohort, Share]) -> str:
    return listed(
        [
            f"{off.part:,} of {off.whole:,} prompts ({share(off.part, off.whole)}) in {cohort}"
            for cohort, off in sorted(seen.items())
        ]
    )


def _p_between(evidence: WaveEvidence, totals: pd.DataFrame, policy: GatePolicy) -> float | None:
    """Compare off-pin prompts by owner; None where they were not reported so, or nobody to."""
    if evidence.guard_totals is None:
        return None
    columns = checked_guard_totals(evidence.guard_totals)
    if OFF_PIN not in columns:
        return None
    own = columns.set_index(OWNER)[OFF_PIN].reindex(totals[OWNER])
    draws = Draws(DrawKey(evidence.environment, evidence.guard, evidence.wave))
    return _p_of(evidence, totals, own, policy=policy, draws=draws)


def _p_of(
    evidence: WaveEvidence,
    totals: pd.DataFrame,
    prompts: pd.Series,
    *,
    policy: GatePolicy,
    draws: Draws,
) -> float | None:
    """Compare a part of the prompts, by owner in the order of `totals`; None with nobody to.

    An owner whose part is missing is left out.
    """
    if evidence.treated is evidence.reference:
        return None
    joined = totals.assign(part=prompts.to_numpy())
    sides = joined[COHORT].isin([evidence.treated.value, evidence.reference.value])
    joined = joined[sides & (joined["started"] > 0) & joined["part"].notna()]
    is_treated = (joined[COHORT] == evidence.treated.value).to_numpy(dtype=np.bool_)
    if not 0 < int(is_treated.sum()) < len(is_treated):
        return None
    own = Outcomes(
        tuple(joined[OWNER]),
        is_treated,
        joined["part"].to_numpy(dtype=np.float64),
        joined["started"].to_numpy(dtype=np.float64),
    )
    return agreement.two_sided_p(
        own, Metric.DISRUPTION, draws.key, agreement.strict(policy, ALPHA), draws=draws
    )
