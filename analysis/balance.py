"""The balance check: the owners that are compared are those that the draw made alike."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from analysis import sample_ratio
from analysis.evidence import DrawInputs, WaveEvidence
from analysis.frames import COHORT, OWNER, Settled
from analysis.report import Check, CheckResult
from analysis.sentences import listed, percent
from reducer.rollout import draw
from reducer.vocabulary import Cohort, Invariant, Verdict


class Finding(NamedTuple):
    """What one part of the check found; when all is well only the headlines are told."""

    verdict: Verdict
    sentence: str
    numbers: Mapping[str, int | float | str]
    is_headline: bool = False


class CohortOwners(NamedTuple):
    """Owners of one cohort: on the roster, and of those the ones with a prompt."""

    cohort: Cohort
    rostered: int
    with_data: int


def balance(evidence: WaveEvidence, settled: Settled) -> CheckResult:
    """Return the worst of replay, sample ratio, missing owners and switching."""
    totals = settled.totals
    active = totals.loc[totals["started"] > 0, COHORT]
    sides = [
        CohortOwners(cohort, evidence.rostered.get(cohort, 0), int((active == cohort.value).sum()))
        for cohort in (evidence.treated, evidence.reference)
    ]
    findings = (
        _switching(evidence, settled.switched),
        _replay(evidence, totals, settled.drawn),
        *_proportions(evidence, sides[0], sides[1]),
    )
    worst = max((finding.verdict for finding in findings), key=lambda verdict: verdict.rank)
    told = [finding for finding in findings if finding.verdict is worst]
    if worst is Verdict.WITHIN:
        told = [finding for finding in told if finding.is_headline]
    numbers = {key: value for each in findings for key, value in each.numbers.items()}
    return CheckResult(
        Check.BALANCE, worst, " ".join(finding.sentence for finding in told), numbers
    )


def drawn_owners(evidence: WaveEvidence) -> frozenset[str] | None:
    """Make the draw again and return who it treats; None where it cannot be made.

    Raises:
        ValueError: for a roster that names an owner twice or a share out of range.
    """
    inputs = evidence.draw
    if inputs is None or inputs.algorithm != draw.ALGORITHM:
        return None
    drawn = draw.draw(
        evidence.environment,
        evidence.guard,
        inputs.salt,
        inputs.owners,
        share_bps=inputs.share_bps,
    )
    return frozenset(drawn.pseudonyms[: drawn.treated])


def _switching(evidence: WaveEvidence, owners: int) -> Finding:
    counted = evidence.violations
    prompts = counted.get(Invariant.TREATMENT_SWITCHED, 0)
    numbers = {"switched": prompts}
    told = [f"{prompts:,} prompts were in two modes or cohorts"] if prompts else []
    if owners:
        numbers["switched_owners"] = owners
        told.append(f"{owners:,} owners were in several cohorts")
    if told:
        sentence = f"{listed(told)}, so cohorts are mixed."
        return Finding(Verdict.INVALID, sentence, numbers)
    if Check.INVARIANTS in evidence.unknown and Invariant.TREATMENT_SWITCHED not in counted:
        sentence = "Whether prompts were in two modes or cohorts is not known."
        return Finding(Verdict.NO_DATA, sentence, {})
    return Finding(Verdict.WITHIN, "No prompt was in two cohorts.", numbers)


def _replay(evidence: WaveEvidence, totals: pd.DataFrame, drawn: frozenset[str] | None) -> Finding:
    inputs = evidence.draw
    if inputs is None:
        sentence = "The assignment cannot be replayed: the draw's inputs were not given."
        return Finding(Verdict.NO_DATA, sentence, {})
    if drawn is None:
        sentence = (
            f"The assignment cannot be replayed: the wave was drawn by {inputs.algorithm}, and "
            f"only {draw.ALGORITHM} is known."
        )
        return Finding(Verdict.NO_DATA, sentence, {})
    sides = {
        evidence.treated.value: drawn,
        evidence.reference.value: frozenset(inputs.owners) - drawn,
    }
    compared = totals[totals[COHORT].isin(list(sides))]
    pairs = zip(compared[OWNER], compared[COHORT], strict=True)
    wrong = sum(owner not in sides[cohort] for owner, cohort in pairs)
    numbers = {"replayed": len(compared), "mismatched": wrong}
    if wrong:
        sentence = (
            f"{wrong:,} of {len(compared):,} owners are not in the cohort that the draw gives them."
        )
        return Finding(Verdict.INVALID, sentence, numbers)
    counted = (len(drawn), len(inputs.owners) - len(drawn))
    claimed = tuple(
        evidence.rostered.get(side, 0) for side in (evidence.treated, evidence.reference)
    )
    if counted != claimed:
        sentence = (
            f"The draw gives {counted[0]:,} and {counted[1]:,} owners to the cohorts, and the "
            f"roster counts {claimed[0]:,} and {claimed[1]:,}."
        )
        return Finding(Verdict.INVALID, sentence, numbers)
    sentence = f"All {len(compared):,} owners seen are in the cohort that the draw gives them."
    return Finding(Verdict.WITHIN, sentence, numbers, is_headline=True)


def _proportions(
    evidence: WaveEvidence, treated: CohortOwners, reference: CohortOwners
) -> tuple[Finding, ...]:
    """Judge the two counts against each other; without a reference there is nothing to compare."""
    if treated.rostered + reference.rostered == 0:
        return (Finding(Verdict.NO_DATA, "The roster's size was not reported.", {}),)
    for side in (treated, reference):
        if side.with_data > side.rostered:
            sentence = (
                f"{side.cohort} has {side.with_data:,} owners with data and {side.rostered:,} on "
                "its roster."
            )
            return (Finding(Verdict.INVALID, sentence, {}),)
    if not (treated.rostered and reference.rostered):
        return ()
    return (
        *_assigned(evidence.draw, treated, reference),
        _with_data(treated, reference),
        _missing(treated, reference),
    )


def _assigned(
    inputs: DrawInputs | None, treated: CohortOwners, reference: CohortOwners
) -> tuple[Finding, ...]:
    if inputs is None or not 0 < inputs.share_bps < draw.BPS:
        return ()
    owners, share = treated.rostered + reference.rostered, inputs.share_bps / draw.BPS
    p = sample_ratio.p_value(treated.rostered, owners, share)
    seen = f"{treated.rostered:,} of {owners:,} owners assigned are {treated.cohort}"
    return (_ratio(seen, share, p, numbers={"p_assigned": p}),)


def _with_data(treated: CohortOwners, reference: CohortOwners) -> Finding:
    owners = treated.with_data + reference.with_data
    share = treated.rostered / (treated.rostered + reference.rostered)
    if owners == 0:
        return Finding(Verdict.NO_DATA, "No owner on the roster has data.", {})
    p = sample_ratio.p_value(treated.with_data, owners, share)
    numbers: dict[str, int | float | str] = {
        "p_with_data": p,
        f"{treated.cohort}_with_data": treated.with_data,
        f"{reference.cohort}_with_data": reference.with_data,
    }
    seen = f"{treated.with_data:,} of {owners:,} owners with data are {treated.cohort}"
    sight = sample_ratio.detectable(owners, share)
    limits = []
    if sight.low is not None:
        numbers["detectable_below_share"] = sight.low
        limits.append(f"below {percent(sight.low)}")
    if sight.high is not None:
        numbers["detectable_above_share"] = sight.high
        limits.append(f"above {percent(sight.high)}")
    told = f"; a true share {' or '.join(limits)} would be seen" if limits else ""
    return _ratio(seen, share, p, numbers=numbers, told=told)._replace(is_headline=True)


def _ratio(
    seen: str, share: float, p: float, *, numbers: Mapping[str, int | float | str], told: str = ""
) -> Finding:
    sentence = f"{seen} ({percent(share)} expected, p = {p:.2g}){told}."
    verdict = Verdict.INVALID if p < sample_ratio.ALPHA else Verdict.WITHIN
    return Finding(verdict, sentence, numbers)


def _missing(treated: CohortOwners, reference: CohortOwners) -> Finding:
    missing = [side.rostered - side.with_data for side in (treated, reference)]
    table = [[missing[0], treated.with_data], [missing[1], reference.with_data]]
    p = float(stats.fisher_exact(np.array(table)).pvalue)
    sentence = (
        f"{missing[0]:,} of {treated.rostered:,} owners of {treated.cohort} and {missing[1]:,} of "
        f"{reference.rostered:,} of {reference.cohort} have no data (p = {p:.2g})."
    )
    numbers: dict[str, int | float | str] = {
        "p_missing": p,
        f"{treated.cohort}_missing": missing[0],
        f"{reference.cohort}_missing": missing[1],
    }
    verdict = Verdict.INVALID if p < sample_ratio.ALPHA else Verdict.WITHIN
    return Finding(verdict, sentence, numbers)
