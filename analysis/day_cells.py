"""Days as people write them: ISO text, dates, midnights. What could be another day is refused."""

import datetime as dt
import re
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.cells import refuse_cells
from analysis.frames import DAY

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NO_DAY = "is no day; give an ISO date, such as 2026-11-24"
_NO_MIDNIGHT = "is no midnight in UTC; give the UTC day, as with dt.tz_convert('UTC').dt.floor('D')"


def days_of(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return each row's UTC day as a `datetime.date`.

    Taken are ISO dates as text, dates, timestamps at midnight (with a zone: in UTC) and daily
    periods. A number is none: it would be read as a time since 1970.

    Raises:
        ValueError: naming row, value and remedy.
    """
    try:
        codes, distinct = pd.factorize(frame[DAY])
    except TypeError:
        # A list cannot be looked up.
        is_list = [not isinstance(cell, Hashable) for cell in frame[DAY]]
        refuse_cells(frame, np.array(is_list, dtype=np.bool_), DAY, why=_NO_DAY)
        raise
    # The last one is that of a missing cell, whose code is -1.
    read = [*map(_day_or_why, distinct), _NO_DAY]
    is_bad = np.array([isinstance(each, str) for each in read])[codes]
    if is_bad.any():
        refuse_cells(frame, is_bad, DAY, why=str(read[codes[int(np.argmax(is_bad))]]))
    days = np.empty(len(read), dtype=object)
    days[:] = read
    return days[codes]


def named_days(days: Iterable[object]) -> tuple[dt.date, ...]:
    """Return days that somebody named, each once, in order; they are written as in `days_of`.

    Raises:
        ValueError: naming entry, value and remedy; also without any day.
        TypeError: `days` is no collection.
    """
    if isinstance(days, str | bytes) or not isinstance(days, Iterable):
        raise TypeError(f"days is {days!r}; give a list of days, such as ['2026-11-24']")
    found = set()
    for place, cell in enumerate(days):
        read = _day_or_why(cell)
        if isinstance(read, str):
            raise ValueError(f"days, entry {place}: {cell!r} {read}")
        found.add(read)
    if not found:
        raise ValueError("days names no day; name the complete days, or leave it out")
    return tuple(sorted(found))


def _day_or_why(cell: object) -> dt.date | str:
    """Return a cell as a day, or words that say why it is none."""
    if isinstance(cell, str):
        return _of_text(cell)
    if isinstance(cell, pd.Period):
        return cell.start_time.date() if cell.freqstr == "D" else _NO_DAY
    if isinstance(cell, np.datetime64):
        cell = pd.Timestamp(cell)
    if cell is pd.NaT:
        return _NO_DAY
    if isinstance(cell, dt.datetime):
        stamp = pd.Timestamp(cell)
        in_utc = stamp if stamp.tzinfo is None else stamp.tz_convert("UTC")
        return in_utc.date() if in_utc == in_utc.normalize() else _NO_MIDNIGHT
    return cell if isinstance(cell, dt.date) else _NO_DAY


def _of_text(text: str) -> dt.date | str:
    try:
        return dt.date.fromisoformat(text) if _ISO.fullmatch(text) else _NO_DAY
    except ValueError:
        return _NO_DAY
