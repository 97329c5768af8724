"""Owner-days in a frame, as the evidence API, an export or a person writes them: one wave's alone.

What is never added up is refused here: environments, guards, waves or sources together, and an
owner-day that is there twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from analysis.cells import (
    OWNER,
    checked_owners,
    counts_of,
    refuse_cells,
    require_columns,
    row_label,
    row_of,
)
from analysis.day_cells import days_of
from analysis.evidence import Share
from analysis.frames import COHORT, COUNTS, DAY, checked_rows, refuse_contradictions
from reducer.rollout.phases import COHORT_MODES, gate_for
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Gate, Mode

ENVIRONMENT, GUARD, WAVE, SOURCE = "environment", "guard", "wave", "source"
VERSION, MODE = "version", "mode"
# Beside owner, day and cohort they tell owner-days of one wave apart.
_TREATMENT = (VERSION, MODE)
_GATES: Mapping[str, Gate] = {
    cohort.value: gate
    for phase, cohorts in COHORT_MODES.items()
    if (gate := gate_for(phase)) is not None
    for cohort in cohorts
}


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
    """Return owner-days once they are known to be of one wave, each once, without contradiction.

    Without `source` they count as made from events. By counters a row may contradict itself: a
    prompt over midnight ends on another day than it started.

    Raises:
        ValueError: naming column, row, value and remedy.
    """
    require_columns(frame, (OWNER, COHORT, DAY, *COUNTS))
    if not frame.index.is_unique:
        frame = frame.set_axis([row_label(frame, place) for place in range(len(frame))])
    rows = frame.assign(**{OWNER: checked_owners(frame), DAY: days_of(frame)})
    named = {column: _only_name(rows, column) for column in (ENVIRONMENT, GUARD)}
    source = _source(rows)
    wave = None
    if WAVE in rows.columns:
        rows = rows.assign(**{WAVE: counts_of(rows, WAVE)})
        wave = int(rows[WAVE].iloc[0]) if _is_one(rows, WAVE) else None
    checked = checked_rows(rows)
    if source is EvidenceSource.EVENTS:
        refuse_contradictions(checked)
    rows = rows.assign(**{column: checked[column] for column in (COHORT, *COUNTS)})
    _refuse_words(rows, MODE, Mode)
    _refuse_repeated(rows)
    return OwnerDays(rows, named[ENVIRONMENT], named[GUARD], wave, source, _gate(rows))


def share_of(rows: pd.DataFrame, part: str, whole: str) -> Share | None:
    """Return what part of the prompts of a column another one counts; None without both.

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


def _only_name(rows: pd.DataFrame, column: str) -> str | None:
    if column not in rows.columns or not _is_one(rows, column):
        return None
    name = rows[column].iloc[0]
    is_text = isinstance(name, str) and name != ""
    why = f"is no {column}; give its name"
    refuse_cells(rows, np.full(len(rows), not is_text), column, why=why)
    return str(name)


def _source(rows: pd.DataFrame) -> EvidenceSource:
    if SOURCE not in rows.columns:
        return EvidenceSource.EVENTS
    _refuse_words(rows, SOURCE, EvidenceSource)
    is_known = _is_one(rows, SOURCE)
    return EvidenceSource(rows[SOURCE].iloc[0]) if is_known else EvidenceSource.EVENTS


def _refuse_words(rows: pd.DataFrame, column: str, words: type[StrEnum]) -> None:
    if column in rows.columns:
        known = [word.value for word in words]
        is_unknown = ~rows[column].isin(known).to_numpy(dtype=np.bool_)
        refuse_cells(rows, is_unknown, column, why=f"is none of {', '.join(known)}")


def _is_one(rows: pd.DataFrame, column: str) -> bool:
    """Whether a column has a value; two of them are refused."""
    if rows.empty:
        return False
    cells = rows[column]
    missing = cells.isna().to_numpy()
    refuse_cells(rows, missing, column, why=f"is no {column}; give every row its own")
    first = cells.iloc[0]
    first = first.item() if isinstance(first, np.generic) else first
    why = (
        f"is another {column} than {first!r} of {row_of(rows, 0)}, and these are never added up; "
        f"judge one at a time, as with frame[frame[{column!r}] == {first!r}]"
    )
    refuse_cells(rows, (cells != first).to_numpy(dtype=np.bool_), column, why=why)
    return True


def _refuse_repeated(rows: pd.DataFrame) -> None:
    told = [column for column in _TREATMENT if column in rows.columns]
    key = rows[[OWNER, DAY, COHORT, *told]].astype(dict.fromkeys(told, str))
    is_repeated = key.duplicated().to_numpy()
    if not is_repeated.any():
        return
    place = int(np.argmax(is_repeated))
    day = rows[DAY].iloc[place]
    earlier = row_of(rows, int(np.argmax((key == key.iloc[place]).all(axis=1).to_numpy())))
    remedy = "leave one of them out"
    untold = [column for column in _TREATMENT if column not in told]
    if untold:
        remedy += f", or keep the column {' and '.join(untold)}, which may tell them apart"
    why = f"has its owner-day of {day} in {earlier} already; {remedy}"
    refuse_cells(rows, is_repeated, OWNER, why=why)


def _gate(rows: pd.DataFrame) -> Gate:
    """Return the gate of the phase whose cohorts these are; the enforce gate without any."""
    gates = rows[COHORT].map(_GATES)
    told = gates.dropna()
    if told.empty:
        return Gate.ENFORCE
    first = told.iloc[0]
    is_other = (gates.notna() & (gates != first)).to_numpy(dtype=np.bool_)
    at = int(np.argmax(gates.notna().to_numpy()))
    why = (
        f"is no cohort of the phase that has {rows[COHORT].iloc[at]!r} of {row_of(rows, at)}; "
        "judge one wave at a time"
    )
    refuse_cells(rows, is_other, COHORT, why=why)
    return Gate(first)


def cohorts_of(gate: Gate) -> tuple[Cohort, Cohort]:
    """Return the cohorts that a gate compares, treated and reference."""
    first, *others = (Cohort(name) for name, own in _GATES.items() if own is gate)
    return first, others[0] if others else first
