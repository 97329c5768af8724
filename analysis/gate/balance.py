"""Balance: whether the compared owners are those that the draw made comparable.

The check makes the draw again, tests the counts of owners against the planned share, and compares
how many owners of each cohort have no data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats

from guardwave.analysis.frames import COHORT, OWNER, DrawInputs, SettledTotals, WaveEvidence
from guardwave.analysis.report import Check, CheckResult
from guardwave.analysis.sentences import listed, percent
from guardwave.reducer.rollout import draw
from guardwave.reducer.vocabulary import Cohort, Invariant, Verdict

# So small because every evaluation of every wave tests it.
ALPHA = 0.001
DETECTION_RATE = 0.8


class Finding(NamedTuple):
    """The result of one part of the check; when all is well only headlines are reported."""

    verdict: Verdict
    sentence: str
    numbers: Mapping[str, int | float | str]
    is_headline: bool = False


class CohortOwners(NamedTuple):
    """Owners of one cohort: all on the roster, and those of them with a prompt."""

    cohort: Cohort
    rostered: int
    with_data: int


def balance(evidence: WaveEvidence, settled: SettledTotals) -> CheckResult:
    """Return the worst finding of switching, replay, sample ratio and missing owners."""
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
    reported = [finding for finding in findings if finding.verdict is worst]
    if worst is Verdict.WITHIN:
        reported = [finding for finding in reported if finding.is_headline]
    sentence = " ".join(finding.sentence for finding in reported)
    numbers = {key: value for finding in findings for key, value in finding.numbers.items()}
    return CheckResult(Check.BALANCE, worst, sentence, numbers)


def drawn_owners(evidence: WaveEvidence) -> frozenset[str] | None:
    """Make the draw again and return the owners that it treats; None where it cannot be made.

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
    violations = evidence.violations
    prompts = violations.get(Invariant.TREATMENT_SWITCHED, 0)
    numbers = {"switched": prompts}
    parts = [f"{prompts:,} prompts were in two modes or cohorts"] if prompts else []
    if owners:
        numbers["switched_owners"] = owners
        parts.append(f"{owners:,} owners were in several cohorts")
    if parts:
        sentence = f"{listed(parts)}, so cohorts are mixed."
        return Finding(Verdict.INVALID, sentence, numbers)
    if Check.INVARIANTS in evidence.unknown and Invariant.TREATMENT_SWITCHED not in violations:
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
    of_draw = (len(drawn), len(inputs.owners) - len(drawn))
    of_roster = tuple(
        evidence.rostered.get(side, 0) for side in (evidence.treated, evidence.reference)
    )
    if of_draw != of_roster:
        sentence = (
            f"The draw gives {of_draw[0]:,} and {of_draw[1]:,} owners to the cohorts, and the "
            f"roster counts {of_roster[0]:,} and {of_roster[1]:,}."
        )
        return Finding(Verdict.INVALID, sentence, numbers)
    sentence = f"All {len(compared):,} owners seen are in the cohort that the draw gives them."
    return Finding(Verdict.WITHIN, sentence, numbers, is_headline=True)


def _proportions(
    evidence: WaveEvidence, treated: CohortOwners, reference: CohortOwners
) -> tuple[Finding, ...]:
    """Test the counts of both cohorts; a roster without a reference leaves nothing to compare."""
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
    p = p_value(treated.rostered, owners, share)
    counts = f"{treated.rostered:,} of {owners:,} owners assigned are {treated.cohort}"
    return (_ratio(counts, share, p, numbers={"p_assigned": p}),)


def _with_data(treated: CohortOwners, reference: CohortOwners) -> Finding:
    owners = treated.with_data + reference.with_data
    share = treated.rostered / (treated.rostered + reference.rostered)
    if owners == 0:
        return Finding(Verdict.NO_DATA, "No owner on the roster has data.", {})
    p = p_value(treated.with_data, owners, share)
    numbers: dict[str, int | float | str] = {
        "p_with_data": p,
        f"{treated.cohort}_with_data": treated.with_data,
        f"{reference.cohort}_with_data": reference.with_data,
    }
    counts = f"{treated.with_data:,} of {owners:,} owners with data are {treated.cohort}"
    detectable = detectable_shares(owners, share)
    limits = []
    if detectable.low is not None:
        numbers["detectable_below_share"] = detectable.low
        limits.append(f"below {percent(detectable.low)}")
    if detectable.high is not None:
        numbers["detectable_above_share"] = detectable.high
        limits.append(f"above {percent(detectable.high)}")
    tail = f"; a true share {' or '.join(limits)} would be seen" if limits else ""
    return _ratio(counts, share, p, numbers=numbers, tail=tail)._replace(is_headline=True)


def _ratio(
    counts: str, share: float, p: float, *, numbers: Mapping[str, int | float | str], tail: str = ""
) -> Finding:
    sentence = f"{counts} ({percent(share)} expected, p = {p:.2g}){tail}."
    verdict = Verdict.INVALID if p < ALPHA else Verdict.WITHIN
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
    verdict = Verdict.INVALID if p < ALPHA else Verdict.WITHIN
    return Finding(verdict, sentence, numbers)


@dataclass(frozen=True, slots=True)
class DetectableShares:
    """The power of the test: it detects shares beyond these in 80 of 100 waves.

    `low` or `high` is None where it detects no share on that side so often.
    """

    low: float | None
    high: float | None


def p_value(treated: int, owners: int, share: float) -> float:
    """Return the exact two-sided binomial p of `treated` of `owners` for a planned share."""
    return float(stats.binomtest(treated, owners, share).pvalue)


def rejected_counts(owners: int, share: float) -> tuple[int, int]:
    """Return the rejected counts: at most the first (-1 for none), and at least the second."""
    # p falls on both sides of the expected count, so each limit is found by halving.
    expected = int(owners * share)
    low, high = -1, expected
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if p_value(middle, owners, share) < ALPHA else (low, middle)
    inside, outside = expected, owners + 1
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if p_value(middle, owners, share) < ALPHA:
            outside = middle
        else:
            inside = middle
    return low, outside


def detectable_shares(owners: int, share: float) -> DetectableShares:
    """Return the true shares from which on the test detects the imbalance in 80 of 100 waves."""
    low, high = rejected_counts(owners, share)

    def excess_power(true_share: float) -> float:
        below = float(stats.binom.cdf(low, owners, true_share))
        return below + float(stats.binom.sf(high - 1, owners, true_share)) - DETECTION_RATE

    return DetectableShares(
        optimize.brentq(excess_power, 0.0, share) if low >= 0 else None,
        optimize.brentq(excess_power, share, 1.0) if high <= owners else None,
    )
