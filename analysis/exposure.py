"""Exposure: how much of what each cohort did ran at the mode that its cohort stands for.

Cohorts are compared as they were drawn, whatever ran (intention to treat), so what stays untreated
thins the harm that is seen: a share s of treated prompts shows about s times of it.
"""

from collections.abc import Mapping
from fractions import Fraction

import pandas as pd

from analysis.evidence import Share, WaveEvidence
from analysis.report import Check, CheckResult, Note, Topic
from analysis.sentences import listed, share
from reducer.rollout.phases import COHORT_MODES
from reducer.vocabulary import Cohort, Gate, Mode, Verdict

# With less, a harm of twice the margin wherever the guard ran could stay within it.
LEAST_SHARE = Fraction(1, 2)
MODE = "mode"
_COHORT, _STARTED = "cohort", "started"


def exposure_of(owner_days: pd.DataFrame, gate: Gate) -> Mapping[Cohort, Share] | None:
    """Return, of each cohort's started prompts, those that ran at the cohort's mode.

    `owner_days` are those of the days used, with `cohort`, `started` and `mode`: the mode that the
    owner was answered, lower for an ineligible owner of the cohort. None in the shadow gate, which
    treats nobody, and without the column `mode`.
    """
    if gate is Gate.SHADOW or MODE not in owner_days.columns:
        return None
    return {
        cohort: _at_mode(owner_days[owner_days[_COHORT] == cohort.value], mode)
        for cohort, mode in _modes(gate).items()
    }


def exposure(evidence: WaveEvidence) -> CheckResult | None:
    """Judge whether the treated cohort was treated; None where nobody told, or nobody is treated.

    No prompt at its mode is no data about the guard, and below a half of them proves little.
    """
    if evidence.gate is Gate.SHADOW or evidence.exposure is None:
        return None
    modes = _modes(evidence.gate)
    treated = evidence.treated
    seen = evidence.exposure[treated]
    numbers: dict[str, int | float | str] = {"needed_share": float(LEAST_SHARE)}
    for cohort, own in sorted(evidence.exposure.items()):
        numbers |= {f"{cohort}_at_mode": own.part, f"{cohort}_prompts": own.whole}
    if seen.whole == 0:
        sentence = f"Exposure is not known: no prompt of {treated} was started."
        return CheckResult(Check.EXPOSURE, Verdict.NO_DATA, sentence, numbers)
    if seen.part == 0:
        sentence = (
            f"Nobody was treated: of {seen.whole:,} prompts of {treated} none ran in "
            f"{modes[treated]}."
        )
        return CheckResult(Check.EXPOSURE, Verdict.NO_DATA, sentence, numbers)
    told = listed([_told(cohort, own, modes[cohort]) for cohort, own in _in_order(evidence)])
    if seen.part < LEAST_SHARE * seen.whole:
        asked = f"{told}; at least {100 * float(LEAST_SHARE):g} % of {treated} is asked for."
        return CheckResult(Check.EXPOSURE, Verdict.UNPROVEN, asked, numbers)
    return CheckResult(Check.EXPOSURE, Verdict.WITHIN, f"{told}.", numbers)


def untold_exposure(evidence: WaveEvidence) -> Note | None:
    """Say that nobody told at which modes prompts ran; None where somebody did."""
    if evidence.gate is Gate.SHADOW or evidence.exposure is not None:
        return None
    sentence = (
        "At which modes prompts ran was not told, so whether the treated cohort was treated is not "
        "known."
    )
    return Note(Topic.EXPOSURE, False, sentence, {})


def _modes(gate: Gate) -> Mapping[Cohort, Mode]:
    return COHORT_MODES[Mode(gate.value)]


def _at_mode(rows: pd.DataFrame, mode: Mode) -> Share:
    ran = rows.loc[rows[MODE] == mode.value, _STARTED]
    return Share(int(ran.sum()), int(rows[_STARTED].sum()))


def _in_order(evidence: WaveEvidence) -> list[tuple[Cohort, Share]]:
    """Return the shares of both cohorts, treated first; of an empty one nothing is said."""
    found = evidence.exposure or {}
    sides = (evidence.treated, evidence.reference)
    return [(cohort, found[cohort]) for cohort in sides if cohort in found and found[cohort].whole]


def _told(cohort: Cohort, own: Share, mode: Mode) -> str:
    return (
        f"{own.part:,} of {own.whole:,} prompts of {cohort} ({share(own.part, own.whole)}) ran in "
        f"{mode}"
    )
