"""The columns of a file of owners: each checked by its own name, then turned into evidence.

One row per owner: `owner, arm, prompts, completions, disconnects, tokens, turns`, where there are
any `cancelled`, the same counts before the wave as `pre_*`, and durations. `latency_hist` holds
them as "bucket:count ...", in base-2 exponential buckets of milliseconds beside `latency_scale`,
or beside `latency_bounds`, "10 100 1000": upper bounds in ms of buckets that are counted from 0.
"""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.baseline import COMPARABLE, LEAST_DAYS, Baseline
from analysis.frames import COHORT, EXACT, OWNER, Floats, checked_owners, refuse_cells
from analysis.histograms import (
    BUCKET,
    COUNT,
    SCALES,
    Durations,
    ExplicitHistograms,
    OwnerHistograms,
    merged,
)
from reducer.vocabulary import Cohort

ARM = "arm"
# What a file calls each count of owner totals.
COUNT_NAMES: Mapping[str, str] = {
    "started": "prompts",
    "cancelled": "cancelled",
    "completed": "completions",
    "disrupted": "disconnects",
    "tokens": "tokens",
    "turns": "turns",
}
BEFORE = "pre_"
NEEDED = (OWNER, ARM, *(name for name in COUNT_NAMES.values() if name != "cancelled"))
HISTOGRAM, SCALE, BOUNDS = "latency_hist", "latency_scale", "latency_bounds"
OPTIONAL = ("cancelled", HISTOGRAM, SCALE, BOUNDS)
# A file names no days: its pre_* columns are taken for the week that CUPED asks for.
WEEK = tuple(dt.date(2000, 1, 3) + dt.timedelta(days=day) for day in range(LEAST_DAYS))


class Arms(NamedTuple):
    """What a file calls the two cohorts."""

    treated: str
    control: str


class OwnerFile(NamedTuple):
    """A file as evidence. `totals` has a row per owner, with `cohort` enforced or control."""

    totals: pd.DataFrame
    durations: Durations | None
    baseline: Baseline | None


def read_columns(file: pd.DataFrame, arms: Arms) -> OwnerFile:
    """Return a file's rows, all texts or already numbers, as evidence.

    Raises:
        ValueError: naming column, row (the frame's index) and value, for a column that is missing
            or unknown, an owner that is unnamed or there twice, an arm that is neither of both, or
            a cell that is no count or contradicts another one.
    """
    _check_names(file, arms)
    owners = checked_owners(file)
    is_twice = file[OWNER].duplicated().to_numpy()
    refuse_cells(file, is_twice, OWNER, why="is there twice; give each owner one row")
    is_treated = (file[ARM] == arms.treated).to_numpy()
    is_neither = ~is_treated & (file[ARM] != arms.control).to_numpy()
    refuse_cells(file, is_neither, ARM, why=f"is neither {arms.treated!r} nor {arms.control!r}")
    totals = pd.DataFrame(
        {
            OWNER: owners,
            COHORT: np.where(is_treated, Cohort.ENFORCED.value, Cohort.CONTROL.value),
            **_counts(file, ""),
        }
    )
    return OwnerFile(totals, _durations(file, totals), _baseline(file, owners))


def _check_names(file: pd.DataFrame, arms: Arms) -> None:
    if arms.treated == arms.control:
        raise ValueError(f"both arms are {arms.treated!r}; name two")
    before = {f"{BEFORE}{name}" for name in COUNT_NAMES.values()}
    for column in file.columns:
        if column not in {*NEEDED, *OPTIONAL, *before}:
            known = ", ".join([*NEEDED, *OPTIONAL, *sorted(before)])
            raise ValueError(f"column {column!r} is not known; rename or drop it, known: {known}")
    needed = [*NEEDED]
    if before & set(file.columns):
        needed += [f"{BEFORE}{name}" for name in COUNT_NAMES.values() if name != "cancelled"]
    if HISTOGRAM in file.columns and not {SCALE, BOUNDS} & set(file.columns):
        needed.append(SCALE)
    if {SCALE, BOUNDS} & set(file.columns):
        needed.append(HISTOGRAM)
    for column in needed:
        if column not in file.columns:
            raise ValueError(f"column {column!r} is missing; the columns are {list(file.columns)}")


def _counts(file: pd.DataFrame, prefix: str) -> Mapping[str, Floats]:
    """Return the counts by their names in owner totals; cancelled prompts may be left out."""
    found: dict[str, Floats] = {}
    for name, written in COUNT_NAMES.items():
        column = f"{prefix}{written}"
        if column in file.columns:
            found[name] = _whole(file, column)
        else:
            found[name] = np.zeros(len(file))
    is_more = found["completed"] + found["cancelled"] > found["started"]
    why = f"exceeds {prefix}prompts less {prefix}cancelled"
    refuse_cells(file, is_more, f"{prefix}completions", why=why)
    is_more = found["disrupted"] > found["started"]
    refuse_cells(file, is_more, f"{prefix}disconnects", why=f"exceeds {prefix}prompts")
    return found


def _whole(file: pd.DataFrame, column: str) -> Floats:
    values = np.asarray(pd.to_numeric(file[column], errors="coerce"), dtype=np.float64)
    # A NaN fails every comparison, so it is refused without a rule of its own.
    is_count = (values >= 0) & (values < EXACT) & (np.floor(values) == values)
    refuse_cells(
        file, ~is_count, column, why="is no count; it must be a whole number from 0 to 2^53"
    )
    return values


def _baseline(file: pd.DataFrame, owners: object) -> Baseline | None:
    if f"{BEFORE}prompts" not in file.columns:
        return None
    counts = _counts(file, BEFORE)
    return Baseline(pd.DataFrame({OWNER: owners, **counts, COMPARABLE: True}), WEEK)


def _durations(file: pd.DataFrame, totals: pd.DataFrame) -> Durations | None:
    if HISTOGRAM not in file.columns:
        return None
    entries = _entries(file)
    told = entries.groupby(level=0)[COUNT].sum().reindex(file.index, fill_value=0).to_numpy()
    why = "counts more durations than there are prompts"
    refuse_cells(file, told > totals["started"].to_numpy(), HISTOGRAM, why=why)
    if BOUNDS in file.columns:
        return _explicit(file, entries)
    scales = _scales(file)
    parts = [
        OwnerHistograms.of(entries[entries.index.isin(file.index[scales == scale])], int(scale))
        for scale in np.unique(scales[~np.isnan(scales)])
    ]
    return merged(parts) if len(entries) else None


def _entries(file: pd.DataFrame) -> pd.DataFrame:
    """Return one line per "bucket:count", under the index of its row."""
    texts = file[HISTOGRAM].fillna("").astype(str)
    pairs = texts.str.split().explode().dropna()
    split = pairs.str.extract(r"^(-?\d{1,9}):(\d{1,15})$")
    is_bad = split[0].isna().to_numpy()
    if is_bad.any():
        place = pairs.index[int(np.argmax(is_bad))]
        raise ValueError(
            f"column {HISTOGRAM!r}, row {place}: {pairs.iloc[int(np.argmax(is_bad))]!r} is no "
            "bucket:count; write whole numbers, such as 75:1 80:2"
        )
    return pd.DataFrame(
        {
            OWNER: file[OWNER].reindex(pairs.index).to_numpy(dtype=object),
            BUCKET: split[0].astype(np.int64),
            COUNT: split[1].astype(np.int64),
        }
    )


def _scales(file: pd.DataFrame) -> Floats:
    """Return the scale of each row with a histogram, NaN where it has none."""
    has_any = file[HISTOGRAM].fillna("").astype(str).str.strip().ne("").to_numpy()
    scales = np.asarray(pd.to_numeric(file[SCALE], errors="coerce"), dtype=np.float64)
    is_known = np.isin(scales, list(SCALES))
    why = f"is no scale; it must be a whole number from {SCALES.start} to {SCALES.stop - 1}"
    refuse_cells(file, has_any & ~is_known, SCALE, why=why)
    return np.where(has_any, scales, np.nan)


def _explicit(file: pd.DataFrame, entries: pd.DataFrame) -> ExplicitHistograms:
    """Return histograms whose bounds stand in every row that has one, always the same."""
    if SCALE in file.columns:
        raise ValueError(f"columns {SCALE!r} and {BOUNDS!r} exclude each other; give one of them")
    has_any = file.index.isin(entries.index)
    texts = file[BOUNDS].fillna("").astype(str).str.split().str.join(" ")
    first = texts[has_any].iloc[0] if has_any.any() else ""
    is_other = has_any & (texts != first).to_numpy()
    refuse_cells(file, is_other, BOUNDS, why=f"are not the bounds of the first row, {first!r}")
    try:
        bounds = tuple(float(word) for word in first.split())
    except ValueError:
        raise ValueError(f"column {BOUNDS!r}: {first!r} are no numbers; give ms") from None
    is_outside = ~entries[BUCKET].between(0, len(bounds)).to_numpy()
    why = f"is no bucket of {len(bounds)} bounds; they are counted from 0 to {len(bounds)}"
    refuse_cells(entries.rename(columns={BUCKET: HISTOGRAM}), is_outside, HISTOGRAM, why=why)
    places, owners = pd.factorize(entries[OWNER], sort=True)
    counts = np.zeros((len(owners), len(bounds) + 1), dtype=np.int64)
    np.add.at(counts, (places, entries[BUCKET].to_numpy()), entries[COUNT].to_numpy())
    return ExplicitHistograms(tuple(owners), bounds, counts)
