"""Notebook: the evaluation of owner-days in a frame, or of whole evidence, under a policy.

A frame does not hold the complete days, the contract, the roster and the pinned versions. They stay
unknown, so the gate's verdict names what is missing, while its metrics are judged.
`dataclasses.replace` adds to the evidence what the caller knows.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd

from guardwave.analysis.frames import (
    COHORT,
    DAY,
    OWNER,
    VERSION,
    Counts,
    OwnerDays,
    Share,
    WaveDay,
    WaveEvidence,
    cohorts_of,
    counts_of,
    durations_of,
    first_complete_days,
    guard_totals,
    missing_values_of,
    owner_totals,
    parse_days,
    read_owner_days,
    share_of,
)
from guardwave.analysis.gate import LOOPS, OFF_PIN, exposure_of
from guardwave.analysis.gate import evaluate as evaluate_gate
from guardwave.analysis.report import Check, GateEvaluation
from guardwave.reducer.rollout.policy import Alarms, GatePolicy, MinimumData
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Metric

_ENDED, _UNRELIABLE = "ended", "unreliable"
# Sorted by these the rows of an owner have one order, whatever order the frame had.
_ORDER = (OWNER, DAY, COHORT, "version", "mode")
# For environment, guard and wave where neither the frame nor the caller names them.
NOTEBOOK, FIRST_WAVE = "notebook", 1
_SWITCHED, _LOST = "switched", "lost"
_MOST_VERSIONS = 5

Name = TypeVar("Name", str, int)

_SHARED_MARGINS = {
    Metric.DISRUPTION: 0.005,
    Metric.TOKENS: 1.10,
    Metric.TURNS: 1.10,
    Metric.LATENCY_P95: 1.10,
}

# A stricter policy is made by `dataclasses.replace`; give it another version.
SHIPPED_POLICY = GatePolicy(
    version="2026-11",
    margins={
        Gate.SHADOW: {},
        Gate.WARN: {Metric.CANCELLATION: 0.005, **_SHARED_MARGINS},
        Gate.ENFORCE: {Metric.COMPLETION: 0.01, **_SHARED_MARGINS},
    },
    alpha=0.05,
    permutations=1_999,
    refined_permutations=99_999,
    minimum_data=MinimumData(
        owners=30,
        effective_owners=10.0,
        largest_owner_share=0.25,
        expected_harm_events=10.0,
    ),
    alarms=Alarms(alpha=0.05, lowers_enforce=True),
    stop_band=0.005,
    planned_power=0.8,
    dwell_days=7,
    coverage_floor=0.99,
    contract_floor=0.99,
    evaluation_max_age_hours=24,
    revision_tolerance=0.005,
    ceiling_bps=500,
    holdback_bps=2_000,
)


def evaluate(
    evidence: pd.DataFrame | WaveEvidence,
    policy: GatePolicy,
    *,
    days: Iterable[object] | None = None,
) -> GateEvaluation:
    """Evaluate the gate of a frame of owner-days, or of evidence.

    A frame has `owner`, `cohort`, `day` and the counts of owner totals (`frames.owner_totals`), and
    becomes evidence by `evidence_of`; `days` names its complete days. Evidence has its own days.

    Raises:
        ValueError: naming column, row, value and remedy where the frame is wrong, the entry where
            `days` is, and for `days` beside evidence.
        TypeError: an argument is of another type.
    """
    if not isinstance(policy, GatePolicy):
        raise TypeError(
            f"policy is a {type(policy).__name__}; give a GatePolicy, such as "
            "analysis.SHIPPED_POLICY"
        )
    if isinstance(evidence, WaveEvidence):
        if days is not None:
            raise ValueError("evidence has its own days; name days beside a frame only")
        return evaluate_gate(evidence, policy)
    evidence = evidence_of(evidence, declared_days=policy.dwell_days, days=days)
    return evaluate_gate(evidence, policy)


def evidence_of(
    owner_days: pd.DataFrame,
    *,
    environment: str | None = None,
    guard: str | None = None,
    wave: int | None = None,
    declared_days: int = 7,
    days: Iterable[object] | None = None,
) -> WaveEvidence:
    """Return the owner-days of one wave as its evidence, for the gate that has their cohorts.

    `days` are the complete days of the wave as ISO text or dates, such as `days.used` of an
    evaluation. The first `declared_days` of them are used, as at a declared look. Without `days`
    nobody named the complete ones: the first days of the frame are compared, and the gate has no
    data.

    Environment, guard and wave determine the random owner sets: with those of the gate, p values
    are those of the gate. Without an argument they come from columns of that name.

    Optional columns are `source`, `version`, `mode`, `ended` and `covered`, `lost`, `switched`,
    durations (`frames.histograms`), the counts of what the guard did (`frames.owner_totals`), and
    `off_pin` for the prompts of versions that the wave does not pin. A missing column is missing
    data, with one exception: without `tokens_untold` and `turns_untold` (`frames.missing_values`)
    the caller vouches that each prompt reported its tokens and turns.

    Raises:
        ValueError: naming column, row, value and remedy where the frame is wrong: also for two
            environments, guards, waves or sources, and for an owner-day that is there twice.
        TypeError: an argument is of another type.
    """
    if not isinstance(owner_days, pd.DataFrame):
        raise TypeError(
            f"owner-days come in a pandas DataFrame, not in a {type(owner_days).__name__}; read a "
            "file with pandas first"
        )
    checked = read_owner_days(owner_days)
    wave_days = _days(checked.rows, days)
    used = first_complete_days(wave_days, declared_days)
    rows = checked.rows[checked.rows[DAY].isin(used)]
    if checked.source is EvidenceSource.COUNTERS:
        rows = whole_prompts(rows)
    # A row without a start may stand for a prompt that was in two cohorts, and for nothing else.
    started = rows[rows["started"] > 0]
    sides = cohorts_of(checked.gate)
    counts = _check_counts(checked, rows, sides)
    durations = durations_of(_rows_of_owners(rows, started), checked.source)
    number = _agreed(checked.wave, wave, "wave")
    return WaveEvidence(
        environment=_agreed(checked.environment, environment, "environment") or NOTEBOOK,
        guard=_agreed(checked.guard, guard, "guard") or NOTEBOOK,
        wave=FIRST_WAVE if number is None else number,
        gate=checked.gate,
        treated=sides[0],
        reference=sides[1],
        owners=owner_totals(started),
        rostered={},
        days=wave_days,
        declared_days=declared_days,
        coverage=counts.coverage,
        contract=None,
        off_pin=counts.off_pin,
        violations=counts.violations,
        lost=counts.lost,
        guard_totals=guard_totals(_without_partial_loops(started)),
        durations=durations,
        source=checked.source,
        exposure=exposure_of(started, checked.gate),
        missing=missing_values_of(started, durations, sides),
        unknown=_unknown(checked.rows, rows, used, has_days=days is not None),
    )


def _rows_of_owners(rows: pd.DataFrame, started: pd.DataFrame) -> pd.DataFrame:
    """Return all rows of the owners that started a prompt."""
    if len(started) == len(rows):
        return rows
    return rows[rows[OWNER].astype(object).isin(set(started[OWNER]))]


def _without_partial_loops(rows: pd.DataFrame) -> pd.DataFrame:
    """Drop loop events where an owner-day has a null: then the sum is unknown too."""
    is_partial = LOOPS in rows.columns and bool(rows[LOOPS].isna().any())
    return rows.drop(columns=LOOPS) if is_partial else rows


class _CheckCounts(NamedTuple):
    """The counts that the checks of a gate need from owner-days."""

    coverage: Share | None
    off_pin: Mapping[Cohort, Share] | None
    violations: Mapping[Invariant, int]
    lost: int | None


def _check_counts(
    checked: OwnerDays, rows: pd.DataFrame, sides: tuple[Cohort, Cohort]
) -> _CheckCounts:
    by_events = checked.source is EvidenceSource.EVENTS
    coverage = share_of(rows, "covered", "ended") if by_events else None
    violations, lost = {}, None
    if _SWITCHED in rows.columns:
        violations[Invariant.TREATMENT_SWITCHED] = int(counts_of(rows, _SWITCHED).sum())
    if _LOST in rows.columns and by_events:
        lost = int(counts_of(rows, _LOST).sum())
    shares = {
        cohort: share_of(rows[rows[COHORT] == cohort.value], OFF_PIN, "started") for cohort in sides
    }
    off_pin = {cohort: share for cohort, share in shares.items() if share is not None}
    return _CheckCounts(coverage, off_pin or None, violations, lost)


def _days(rows: pd.DataFrame, complete: Iterable[object] | None) -> tuple[WaveDay, ...]:
    days = sorted(set(rows[DAY]))
    if complete is None:
        return tuple(WaveDay(day, is_complete=True, reason=None) for day in days)
    complete_days = parse_days(complete)
    absent = [day.isoformat() for day in complete_days if day not in days]
    if absent:
        raise ValueError(
            f"days names {absent[0]} as complete, but the frame has no owner-day of it; add its "
            "owner-days, or leave it out"
        )
    why = "not named as complete"
    return tuple(
        WaveDay(day, day in complete_days, None if day in complete_days else why) for day in days
    )


def _agreed(value: Name | None, given: Name | None, column: str) -> Name | None:
    if value is not None and given is not None and value != given:
        raise ValueError(
            f"column {column!r} has {value!r}, and {given!r} was given; leave the argument out, or "
            "choose the rows that are meant"
        )
    return value if given is None else given


def _unknown(
    rows: pd.DataFrame, used: pd.DataFrame, days: Sequence[dt.date], *, has_days: bool
) -> Mapping[Check, str]:
    """Return a sentence for each check whose input these owner-days lack."""
    unknown = {
        Check.CONTRACT: (
            "The contract is not known to hold: owner-days do not count the records that met it."
        ),
        Check.INVARIANTS: (
            "Whether an invariant was violated is not known: owner-days report no violation"
            + (" but prompts in two modes or cohorts." if _SWITCHED in rows.columns else ".")
        ),
    }
    absent = [column for column in ("ended", "covered") if column not in rows.columns]
    if absent:
        unknown[Check.COVERAGE] = (
            f"Coverage is not known: the owner-days have no column {' and '.join(absent)}."
        )
    if VERSION in rows.columns:
        unknown[Check.VERSION_PURITY] = _unknown_pin(used)
    if not has_days:
        unknown[Check.DWELL] = _unknown_days(rows, days)
    return unknown


def _unknown_days(rows: pd.DataFrame, used: Sequence[dt.date]) -> str:
    if not used:
        return "Which days are complete is not known: there are no owner-days."
    number = len(set(rows[DAY]))
    which = "all" if number == len(used) else f"the first {len(used)}"
    return (
        f"Which days are complete is not known: the owner-days are of {number} days, and {which} "
        f"of them, {used[0]} to {used[-1]}, are compared as if they were; name the complete ones "
        "with days=."
    )


def _unknown_pin(used: pd.DataFrame) -> str:
    versions = sorted(map(str, used[VERSION].unique()))
    listed = ", ".join(versions[:_MOST_VERSIONS])
    more = len(versions) - _MOST_VERSIONS
    listed += f" and {more} more" if more > 0 else ""
    return (
        f"Version purity is not known: prompts came from {listed or 'no version'}, and the pinned "
        f"versions were not reported; count the prompts of others in a column {OFF_PIN}."
    )


def whole_prompts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return checked rows in which no owner ends, or disrupts, more prompts than it started.

    By counters a prompt over midnight may end on another day, version or mode than it started.
    Without a column `ended` such prompts cannot be found, and rows stay as they are.
    """
    if _ENDED not in rows.columns:
        return rows
    rows = rows.assign(**{_ENDED: counts_of(rows, _ENDED)})
    rows = rows.sort_values([name for name in _ORDER if name in rows.columns], kind="stable")
    started, ended = rows["started"].to_numpy(), rows[_ENDED].to_numpy()
    disrupted = rows["disrupted"].to_numpy()
    raised = started + _spread(rows, ended - started, np.maximum(ended - started, 0))
    too_many = _spread(rows, disrupted - raised, disrupted)
    whole = rows.assign(started=raised, disrupted=disrupted - too_many)
    if _UNRELIABLE in rows.columns:
        whole[_UNRELIABLE] = np.minimum(counts_of(rows, _UNRELIABLE), raised)
    return whole


def _spread(rows: pd.DataFrame, surplus: Counts, room: Counts) -> Counts:
    """Spread each owner's surplus, where its sum is above 0, over its rows from the first on."""
    both = pd.DataFrame({"surplus": surplus, "room": room}, dtype=np.int64)
    by_owner = both.groupby(rows[OWNER].to_numpy(dtype=object))
    total = by_owner["surplus"].transform("sum").to_numpy()
    before = by_owner["room"].cumsum().to_numpy() - room
    return np.clip(total - before, 0, room)
