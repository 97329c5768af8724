"""The door for notebooks: owner-days in a frame, or whole evidence, and a policy.

What a frame cannot know (which days are complete, contract, roster, the versions pinned) stays
unknown, so the gate's verdict says what is missing, while its metrics are judged.
`dataclasses.replace` adds what is known.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import pandas as pd

from analysis import gates
from analysis.cells import counts_of
from analysis.counted_days import whole_prompts
from analysis.day_cells import named_days
from analysis.evidence import Share, WaveDay, WaveEvidence, first_complete
from analysis.exposure import exposure_of
from analysis.frames import COHORT, DAY, OWNER, owner_totals
from analysis.guard_totals import guard_totals
from analysis.loops import LOOPS
from analysis.owner_day_durations import durations_of
from analysis.owner_days import VERSION, OwnerDays, cohorts_of, read_owner_days, share_of
from analysis.purity import OFF_PIN
from analysis.report import Check, GateEvaluation
from analysis.untold import untold_of
from reducer.rollout.policy import GatePolicy
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Invariant

# What stands where neither the frame nor the caller names them.
NOTEBOOK, FIRST_WAVE = "notebook", 1
_SWITCHED, _LOST = "switched", "lost"
_MOST_VERSIONS = 5

Name = TypeVar("Name", str, int)


def evaluate(
    evidence: pd.DataFrame | WaveEvidence,
    policy: GatePolicy,
    *,
    days: Iterable[object] | None = None,
) -> GateEvaluation:
    """Evaluate the gate that a frame of owner-days is evidence for, or the gate of evidence.

    A frame has `owner`, `cohort`, `day` and the counts of owner totals (analysis.frames), and is
    read as `evidence_of` reads it; `days` names its complete days. Evidence knows its own.

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
        return gates.evaluate(evidence, policy)
    return gates.evaluate(evidence_of(evidence, declared_days=policy.dwell_days, days=days), policy)


def evidence_of(
    owner_days: pd.DataFrame,
    *,
    environment: str | None = None,
    guard: str | None = None,
    wave: int | None = None,
    declared_days: int = 7,
    days: Iterable[object] | None = None,
) -> WaveEvidence:
    """Return the owner-days of one wave as its evidence; their cohorts say which gate it is for.

    `days` are the complete days of the wave, as an evaluation's `days.used`: ISO text or dates.
    The first `declared_days` of them are used, as at a declared look. Without `days` nobody said
    which are complete: the first that the frame names are compared, and the gate has no data.

    Environment, guard and wave are what the random owner sets come from: the gate's own give the
    gate's own p values. They are taken from columns of that name where they are not given.
    Where the frame has them, read are also `source`, `version`, `mode`, `ended` and `covered`,
    `lost`, `switched`, durations (analysis.owner_day_durations) and what the guard did
    (analysis.guard_totals), with `off_pin` for the prompts of versions that the wave does not pin.
    Nothing is read as reported that the frame does not hold, but for tokens and turns: without
    `tokens_untold` and `turns_untold` (analysis.untold) the caller vouches that each prompt told
    them.

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
    read = read_owner_days(owner_days)
    wave_days = _days(read.rows, days)
    used = first_complete(wave_days, declared_days)
    rows = read.rows[read.rows[DAY].isin(used)]
    if read.source is EvidenceSource.COUNTERS:
        rows = whole_prompts(rows)
    # A row without a start may stand for a prompt that was in two cohorts, and for nothing else.
    begun = rows[rows["started"] > 0]
    sides = cohorts_of(read.gate)
    told = _told(read, rows, sides)
    durations = durations_of(_of_owners(rows, begun), read.source)
    return WaveEvidence(
        environment=_agreed(read.environment, environment, "environment") or NOTEBOOK,
        guard=_agreed(read.guard, guard, "guard") or NOTEBOOK,
        wave=FIRST_WAVE if (own := _agreed(read.wave, wave, "wave")) is None else own,
        gate=read.gate,
        treated=sides[0],
        reference=sides[1],
        owners=owner_totals(begun),
        rostered={},
        days=wave_days,
        declared_days=declared_days,
        coverage=told.coverage,
        contract=None,
        off_pin=told.off_pin,
        violations=told.violations,
        lost=told.lost,
        guard_totals=guard_totals(_without_unheard(begun)),
        durations=durations,
        source=read.source,
        exposure=exposure_of(begun, read.gate),
        untold=untold_of(begun, durations, sides),
        unknown=_unknown(read.rows, rows, used, is_told=days is not None),
    )


def _of_owners(rows: pd.DataFrame, begun: pd.DataFrame) -> pd.DataFrame:
    """Return all rows of the owners that started a prompt."""
    if len(begun) == len(rows):
        return rows
    return rows[rows[OWNER].astype(object).isin(set(begun[OWNER]))]


def _without_unheard(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out loop events where an owner-day has a null: unknown of one is unknown of the sum."""
    is_unheard = LOOPS in rows.columns and bool(rows[LOOPS].isna().any())
    return rows.drop(columns=LOOPS) if is_unheard else rows


class _Told(NamedTuple):
    """What the owner-days of the days used tell beside metrics."""

    coverage: Share | None
    off_pin: Mapping[Cohort, Share] | None
    violations: Mapping[Invariant, int]
    lost: int | None


def _told(read: OwnerDays, rows: pd.DataFrame, sides: tuple[Cohort, Cohort]) -> _Told:
    by_events = read.source is EvidenceSource.EVENTS
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
    return _Told(coverage, off_pin or None, violations, lost)


def _days(rows: pd.DataFrame, named: Iterable[object] | None) -> tuple[WaveDay, ...]:
    there = sorted(set(rows[DAY]))
    if named is None:
        return tuple(WaveDay(day, is_complete=True, reason=None) for day in there)
    complete = named_days(named)
    lacking = [day.isoformat() for day in complete if day not in there]
    if lacking:
        raise ValueError(
            f"days names {lacking[0]} as complete, of which the frame has no owner-day; add its "
            "owner-days, or leave it out"
        )
    why = "not named as complete"
    return tuple(WaveDay(day, day in complete, None if day in complete else why) for day in there)


def _agreed(own: Name | None, given: Name | None, column: str) -> Name | None:
    if own is not None and given is not None and own != given:
        raise ValueError(
            f"column {column!r} says {own!r}, and {given!r} was given; leave the argument out, or "
            "choose the rows that are meant"
        )
    return own if given is None else given


def _unknown(
    rows: pd.DataFrame, used: pd.DataFrame, days: Sequence[dt.date], *, is_told: bool
) -> Mapping[Check, str]:
    """Say what these owner-days cannot tell, in words that hold for them."""
    unknown = {
        Check.CONTRACT: (
            "The contract is not known to hold: owner-days do not tell which records met it."
        ),
        Check.INVARIANTS: (
            "Whether an invariant was violated is not known: owner-days tell no violation"
            + (" but prompts in two modes or cohorts." if _SWITCHED in rows.columns else ".")
        ),
    }
    lacking = [column for column in ("ended", "covered") if column not in rows.columns]
    if lacking:
        unknown[Check.COVERAGE] = (
            f"Coverage is not known: the owner-days have no column {' and '.join(lacking)}."
        )
    if VERSION in rows.columns:
        unknown[Check.VERSION_PURITY] = _unknown_pin(used)
    if not is_told:
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
    named = ", ".join(versions[:_MOST_VERSIONS])
    more = len(versions) - _MOST_VERSIONS
    named += f" and {more} more" if more > 0 else ""
    return (
        f"Version purity is not known: prompts came from {named or 'no version'}, and which "
        f"versions the wave pins was not told; count the others in a column {OFF_PIN}."
    )
