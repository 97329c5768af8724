"""The checks of a gate beside its metrics. What was not reported is no data, never zero."""

from collections.abc import Mapping
from fractions import Fraction

from analysis.evidence import Share, WaveEvidence, days_used
from analysis.report import Check, CheckResult
from analysis.sentences import listed, share
from reducer.rollout.policy import GatePolicy
from reducer.vocabulary import Verdict

# Of a cohort's prompts, from which share on those of other versions make the comparison invalid.
OFF_PIN_LIMIT = Fraction(1, 100)


def run_checks(evidence: WaveEvidence, policy: GatePolicy) -> tuple[CheckResult, ...]:
    """Return every check's result, in the order in which a gate's sentence prefers them."""
    coverage = _coverage(evidence, policy)
    contract = _contract(evidence, policy)
    return (
        _dwell(evidence, policy),
        coverage,
        contract,
        _invariants(evidence, coverage),
        _version_purity(evidence),
    )


def _dwell(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    """Whether the look is due: its days are declared at the start, so nobody peeks."""
    used = len(days_used(evidence))
    needed = max(evidence.declared_days, policy.dwell_days)
    skipped = [day for day in evidence.days if not day.is_complete]
    sentence = f"{used} of {needed} complete days"
    if skipped:
        of_last = f"{skipped[-1].day.isoformat()}: {skipped[-1].reason or 'not complete'}"
        does = "day does" if len(skipped) == 1 else "days do"
        sentence += f"; {len(skipped)} {does} not count ({of_last})"
    so_far = Verdict.UNPROVEN if used else Verdict.NO_DATA
    verdict = Verdict.WITHIN if used >= needed else so_far
    numbers = {"complete": used, "declared": needed, "not_counted": len(skipped)}
    return CheckResult(Check.DWELL, verdict, f"{sentence}.", numbers)


def _coverage(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    seen, floor = evidence.coverage, policy.coverage_floor
    numbers: dict[str, int | float | str] = {"lost": evidence.lost, "needed_share": floor}
    if seen is None or seen.whole == 0:
        sentence = "Coverage is not known: no ended prompt was reported."
        return CheckResult(Check.COVERAGE, Verdict.NO_DATA, sentence, numbers)
    sentence = f"Coverage {share(seen.part, seen.whole)} of {seen.whole:,} ended prompts"
    numbers |= {"covered": seen.part, "ended": seen.whole}
    return _against_floor(Check.COVERAGE, seen, floor, sentence=sentence, numbers=numbers)


def _contract(evidence: WaveEvidence, policy: GatePolicy) -> CheckResult:
    seen, floor = evidence.contract, policy.contract_floor
    numbers: dict[str, int | float | str] = {"needed_share": floor}
    if seen is None or seen.whole == 0:
        sentence = "The contract is not known to hold: the last complete day has no record."
        return CheckResult(Check.CONTRACT, Verdict.NO_DATA, sentence, numbers)
    met = share(seen.part, seen.whole)
    sentence = f"Contract met by {met} of {seen.whole:,} records of the last complete day"
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
    if coverage.verdict is not Verdict.WITHIN:
        sentence = "No violation is known, but coverage does not show that none was missed."
        return CheckResult(Check.INVARIANTS, Verdict.NO_DATA, sentence, numbers)
    return CheckResult(Check.INVARIANTS, Verdict.WITHIN, "No invariant was violated.", numbers)


def _version_purity(evidence: WaveEvidence) -> CheckResult:
    """Whether the wave compares the versions it is about: others stay in, as intended to treat."""
    seen = {cohort: part for cohort, part in evidence.off_pin.items() if part.whole}
    numbers: dict[str, int | float | str] = {"allowed_below_share": float(OFF_PIN_LIMIT)}
    if not seen:
        sentence = "Version purity is not known: no prompt was started."
        return CheckResult(Check.VERSION_PURITY, Verdict.NO_DATA, sentence, numbers)
    for cohort, off in sorted(seen.items()):
        numbers |= {f"{cohort}_off_pin": off.part, f"{cohort}_prompts": off.whole}
    if not any(off.part for off in seen.values()):
        sentence = "Every prompt came from a pinned version."
        return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, sentence, numbers)
    told = listed(
        [
            f"{off.part:,} of {off.whole:,} prompts ({share(off.part, off.whole)}) in {cohort}"
            for cohort, off in sorted(seen.items())
        ]
    )
    sentence = f"Versions that are not pinned started {told}"
    if any(off.part >= OFF_PIN_LIMIT * off.whole for off in seen.values()):
        asked = f"{sentence}; less than {100 * float(OFF_PIN_LIMIT):g} % is asked for."
        return CheckResult(Check.VERSION_PURITY, Verdict.INVALID, asked, numbers)
    return CheckResult(Check.VERSION_PURITY, Verdict.WITHIN, f"{sentence}.", numbers)
