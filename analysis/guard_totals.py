"""What the guard did, by owner: optional columns that checks read beside the metrics' counts."""

import pandas as pd

from analysis.cells import OWNER, checked_owners, counts_of, refuse_cells, require_columns

# would_stopped and stopped count decisions, calls_after_would_stop tool calls; unreliable and
# off_pin count prompts, loops loop events of other protections.
GUARD_COUNTS = (
    "would_stopped",
    "stopped",
    "calls_after_would_stop",
    "unreliable",
    "off_pin",
    "loops",
)


def guard_totals(owner_days: pd.DataFrame) -> pd.DataFrame:
    """Sum the guard's columns of owner-days to one row per owner, sorted by owner.

    A column that the owner-days lack is lacking in the answer too: not reported, which no check
    reads as zero.

    Raises:
        ValueError: naming column, row and value, for a cell that is not a whole number >= 0.
    """
    present = _checked(owner_days)
    columns = [column for column in GUARD_COUNTS if column in present.columns]
    return present.groupby(OWNER, as_index=False, sort=True)[columns].sum()


def checked_guard_totals(totals: pd.DataFrame) -> pd.DataFrame:
    """Return guard totals sorted by owner, with whole-numbered counts and only known columns.

    Raises:
        ValueError: naming column, row and value, for an owner that is there twice or a cell that
            is not a whole number >= 0.
    """
    checked = _checked(totals)
    is_repeated = checked[OWNER].duplicated().to_numpy()
    refuse_cells(totals, is_repeated, OWNER, why="is there twice; an owner has one row")
    return checked.sort_values(OWNER, ignore_index=True)


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    require_columns(frame, (OWNER,))
    checked = pd.DataFrame({OWNER: checked_owners(frame)})
    for column in GUARD_COUNTS:
        if column in frame.columns:
            checked[column] = counts_of(frame, column)
    return checked
