"""Column checks: what a cell of a frame may hold, with errors that name column, row and value.

An error names a row by the frame's index, and by its place too where the index repeats.
"""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pandas as pd

OWNER = "owner"
# From it on a float does not hold every whole number.
EXACT = 2.0**53
NO_COUNT = "is no count; it must be a whole number from 0 to below 2^53"

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_NUMBERS = (str, int, float, Decimal, np.integer, np.floating)
# numpy and Python derive these types from whole numbers, but nobody means a number by them.
_NO_NUMBERS = (bool, np.timedelta64)
_LONGEST = 80


def refuse_cells(
    frame: pd.DataFrame, is_bad: Flags, column: str, *, why: str, is_summed: bool = False
) -> None:
    """Raise a ValueError that names the first bad row of a column with its value.

    The rows of sums are not the caller's: with `is_summed` the error names the owner.
    """
    if not is_bad.any():
        return
    place = int(np.argmax(is_bad))
    value = frame[column].iloc[place]
    value = value.item() if isinstance(value, np.generic) else value
    # Counts are summed as floats.
    shown = repr(int(value) if is_summed else value)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    row = row_of(frame, place)
    if is_summed:
        row = f"rows of the owner {frame[OWNER].iloc[place]!r} together"
    raise ValueError(f"column {column!r}, {row}: {shown} {why}")


def row_of(frame: pd.DataFrame, place: int) -> str:
    """Name a row as its caller knows it; `place` counts from 0."""
    return f"row {row_label(frame, place)}"


def row_label(frame: pd.DataFrame, place: int) -> str:
    """Return the unique label of a row: its index, and its place too where the index repeats."""
    label = str(frame.index[place])
    return label if frame.index.is_unique else f"{label} (at place {place})"


def require_columns(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise a ValueError that names the columns a frame lacks, or has twice."""
    require_plain_columns(frame)
    missing = [column for column in columns if column not in frame.columns]
    if not missing:
        return
    kind = "column" if len(missing) == 1 else "columns"
    message = f"owner evidence lacks the {kind} {', '.join(map(repr, missing))}"
    in_index = [name for name in missing if name in frame.index.names]
    if in_index:
        are = "is" if len(in_index) == 1 else "are"
        message += f"; {' and '.join(map(repr, in_index))} {are} in the index, call reset_index()"
    raise ValueError(f"{message}; it needs {', '.join(columns)}")


def require_plain_columns(frame: pd.DataFrame) -> None:
    """Raise a ValueError for columns that have several levels, or two of one name."""
    if frame.columns.nlevels > 1:
        raise ValueError(
            f"the columns have {frame.columns.nlevels} levels, such as {frame.columns[0]!r}; give "
            "each one name, as frame.columns = [...] does"
        )
    is_repeated = frame.columns.duplicated()
    if is_repeated.any():
        name = frame.columns[int(np.argmax(is_repeated))]
        places = np.flatnonzero(frame.columns == name)[:2]
        raise ValueError(
            f"column {name!r} is there twice, at places {places[0]} and {places[1]}; keep one"
        )


def checked_owners(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return the `owner` column; each owner must be a text that is not empty."""
    owners = frame[OWNER].to_numpy(dtype=object)
    is_named = np.fromiter(
        (isinstance(owner, str) and owner != "" for owner in owners), np.bool_, len(owners)
    )
    refuse_cells(frame, ~is_named, OWNER, why="is no owner; give a pseudonym")
    return owners


def counts_of(frame: pd.DataFrame, column: str, *, is_summed: bool = False) -> Counts:
    """Return a column of whole numbers >= 0, whether written as integers, floats or text."""
    values = numbers_of(frame[column])
    # A NaN fails every comparison, so it is refused without a rule of its own.
    is_count = (values >= 0) & (values < EXACT) & (np.floor(values) == values)
    refuse_cells(frame, ~is_count, column, why=NO_COUNT, is_summed=is_summed)
    return values.astype(np.int64)


def numbers_of(cells: pd.Series) -> Floats:
    """Return cells as floats; NaN where a cell is no number, such as a flag or a time."""
    kind = getattr(cells.dtype, "kind", "O")
    if kind in "bcmM":
        return np.full(len(cells), np.nan)
    if kind not in "iuf":
        cells = cells.astype(object)
        is_number = [
            isinstance(cell, _NUMBERS) and not isinstance(cell, _NO_NUMBERS) for cell in cells
        ]
        cells = cells.where(np.array(is_number, dtype=np.bool_), np.nan)
    numbers = pd.to_numeric(cells, errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
