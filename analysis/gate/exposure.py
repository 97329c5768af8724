"""Exposure: the share of each cohort's prompts that ran at the cohort's mode.

Cohorts are compared as they were drawn, at whatever mode their prompts ran (intention to treat). So
untreated prompts dilute the harm: of a share s of treated prompts about s times the harm shows.
"""

from collections.abc import Mapping
from fractions import Fraction

import pandas as pd

from guardwave.analysis.frames import Share, WaveEvidence
from guardwave.analysis.report import Check, CheckResult, Note, Topic
from guardwave.analysis.sentences import listed, share
from guardwave.reducer.rollout.state import COHORT_MODES
from guardwave.reducer.vocabulary import Cohort, Gate, Mode, Verdict

# With less, a harm of twice the margin wherever the guard ran could stay within the margin.
LEAST_SHARE = Fraction(1, 2)
MODE = "mode"
_COHORT, _STARTED = "cohort", "started"


def exposure_of(owner_days: pd.DataFrame, gate: Gate) -> Mapping[Cohort, Share] | None:
    """Return how many of each cohort's started prompts ran at the cohort's mode.

    `owner_days` are those of the days used, with `cohort`, `started` and `mode`: the mode that the
    owner was assigned, lower for an ineligible owner of the cohort. None in the shadow gate, which
    treats nobody, and without the column `mode`.
    """
    if gate is Gate.SHADOW or MODE not in owner_days.columns:
        return None
    return {
        cohort: _at_mode(owner_days[owner_days[_COHORT] == cohort.value], mode)
        for cohort, mode in _modes(gate).items()
    }


def exposure(evidence: WaveEvidence) -> CheckResult | None:
    """Judge whether the treated cohort was treated; None in shadow and where modes are missing.

    Without a prompt at its mode there is no data about the guard; less than half proves little.
    """
    if evidence.gate is Gate.SHADOW or evidence.exposure is None:
        return None
    modes = _modes(evidence.gate)
    treated = evidence.treated
    at_mode = evidence.exposure[treated]
    numbers: dict[str, int | float | str] = {"needed_share": float(LEAST_SHARE)}
    for cohort, prompts in sorted(evidence.exposure.items()):
        numbers |= {f"{cohort}_at_mode": prompts.part, f"{cohort}_prompts": prompts.whole}
    if at_mode.whole == 0:
        sentence = f"Exposure is not known: no prompt of {treated} was started."
        return CheckResult(Check.EXPOSURE, Verdict.NO_DATA, sentence, numbers)
    if at_mode.part == 0:
        sentence = (
            f"Nobody was treated: of {at_mode.whole:,} prompts of {treated} none ran in "
            f"{modes[treated]}."
        )
        return CheckResult(Check.EXPOSURE, Verdict.NO_DATA, sentence, numbers)
    parts = [_part(cohort, prompts, modes[cohort]) for cohort, prompts in _in_order(evidence)]
    sentence = listed(parts)
    if at_mode.part < LEAST_SHARE * at_mode.whole:
        sentence += f"; at least {100 * float(LEAST_SHARE):g} % of {treated} is asked for."
        return CheckResult(Check.EXPOSURE, Verdict.UNPROVEN, sentence, numbers)
    return CheckResult(Check.EXPOSURE, Verdict.WITHIN, f"{sentence}.", numbers)


def missing_exposure(evidence: WaveEvidence) -> Note | None:
    """Note that nobody reported the modes of prompts; None where somebody did."""
    if evidence.gate is Gate.SHADOW or evidence.exposure is not None:
        return None
    sentence = (
        "The modes of prompts were not reported, so it is not known whether the treated cohort was "
        "treated."
    )
    return Note(Topic.EXPOSURE, False, sentence, {})


def _modes(gate: Gate) -> Mapping[Cohort, Mode]:
    return COHORT_MODES[Mode(gate.value)]


def _at_mode(rows: pd.DataFrame, mode: Mode) -> Share:
    ran = rows.loc[rows[MODE] == mode.value, _STARTED]
    return Share(int(ran.sum()), int(rows[_STARTED].sum()))


def _in_order(evidence: WaveEvidence) -> list[tuple[Cohort, Share]]:
    """Return the shares of both cohorts, treated first, without a cohort that has no prompt."""
    shares = evidence.exposure or {}
    return [
        (cohort, shares[cohort])
        for cohort in (evidence.treated, evidence.reference)
        if cohort in shares and shares[cohort].whole
    ]


def _part(cohort: Cohort, prompts: Share, mode: Mode) -> str:
    part = share(prompts.part, prompts.whole)
    return f"{prompts.part:,} of {prompts.whole:,} prompts of {cohort} ({part}) ran in {mode}"
