"""The checks of a gate beside its metrics. What was not reported is no data, never zero."""

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.balance import balance
from analysis.consistency import stop_consistency
from analysis.evidence import Share, WaveDay, WaveEvidence, days_used, is_look
from analysis.exposure import exposure
from analysis.frames import Settled
from analysis.purity import version_purity
from analysis.report import Check, CheckResult
from analysis.sentences import listed, share
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Gate, Verdict

_NOT_BY_COUNTERS = (
    "Coverage is not known: this evidence comes from counters, and the check needs the ordinals "
    "that only events carry."
)
_NO_ENDED = "Coverage is not known: no ended prompt was reported."
_NO_RECORD = "The contract is not known to hold: the last complete day has no record."


def run_checks(
    evidence: WaveEvidence, settled: Settled, joined: pd.DataFrame | None, policy: GatePolicy
) -> tuple[CheckResult, ...]:
    """Return every check's result, in the order in which a gate's sentence prefers them.

    `joined` are the settled totals beside what the guard did (analysis.consistency.joined_totals).

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
    # Shadow has no cohorts that could be unlike each other.
    if evidence.gate is not Gate.SHADOW:
        checks.append(balance(evidence, settled))
    ran = exposure(evidence)
    if ran is not None:
        checks.append(ran)
    if evidence.gate is Gate.ENFORCE:
        is_due = is_look(evidence, policy)
        checks.append(stop_consistency(evidence, joined, policy, is_look=is_due))
    return tuple(checks)


def _dwell(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    """Whether the look is due: its days are declared at the start, so nobody peeks."""
    days = days_used(evidence)
    used = len(days)
    needed = max(evidence.declared_days, policy.dwell_days)
    if Check.DWELL in evidence.unknown:
        compared = {"compared": used, "declared": needed}
        return CheckResult(Check.DWELL, Verdict.NO_DATA, evidence.unknown[Check.DWELL], compared)
    skipped = [day for day in evidence.days if not day.is_complete]
    sentence = f"{used} of {needed} complete days"
    if skipped:
        does = "day does" if len(skipped) == 1 else "days do"
        told = _last_of(skipped, skipped[-1].reason or "not complete")
        sentence += f"; {len(skipped)} {does} not count ({told})"
    noted = [day for day in evidence.days if day.notes and day.day in days]
    if noted:
        are = "is" if len(noted) == 1 else "are"
        told = _last_of(noted, "; ".join(note.sentence for note in noted[-1].notes))
        sentence += f"; {len(noted)} of the days used {are} not exact ({told})"
    so_far = Verdict.UNPROVEN if used else Verdict.NO_DATA
    verdict = Verdict.WITHIN if is_look(evidence, policy) else so_far
    numbers = {"complete": used, "declared": needed, "not_counted": len(skipped)}
    if noted:
        numbers["noted"] = len(noted)
    return CheckResult(Check.DWELL, verdict, f"{sentence}.", numbers)


def _last_of(days: Sequence[WaveDay], told: str) -> str:
    """Return what is told of the last of the days; of the others their pages tell it."""
    which = "" if len(days) == 1 else "the last, "
    return f"{which}{days[-1].day.isoformat()}: {told}"


def _coverage(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    seen, floor = evidence.coverage, policy.coverage_floor
    numbers: dict[str, int | float | str] = {"needed_share": floor}
    if evidence.lost is not None:
        numbers["lost"] = evidence.lost
    if evidence.source is EvidenceSource.COUNTERS:
        return CheckResult(Check.COVERAGE, Verdict.NO_DATA, _NOT_BY_COUNTERS, numbers)
    if seen is None or seen.whole == 0:
        sentence = evidence.unknown.get(Check.COVERAGE, _NO_ENDED)
        return CheckResult(Check.COVERAGE, Verdict.NO_DATA, sentence, numbers)
    sentence = f"Coverage {share(seen.part, seen.whole)} of {seen.whole:,} ended prompts"
    numbers |= {"covered": seen.part, "ended": seen.whole}
    return _against_floor(Check.COVERAGE, seen, floor, sentence=sentence, numbers=numbers)


def _contract(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    seen, floor = evidence.contract, policy.contract_floor
    numbers: dict[str, int | float | str] = {"needed_share": floor}
    if seen is None or seen.whole == 0:
        sentence = evidence.unknown.get(Check.CONTRACT, _NO_RECORD)
        return CheckResult(Check.CONTRACT, Verdict.NO_DATA, sentence, numbers)
    met = share(seen.part, seen.whole)
    # A day below the floor is none that is complete.
    which = "complete day" if seen.part >= floor * seen.whole else "day with prompts"
    sentence = f"Contract met by {met} of {seen.whole:,} records of the last {which}"
    numbers |= {"conforming": seen.part, "records": seen.whole}
    return _against_floor(Check.CONTRACT, seen, floor, sentence=sentence, numbers=numbers)


def _against_floor(
    check: Check,
    seen: Share,
    floor: float,
    *,
    sentence: str,
    numbers: Mapping[str, int | float | str],
) -> CheckResult:
    if seen.part / seen.whole >= floor:
        return CheckResult(check, Verdict.WITHIN, f"{sentence}.", numbers)
    # What the missing records would have shown is unknown: no data, and not a failure.
    asked = f"{sentence}; {100 * floor:g} % is asked for."
    return CheckResult(check, Verdict.NO_DATA, asked, numbers)


def _invariants(evidence: WaveEvidence, coverage: CheckResult) -> CheckResult:
    broken = {name: count for name, count in evidence.violations.items() if count}
    total = sum(broken.values())
    numbers: dict[str, int | float | str] = {
        "violations": total,
        **{name.value: count for name, count in sorted(broken.items())},
    }
    if broken:
        named = listed([f"{count:,} x {name}" for name, count in sorted(broken.items())])
        sentence = f"Invariants that must be zero are not: {named}."
        return CheckResult(Check.INVARIANTS, Verdict.BEYOND, sentence, numbers)
    if Check.INVARIANTS in evidence.unknown:
        sentence = evidence.unknown[Check.INVARIANTS]
        # A zero would read as a known one.
        return CheckResult(Check.INVARIANTS, Verdict.NO_DATA, sentence, {})
    if coverage.verdict is not Verdict.WITHIN:
        sentence = "No violation is known, but coverage does not show that none was missed."
        return CheckResult(Check.INVARIANTS, Verdict.NO_DATA, sentence, numbers)
    return CheckResult(Check.INVARIANTS, Verdict.WITHIN, "No invariant was violated.", numbers)
