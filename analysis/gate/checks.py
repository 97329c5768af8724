"""Checks of a gate: all that it asks for beside its metrics; a missing report is never a zero."""

from collections.abc import Mapping, Sequence

import pandas as pd

from guardwave.analysis.frames import (
    SettledTotals,
    Share,
    WaveDay,
    WaveEvidence,
    days_used,
    is_look_due,
)
from guardwave.analysis.gate.balance import balance
from guardwave.analysis.gate.exposure import exposure
from guardwave.analysis.gate.stop_consistency import stop_consistency
from guardwave.analysis.gate.version_purity import version_purity
from guardwave.analysis.report import Check, CheckResult
from guardwave.analysis.sentences import listed, share
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Gate, Verdict

_NOT_BY_COUNTERS = (
    "Coverage is not known: this evidence comes from counters, and the check needs the ordinals "
    "that only events carry."
)
_NO_ENDED = "Coverage is not known: no ended prompt was reported."
_NO_RECORD = "The contract is not known to hold: the last complete day has no record."


def run_checks(
    evidence: WaveEvidence, settled: SettledTotals, joined: pd.DataFrame | None, policy: GatePolicy
) -> tuple[CheckResult, ...]:
    """Return every check's result, in the order in which a gate's sentence prefers them.

    `joined` are the settled totals beside what the guard did (`joined_totals`).

    Raises:
        ValueError: for guard totals that fail their checks.
    """
    coverage = _coverage(evidence, policy)
    checks = [
        _dwell(evidence, policy),
        coverage,
        _contract(evidence, policy),
        _invariants(evidence, coverage),
        version_purity(evidence, settled.totals, policy),
    ]
    # Shadow has no cohorts to compare.
    if evidence.gate is not Gate.SHADOW:
        checks.append(balance(evidence, settled))
    exposed = exposure(evidence)
    if exposed is not None:
        checks.append(exposed)
    if evidence.gate is Gate.ENFORCE:
        is_due = is_look_due(evidence, policy)
        checks.append(stop_consistency(evidence, joined, policy, is_look_due=is_due))
    return tuple(checks)


def _dwell(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    """Judge whether the look is due: its days are declared at the start, so that nobody peeks."""
    days = days_used(evidence)
    used = len(days)
    needed = max(evidence.declared_days, policy.dwell_days)
    if Check.DWELL in evidence.unknown:
        of_frame = {"compared": used, "declared": needed}
        return CheckResult(Check.DWELL, Verdict.NO_DATA, evidence.unknown[Check.DWELL], of_frame)
    skipped = [day for day in evidence.days if not day.is_complete]
    sentence = f"{used} of {needed} complete days"
    if skipped:
        does = "day does" if len(skipped) == 1 else "days do"
        last = _last_of(skipped, skipped[-1].reason or "not complete")
        sentence += f"; {len(skipped)} {does} not count ({last})"
    inexact = [day for day in evidence.days if day.notes and day.day in days]
    if inexact:
        are = "is" if len(inexact) == 1 else "are"
        last = _last_of(inexact, "; ".join(note.sentence for note in inexact[-1].notes))
        sentence += f"; {len(inexact)} of the days used {are} not exact ({last})"
    so_far = Verdict.UNPROVEN if used else Verdict.NO_DATA
    verdict = Verdict.WITHIN if is_look_due(evidence, policy) else so_far
    numbers = {"complete": used, "declared": needed, "not_counted": len(skipped)}
    if inexact:
        numbers["noted"] = len(inexact)
    return CheckResult(Check.DWELL, verdict, f"{sentence}.", numbers)


def _last_of(days: Sequence[WaveDay], reason: str) -> str:
    """Return the last of the days with its reason; the page of the wave has those of all days."""
    which = "" if len(days) == 1 else "the last, "
    return f"{which}{days[-1].day.isoformat()}: {reason}"


def _coverage(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    covered, floor = evidence.coverage, policy.coverage_floor
    numbers: dict[str, int | float | str] = {"needed_share": floor}
    if evidence.lost is not None:
        numbers["lost"] = evidence.lost
    if evidence.source is EvidenceSource.COUNTERS:
        return CheckResult(Check.COVERAGE, Verdict.NO_DATA, _NOT_BY_COUNTERS, numbers)
    if covered is None or covered.whole == 0:
        sentence = evidence.unknown.get(Check.COVERAGE, _NO_ENDED)
        return CheckResult(Check.COVERAGE, Verdict.NO_DATA, sentence, numbers)
    part = share(covered.part, covered.whole)
    sentence = f"Coverage {part} of {covered.whole:,} ended prompts"
    numbers |= {"covered": covered.part, "ended": covered.whole}
    return _against_floor(Check.COVERAGE, covered, floor, sentence=sentence, numbers=numbers)


def _contract(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    conforming, floor = evidence.contract, policy.contract_floor
    numbers: dict[str, int | float | str] = {"needed_share": floor}
    if conforming is None or conforming.whole == 0:
        sentence = evidence.unknown.get(Check.CONTRACT, _NO_RECORD)
        return CheckResult(Check.CONTRACT, Verdict.NO_DATA, sentence, numbers)
    part, records = share(conforming.part, conforming.whole), conforming.whole
    # A day below the floor is not complete.
    which = "complete day" if conforming.part >= floor * records else "day with prompts"
    sentence = f"Contract met by {part} of {records:,} records of the last {which}"
    numbers |= {"conforming": conforming.part, "records": records}
    return _against_floor(Check.CONTRACT, conforming, floor, sentence=sentence, numbers=numbers)


def _against_floor(
    check: Check,
    met: Share,
    floor: float,
    *,
    sentence: str,
    numbers: Mapping[str, int | float | str],
) -> CheckResult:
    if met.part / met.whole >= floor:
        return CheckResult(check, Verdict.WITHIN, f"{sentence}.", numbers)
    # The missing records might have shown anything: no data, and not a failure.
    below = f"{sentence}; {100 * floor:g} % is asked for."
    return CheckResult(check, Verdict.NO_DATA, below, numbers)


def _invariants(evidence: WaveEvidence, coverage: CheckResult) -> CheckResult:
    broken = {name: count for name, count in evidence.violations.items() if count}
    total = sum(broken.values())
    numbers: dict[str, int | float | str] = {
        "violations": total,
        **{name.value: count for name, count in sorted(broken.items())},
    }
    if broken:
        counts = listed([f"{count:,} x {name}" for name, count in sorted(broken.items())])
        sentence = f"Invariants that must be zero are not: {counts}."
        return CheckResult(Check.INVARIANTS, Verdict.BEYOND, sentence, numbers)
    if Check.INVARIANTS in evidence.unknown:
        sentence = evidence.unknown[Check.INVARIANTS]
        # Without numbers: a zero would look like a count.
        return CheckResult(Check.INVARIANTS, Verdict.NO_DATA, sentence, {})
    if coverage.verdict is not Verdict.WITHIN:
        sentence = "No violation is known, but coverage does not show that none was missed."
        return CheckResult(Check.INVARIANTS, Verdict.NO_DATA, sentence, numbers)
    return CheckResult(Check.INVARIANTS, Verdict.WITHIN, "No invariant was violated.", numbers)
