"""Owner totals: the columns every frame has, the checks it must pass, and the sum over days."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from reducer.vocabulary import Cohort, Metric

OWNER = "owner"
COHORT = "cohort"
DAY = "day"
# Above it a float no longer holds every whole number.
EXACT = 2.0**53
COUNTS = ("started", "cancelled", "completed", "disrupted", "tokens", "turns")

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


Sides: TypeAlias = tuple[Cohort, Cohort]


class Settled(NamedTuple):
    """Checked totals with one row per owner, and how many owners were in several cohorts.

    `drawn` are the owners that the draw treats, None where it cannot be made again.
    """

    totals: pd.DataFrame
    switched: int
    drawn: frozenset[str] | None


class Outcomes(NamedTuple):
    """One metric of the two cohorts of a comparison, one entry per owner, sorted by owner.

    `harm` and `trials` are counts (tokens and turns are counts too) with harm oriented so that
    more is worse: for completion it is the trials that did not complete. An owner without a
    trial is left out.
    """

    owners: tuple[str, ...]
    is_treated: Flags
    harm: Floats
    trials: Floats


def owner_totals(owner_days: pd.DataFrame) -> pd.DataFrame:
    """Sum owner-days (`owner`, `cohort`, `day` and the counts) to one row per owner.

    The order of the rows and the way an owner's counts are split over days change nothing.

    Raises:
        ValueError: as `checked_totals`, and for an owner that is in two cohorts.
    """
    require_columns(owner_days, (OWNER, COHORT, DAY, *COUNTS))
    days = _with_checked_cells(owner_days)
    totals = days.groupby([OWNER, COHORT], as_index=False, sort=True)[list(COUNTS)].sum()
    return checked_totals(totals)


def settled_totals(totals: pd.DataFrame, drawn: frozenset[str] | None, sides: Sides) -> Settled:
    """Return checked totals with one row per owner, and how many owners were in several cohorts.

    Of such an owner the row of the cohort that the draw gave it is kept, or else the first by the
    cohort's name. `sides` are the cohorts compared.

    Raises:
        ValueError: as `checked_totals`, also for an owner that is twice in one cohort.
    """
    require_columns(totals, (OWNER, COHORT, *COUNTS))
    is_repeated = totals[OWNER].duplicated(keep=False).to_numpy()
    is_same = totals.duplicated([OWNER, COHORT]).to_numpy()
    if not is_repeated.any() or is_same.any():
        return Settled(checked_totals(totals), 0, drawn)
    several = totals[is_repeated]
    own = np.where(several[OWNER].isin(drawn or set()), sides[0].value, sides[1].value)
    order = several.assign(is_other=(several[COHORT] != own).to_numpy())
    order = order.sort_values([OWNER, "is_other", COHORT], kind="stable")
    kept = order.drop_duplicates(OWNER).drop(columns="is_other")
    return Settled(checked_totals(pd.concat([totals[~is_repeated], kept])), len(kept), drawn)


def checked_totals(totals: pd.DataFrame) -> pd.DataFrame:
    """Return owner totals sorted by owner, with whole-numbered counts and only known columns.

    Raises:
        ValueError: naming column, row and value, when a column is missing, an owner is unnamed
            or there twice, a cohort is unknown, or a count is not a whole number >= 0 or exceeds
            the prompts that started.
    """
    require_columns(totals, (OWNER, COHORT, *COUNTS))
    checked = _with_checked_cells(totals)
    is_repeated = checked[OWNER].duplicated().to_numpy()
    refuse_cells(
        checked, is_repeated, OWNER, why="is there twice; an owner has one row and one cohort"
    )
    refuse_contradictions(checked)
    return sorted_by_owner(checked)


def by_block(totals: pd.DataFrame, blocks: Mapping[str, str]) -> pd.DataFrame:
    """Sum checked owner totals to blocks, which are then drawn and compared like owners.

    Owners who share a limit, as those of one tenant do, can be slowed by each other's guard; the
    block they share is then the unit that the test must draw. `blocks` names each owner's block.

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
    return checked_totals(sums)


def block_names(owners: Iterable[str], blocks: Mapping[str, str]) -> npt.NDArray[np.object_]:
    """Return the block of each owner, or raise a ValueError that names one without a block."""
    names = []
    for owner in owners:
        if owner not in blocks:
            raise ValueError(f"owner {owner!r} has no block; name the block of every owner")
        names.append(blocks[owner])
    return np.array(names, dtype=object)


def outcomes(totals: pd.DataFrame, metric: Metric, cohorts: tuple[Cohort, Cohort]) -> Outcomes:
    """Return a metric's harm and trials by owner, for checked totals and (treated, reference).

    Completion trials are started - cancelled prompts, so a cancelled prompt is in no failure
    numerator; every other metric is per prompt started.

    Raises:
        ValueError: for a metric that owner totals do not hold.
    """
    treated, reference = cohorts
    chosen = totals[totals[COHORT].isin([treated.value, reference.value])]
    harm, trials = harm_and_trials(chosen, metric)
    has_trials = trials > 0
    owners = chosen[OWNER].to_numpy(dtype=object)[has_trials]
    is_treated = (chosen[COHORT] == treated.value).to_numpy(dtype=np.bool_)
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


def checked_owners(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return the `owner` column; an owner is a text that is not empty."""
    owners = frame[OWNER].to_numpy(dtype=object)
    is_named = np.fromiter(
        (isinstance(owner, str) and owner != "" for owner in owners), np.bool_, len(owners)
    )
    refuse_cells(frame, ~is_named, OWNER, why="is no owner; give a pseudonym")
    return owners


def checked_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `owner` and the counts as whole numbers, each cell checked on its own."""
    cells: dict[str, object] = {OWNER: checked_owners(frame)}
    for column in COUNTS:
        values = np.asarray(pd.to_numeric(frame[column], errors="coerce"), dtype=np.float64)
        # A NaN fails every comparison, so it is refused without a rule of its own.
        is_count = (values >= 0) & (values < EXACT) & (np.floor(values) == values)
        refuse_cells(
            frame, ~is_count, column, why="is no count; it must be a whole number from 0 to 2^53"
        )
        cells[column] = values.astype(np.int64)
    return pd.DataFrame(cells, index=frame.index)


def refuse_contradictions(frame: pd.DataFrame) -> None:
    """Refuse an owner whose prompts ended or were disrupted more often than they started."""
    started = frame["started"].to_numpy()
    ended = frame["completed"].to_numpy() + frame["cancelled"].to_numpy()
    why = "and cancelled together exceed the prompts started"
    refuse_cells(frame, ended > started, "completed", why=why)
    disrupted = frame["disrupted"].to_numpy()
    refuse_cells(frame, disrupted > started, "disrupted", why="exceeds the prompts started")


def sorted_by_owner(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by owner; a million names that are in order already need no sorting."""
    if frame[OWNER].is_monotonic_increasing:
        return frame.reset_index(drop=True)
    return frame.sort_values(OWNER, ignore_index=True)


def refuse_cells(frame: pd.DataFrame, is_bad: Flags, column: str, *, why: str) -> None:
    """Raise a ValueError that names the first bad row of a column with its value."""
    if is_bad.any():
        place = int(np.argmax(is_bad))
        value = frame[column].iloc[place]
        value = value.item() if isinstance(value, np.generic) else value
        raise ValueError(f"column {column!r}, row {frame.index[place]}: {value!r} {why}")


def require_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Raise a ValueError that names the first column a frame lacks."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"owner evidence lacks the column {missing[0]!r}; it needs {columns}")


def _with_checked_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Check each cell on its own; what several cells mean together is the caller's."""
    cohorts = frame[COHORT].astype(str)
    known = [cohort.value for cohort in Cohort]
    is_unknown = ~cohorts.isin(known).to_numpy()
    refuse_cells(frame, is_unknown, COHORT, why=f"is none of {', '.join(known)}")
    checked = checked_counts(frame).reset_index(drop=True)
    checked.insert(1, COHORT, cohorts.to_numpy(dtype=object))
    return checked
