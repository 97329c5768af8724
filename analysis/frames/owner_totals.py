"""Owner totals: the counts of every frame, their checks, and their sums by owner.

First the counts that metrics are made of, then those of what the guard did. Both are summed over
days, and an owner has one row.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames.column_checks import (
    OWNER,
    Flags,
    Floats,
    checked_owners,
    counts_of,
    refuse_cells,
    require_columns,
    row_of,
)
from guardwave.reducer.vocabulary import Cohort, Metric

COHORT = "cohort"
DAY = "day"
COUNTS = ("started", "cancelled", "completed", "disrupted", "tokens", "turns")
# would_stopped and stopped count decisions, calls_after_would_stop tool calls; unreliable and
# off_pin count prompts, loops the loop events of other protections.
GUARD_COUNTS = (
    "would_stopped",
    "stopped",
    "calls_after_would_stop",
    "unreliable",
    "off_pin",
    "loops",
)

Sides: TypeAlias = tuple[Cohort, Cohort]


class SettledTotals(NamedTuple):
    """Checked totals with one row per owner, and how many owners were in several cohorts.

    `drawn` are the owners that the draw treats, None where the draw cannot be repeated.
    """

    totals: pd.DataFrame
    switched: int
    drawn: frozenset[str] | None


class Outcomes(NamedTuple):
    """One metric of the two cohorts of a comparison, one entry per owner, sorted by owner.

    `harm` and `trials` are counts, also those of tokens and turns. More harm is worse: for
    completion it is the trials that did not complete. An owner without a trial is left out.
    """

    owners: tuple[str, ...]
    is_treated: Flags
    harm: Floats
    trials: Floats


def owner_totals(owner_days: pd.DataFrame) -> pd.DataFrame:
    """Sum owner-days (`owner`, `cohort`, `day` and the counts) to one row per owner.

    Neither the order of the rows nor the split of an owner's counts over days matters. A row may
    contradict itself as long as the owner's sums do not: by counters a prompt over midnight ends on
    another day than it started (`refuse_contradictions` checks each row).

    Raises:
        ValueError: as `checked_totals`, naming an owner where its sums contradict each other, and
            for an owner that is in two cohorts.
    """
    require_columns(owner_days, (OWNER, COHORT, DAY, *COUNTS))
    days = checked_rows(owner_days)
    # As floats no sum wraps around: from 2^53 on it is refused.
    days = days.astype(dict.fromkeys(COUNTS, np.float64))
    sums = days.groupby([OWNER, COHORT], as_index=False, sort=True)[list(COUNTS)].sum()
    if sums[OWNER].duplicated().any():
        _refuse_second_cohort(days)
    return _checked_sums(sums)


def settled_totals(
    totals: pd.DataFrame, drawn: frozenset[str] | None, sides: Sides
) -> SettledTotals:
    """Return checked totals with one row per owner, and how many owners were in several cohorts.

    For such an owner the row of the cohort that the draw gave it stays, or else the first one by
    the cohort's name. `sides` are the cohorts compared.

    Raises:
        ValueError: as `checked_totals`, also for an owner that is twice in one cohort.
    """
    require_columns(totals, (OWNER, COHORT, *COUNTS))
    is_repeated = totals[OWNER].duplicated(keep=False).to_numpy()
    is_same = totals.duplicated([OWNER, COHORT]).to_numpy()
    if not is_repeated.any() or is_same.any():
        return SettledTotals(checked_totals(totals), 0, drawn)
    several = totals[is_repeated]
    assigned = np.where(several[OWNER].isin(drawn or set()), sides[0].value, sides[1].value)
    order = several.assign(is_other=(several[COHORT] != assigned).to_numpy())
    order = order.sort_values([OWNER, "is_other", COHORT], kind="stable")
    kept = order.drop_duplicates(OWNER).drop(columns="is_other")
    return SettledTotals(checked_totals(pd.concat([totals[~is_repeated], kept])), len(kept), drawn)


def checked_totals(totals: pd.DataFrame) -> pd.DataFrame:
    """Return owner totals sorted by owner, with whole-numbered counts and only known columns.

    Raises:
        ValueError: naming column, row and value, when a column is missing, an owner is unnamed
            or there twice, a cohort is unknown, or a count is not a whole number >= 0 or exceeds
            the prompts that started.
    """
    require_columns(totals, (OWNER, COHORT, *COUNTS))
    checked = checked_rows(totals)
    is_repeated = checked[OWNER].duplicated().to_numpy()
    refuse_cells(
        checked, is_repeated, OWNER, why="is there twice; an owner has one row and one cohort"
    )
    refuse_contradictions(checked)
    return sorted_by_owner(checked)


def _checked_sums(sums: pd.DataFrame) -> pd.DataFrame:
    """Return sums by owner as totals; an error names the owner, since these rows are ours."""
    whole = {column: counts_of(sums, column, is_summed=True) for column in COUNTS}
    checked = sums.assign(**whole)
    refuse_contradictions(checked, is_summed=True)
    return sorted_by_owner(checked)


def by_block(totals: pd.DataFrame, blocks: Mapping[str, str]) -> pd.DataFrame:
    """Sum checked owner totals to blocks, which are then drawn and compared like owners.

    Owners who share a limit, such as those of one tenant, can be slowed by each other's guard; then
    the test must draw the block that they share. `blocks` names each owner's block.

    Raises:
        ValueError: for an owner without a block, and for a block with owners of two cohorts.
    """
    renamed = totals.assign(**{OWNER: block_names(totals[OWNER], blocks)})
    sums = renamed.groupby([OWNER, COHORT], as_index=False, sort=True)[list(COUNTS)].sum()
    is_split = sums[OWNER].duplicated(keep=False).to_numpy()
    if is_split.any():
        block = sums[OWNER].iloc[int(np.argmax(is_split))]
        raise ValueError(
            f"block {block!r} has owners in two cohorts; draw cohorts by block, or compare owners"
        )
    return _checked_sums(sums)


def block_names(owners: Iterable[str], blocks: Mapping[str, str]) -> npt.NDArray[np.object_]:
    """Return the block of each owner, or raise a ValueError that names one without a block."""
    names = []
    for owner in owners:
        if owner not in blocks:
            raise ValueError(f"owner {owner!r} has no block; name the block of every owner")
        names.append(blocks[owner])
    return np.array(names, dtype=object)


def outcomes_of(totals: pd.DataFrame, metric: Metric, cohorts: tuple[Cohort, Cohort]) -> Outcomes:
    """Return a metric's harm and trials by owner, for checked totals and (treated, reference).

    Completion trials are started - cancelled prompts, so a cancelled prompt is in no failure
    numerator; every other metric is per prompt started.

    Raises:
        ValueError: for a metric that owner totals do not hold.
    """
    treated, reference = cohorts
    rows = totals[totals[COHORT].isin([treated.value, reference.value])]
    harm, trials = harm_and_trials(rows, metric)
    has_trials = trials > 0
    owners = rows[OWNER].to_numpy(dtype=object)[has_trials]
    is_treated = (rows[COHORT] == treated.value).to_numpy(dtype=np.bool_)
    return Outcomes(tuple(owners), is_treated[has_trials], harm[has_trials], trials[has_trials])


def harm_and_trials(totals: pd.DataFrame, metric: Metric) -> tuple[Floats, Floats]:
    """Return a metric's harm and trials of every row of checked counts.

    Raises:
        ValueError: for a metric that owner totals do not hold.
    """
    started = totals["started"].to_numpy(dtype=np.float64)
    match metric:
        case Metric.COMPLETION:
            trials = started - totals["cancelled"].to_numpy(dtype=np.float64)
            return trials - totals["completed"].to_numpy(dtype=np.float64), trials
        case Metric.DISRUPTION:
            return totals["disrupted"].to_numpy(dtype=np.float64), started
        case Metric.CANCELLATION:
            return totals["cancelled"].to_numpy(dtype=np.float64), started
        case Metric.TOKENS | Metric.TURNS:
            return totals[metric.value].to_numpy(dtype=np.float64), started
        case _:
            raise ValueError(f"owner totals hold no {metric}; ask for one of their own metrics")


def checked_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `owner` and the counts as whole numbers, each cell checked on its own."""
    checked: dict[str, object] = {OWNER: checked_owners(frame)}
    for column in COUNTS:
        checked[column] = counts_of(frame, column)
    return pd.DataFrame(checked, index=frame.index)


def refuse_contradictions(frame: pd.DataFrame, *, is_summed: bool = False) -> None:
    """Refuse a row whose prompts ended or were disrupted more often than they started."""
    started, cancelled = frame["started"].to_numpy(), frame["cancelled"].to_numpy()
    for column, beside, verb in (
        ("completed", cancelled, "and cancelled together exceed"),
        ("disrupted", 0, "exceeds"),
    ):
        is_more = frame[column].to_numpy() + beside > started
        if is_more.any():
            most = int(started[int(np.argmax(is_more))])
            why = f"{verb} the prompts started, {most}; count each prompt once"
            refuse_cells(frame, is_more, column, why=why, is_summed=is_summed)


def sorted_by_owner(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by owner; a million names that are in order already need no sorting."""
    if frame[OWNER].is_monotonic_increasing:
        return frame.reset_index(drop=True)
    return frame.sort_values(OWNER, ignore_index=True)


def _refuse_second_cohort(days: pd.DataFrame) -> None:
    first = days.groupby(OWNER, sort=False)[COHORT].transform("first")
    is_other = (first != days[COHORT]).to_numpy()
    place = int(np.argmax(is_other))
    owner = days[OWNER].iloc[place]
    earlier = row_of(days, int(np.argmax((days[OWNER] == owner).to_numpy())))
    why = (
        f"is a second cohort of the owner {owner!r}, after {first.iloc[place]!r} in {earlier}; an "
        "owner has one cohort in a wave, leave its rows of one out"
    )
    refuse_cells(days, is_other, COHORT, why=why)


def checked_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Check each cell on its own; contradictions between cells are the caller's to find."""
    cohorts = frame[COHORT].astype(str)
    known = [cohort.value for cohort in Cohort]
    is_unknown = ~cohorts.isin(known).to_numpy()
    refuse_cells(frame, is_unknown, COHORT, why=f"is none of {', '.join(known)}")
    checked = checked_counts(frame)
    checked.insert(1, COHORT, cohorts.to_numpy(dtype=object))
    return checked


def guard_totals(owner_days: pd.DataFrame) -> pd.DataFrame:
    """Sum the guard's columns of owner-days to one row per owner, sorted by owner.

    A column that the owner-days lack is missing in the sums too: nobody reported it, and no check
    reads that as zero.

    Raises:
        ValueError: naming column, row and value, for a cell that is not a whole number >= 0.
    """
    checked = _checked_guard_counts(owner_days)
    columns = [column for column in GUARD_COUNTS if column in checked.columns]
    return checked.groupby(OWNER, as_index=False, sort=True)[columns].sum()


def checked_guard_totals(totals: pd.DataFrame) -> pd.DataFrame:
    """Return guard totals sorted by owner, with whole-numbered counts and only known columns.

    Raises:
        ValueError: naming column, row and value, for an owner that is there twice or a cell that
            is not a whole number >= 0.
    """
    checked = _checked_guard_counts(totals)
    is_repeated = checked[OWNER].duplicated().to_numpy()
    refuse_cells(totals, is_repeated, OWNER, why="is there twice; an owner has one row")
    return checked.sort_values(OWNER, ignore_index=True)


def _checked_guard_counts(frame: pd.DataFrame) -> pd.DataFrame:
    require_columns(frame, (OWNER,))
    checked = pd.DataFrame({OWNER: checked_owners(frame)})
    for column in GUARD_COUNTS:
        if column in frame.columns:
            checked[column] = counts_of(frame, column)
    return checked
