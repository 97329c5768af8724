"""Owner-days: the rows of one wave in a frame, from the evidence API, an export or a person.

Some rows are never added up: those of two environments, guards, waves or sources, and an owner-day
that appears twice. They are refused here.
"""

import datetime as dt
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames.column_checks import (
    OWNER,
    checked_owners,
    counts_of,
    refuse_cells,
    require_columns,
    row_label,
    row_of,
)
from guardwave.analysis.frames.evidence import Share
from guardwave.analysis.frames.owner_totals import (
    COHORT,
    COUNTS,
    DAY,
    checked_rows,
    refuse_contradictions,
)
from guardwave.reducer.rollout.state import COHORT_MODES, EvidenceSource, gate_for
from guardwave.reducer.vocabulary import Cohort, Gate, Mode

ENVIRONMENT, GUARD, WAVE, SOURCE = "environment", "guard", "wave", "source"
VERSION, MODE = "version", "mode"
# With owner, day and cohort they identify an owner-day of a wave.
_TREATMENT = (VERSION, MODE)
_GATES: Mapping[str, Gate] = {
    cohort.value: gate
    for phase, cohorts in COHORT_MODES.items()
    if (gate := gate_for(phase)) is not None
    for cohort in cohorts
}
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NO_DAY = "is no day; give an ISO date, such as 2026-11-24"
_NO_MIDNIGHT = "is no midnight in UTC; give the UTC day, as with dt.tz_convert('UTC').dt.floor('D')"


@dataclass(frozen=True, slots=True, eq=False)
class OwnerDays:
    """Checked owner-days of one wave; `rows` has each `day` as a date, and its caller's row names.

    `environment`, `guard` and `wave` are None where the frame has no such column.
    """

    rows: pd.DataFrame
    environment: str | None
    guard: str | None
    wave: int | None
    source: EvidenceSource
    gate: Gate


def read_owner_days(frame: pd.DataFrame) -> OwnerDays:
    """Return owner-days once they are known to be of one wave, unique and without contradiction.

    Without `source` they count as made from events. By counters a row may contradict itself: a
    prompt over midnight ends on another day than it started.

    Raises:
        ValueError: naming column, row, value and remedy.
    """
    require_columns(frame, (OWNER, COHORT, DAY, *COUNTS))
    if not frame.index.is_unique:
        frame = frame.set_axis([row_label(frame, place) for place in range(len(frame))])
    rows = frame.assign(**{OWNER: checked_owners(frame), DAY: days_of(frame)})
    names = {column: _only_name(rows, column) for column in (ENVIRONMENT, GUARD)}
    source = _source(rows)
    wave = None
    if WAVE in rows.columns:
        rows = rows.assign(**{WAVE: counts_of(rows, WAVE)})
        wave = int(rows[WAVE].iloc[0]) if _has_one_value(rows, WAVE) else None
    checked = checked_rows(rows)
    if source is EvidenceSource.EVENTS:
        refuse_contradictions(checked)
    rows = rows.assign(**{column: checked[column] for column in (COHORT, *COUNTS)})
    _refuse_unknown_words(rows, MODE, Mode)
    _refuse_repeated(rows)
    return OwnerDays(rows, names[ENVIRONMENT], names[GUARD], wave, source, _gate(rows))


def share_of(rows: pd.DataFrame, part: str, whole: str) -> Share | None:
    """Return the sum of one column as a part of another's; None without both columns.

    Raises:
        ValueError: naming the row whose part is more than its whole.
    """
    if part not in rows.columns or whole not in rows.columns:
        return None
    parts, wholes = counts_of(rows, part), counts_of(rows, whole)
    is_more = parts > wholes
    if is_more.any():
        most = wholes[int(np.argmax(is_more))]
        refuse_cells(rows, is_more, part, why=f"exceeds the prompts {whole}, {most}")
    return Share(int(parts.sum()), int(wholes.sum()))


def cohorts_of(gate: Gate) -> tuple[Cohort, Cohort]:
    """Return the cohorts that a gate compares, treated and reference."""
    first, *others = (Cohort(name) for name, its_gate in _GATES.items() if its_gate is gate)
    return first, others[0] if others else first


def days_of(frame: pd.DataFrame) -> npt.NDArray[np.object_]:
    """Return each row's UTC day as a `datetime.date`.

    A cell may be an ISO date as text, a date, a timestamp at midnight (in UTC, where it has a zone)
    or a daily period. A number is refused: pandas would read it as a time since 1970.

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
    parsed = [*map(_parse_day, distinct), _NO_DAY]
    is_bad = np.array([isinstance(day, str) for day in parsed])[codes]
    if is_bad.any():
        refuse_cells(frame, is_bad, DAY, why=str(parsed[codes[int(np.argmax(is_bad))]]))
    days = np.empty(len(parsed), dtype=object)
    days[:] = parsed
    return days[codes]


def parse_days(days: Iterable[object]) -> tuple[dt.date, ...]:
    """Return the days that somebody listed, in order and without repetition.

    An entry may be whatever `days_of` accepts.

    Raises:
        ValueError: naming entry, value and remedy; also without any day.
        TypeError: `days` is no collection.
    """
    if isinstance(days, str | bytes) or not isinstance(days, Iterable):
        raise TypeError(f"days is {days!r}; give a list of days, such as ['2026-11-24']")
    distinct = set()
    for place, cell in enumerate(days):
        day = _parse_day(cell)
        if isinstance(day, str):
            raise ValueError(f"days, entry {place}: {cell!r} {day}")
        distinct.add(day)
    if not distinct:
        raise ValueError("days names no day; name the complete days, or leave it out")
    return tuple(sorted(distinct))


def _parse_day(cell: object) -> dt.date | str:
    """Return a cell as a day, or in words why it is none."""
    if isinstance(cell, str):
        return _parse_text(cell)
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


def _parse_text(text: str) -> dt.date | str:
    try:
        return dt.date.fromisoformat(text) if _ISO.fullmatch(text) else _NO_DAY
    except ValueError:
        return _NO_DAY


def _only_name(rows: pd.DataFrame, column: str) -> str | None:
    if column not in rows.columns or not _has_one_value(rows, column):
        return None
    name = rows[column].iloc[0]
    is_text = isinstance(name, str) and name != ""
    why = f"is no {column}; give its name"
    refuse_cells(rows, np.full(len(rows), not is_text), column, why=why)
    return str(name)


def _source(rows: pd.DataFrame) -> EvidenceSource:
    if SOURCE not in rows.columns:
        return EvidenceSource.EVENTS
    _refuse_unknown_words(rows, SOURCE, EvidenceSource)
    is_known = _has_one_value(rows, SOURCE)
    return EvidenceSource(rows[SOURCE].iloc[0]) if is_known else EvidenceSource.EVENTS


def _refuse_unknown_words(rows: pd.DataFrame, column: str, words: type[StrEnum]) -> None:
    if column in rows.columns:
        known = [word.value for word in words]
        is_unknown = ~rows[column].isin(known).to_numpy(dtype=np.bool_)
        refuse_cells(rows, is_unknown, column, why=f"is none of {', '.join(known)}")


def _has_one_value(rows: pd.DataFrame, column: str) -> bool:
    """Whether a column has a value; two of them are refused."""
    if rows.empty:
        return False
    cells = rows[column]
    is_missing = cells.isna().to_numpy()
    refuse_cells(rows, is_missing, column, why=f"is no {column}; give every row its own")
    first = cells.iloc[0]
    first = first.item() if isinstance(first, np.generic) else first
    why = (
        f"is another {column} than {first!r} of {row_of(rows, 0)}, and these are never added up; "
        f"judge one at a time, as with frame[frame[{column!r}] == {first!r}]"
    )
    refuse_cells(rows, (cells != first).to_numpy(dtype=np.bool_), column, why=why)
    return True


def _refuse_repeated(rows: pd.DataFrame) -> None:
    present = [column for column in _TREATMENT if column in rows.columns]
    key = rows[[OWNER, DAY, COHORT, *present]].astype(dict.fromkeys(present, str))
    is_repeated = key.duplicated().to_numpy()
    if not is_repeated.any():
        return
    place = int(np.argmax(is_repeated))
    day = rows[DAY].iloc[place]
    earlier = row_of(rows, int(np.argmax((key == key.iloc[place]).all(axis=1).to_numpy())))
    remedy = "leave one of them out"
    absent = [column for column in _TREATMENT if column not in present]
    if absent:
        remedy += f", or keep the column {' and '.join(absent)}, which may tell them apart"
    why = f"has its owner-day of {day} in {earlier} already; {remedy}"
    refuse_cells(rows, is_repeated, OWNER, why=why)


def _gate(rows: pd.DataFrame) -> Gate:
    """Return the gate of the phase whose cohorts these are; the enforce gate without any."""
    gates = rows[COHORT].map(_GATES)
    known = gates.dropna()
    if known.empty:
        return Gate.ENFORCE
    first = known.iloc[0]
    is_other = (gates.notna() & (gates != first)).to_numpy(dtype=np.bool_)
    place = int(np.argmax(gates.notna().to_numpy()))
    why = (
        f"is no cohort of the phase that has {rows[COHORT].iloc[place]!r} of "
        f"{row_of(rows, place)}; judge one wave at a time"
    )
    refuse_cells(rows, is_other, COHORT, why=why)
    return Gate(first)
