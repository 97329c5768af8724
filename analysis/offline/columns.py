"""Columns of an owner file: which ones are known, the checks of their cells, and their evidence.

The file has one row per owner. Needed are `owner, arm, prompts, completions, disconnects, tokens,
turns`. Optional are `cancelled`, the same counts before the wave as `pre_*`, `loops` (loop events
of other protections), missing values (`ended`, `tokens_untold`, `turns_untold`), and durations.
`latency_hist` holds durations as "bucket:count ...": beside `latency_scale` in base-2 exponential
buckets of milliseconds, or beside `latency_bounds` ("10 100 1000", upper bounds in ms) in buckets
that are numbered from 0.
"""

import datetime as dt
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from guardwave.analysis.frames import (
    BUCKET,
    COHORT,
    COMPARABLE,
    COUNT,
    ENDED,
    LEAST_DAYS,
    MISSING_COLUMNS,
    OWNER,
    SCALES,
    Baseline,
    Counts,
    Durations,
    ExplicitHistograms,
    Flags,
    Floats,
    MissingValues,
    OwnerHistograms,
    checked_owners,
    counts_of,
    merge_histograms,
    missing_values_of,
    numbers_of,
    refuse_cells,
)
from guardwave.analysis.gate import LOOPS
from guardwave.reducer.vocabulary import Cohort

ARM = "arm"
# The name of each count of owner totals in a file.
COUNT_NAMES: Mapping[str, str] = {
    "started": "prompts",
    "cancelled": "cancelled",
    "completed": "completions",
    "disrupted": "disconnects",
    "tokens": "tokens",
    "turns": "turns",
}
BEFORE = "pre_"
COUNTED = tuple(name for name in COUNT_NAMES.values() if name != "cancelled")
NEEDED = (OWNER, ARM, *COUNTED)
NEEDED_BEFORE = tuple(f"{BEFORE}{name}" for name in COUNTED)
ALL_BEFORE = (*NEEDED_BEFORE, f"{BEFORE}cancelled")
HISTOGRAM, SCALE, BOUNDS = "latency_hist", "latency_scale", "latency_bounds"
OF_ENDS = (ENDED, *MISSING_COLUMNS.values())
KNOWN = (*NEEDED, "cancelled", LOOPS, *OF_ENDS, HISTOGRAM, SCALE, BOUNDS, *ALL_BEFORE)
# Names in evidence for columns of a file.
EVIDENCE_NAMES: Mapping[str, str] = {
    "cohort": ARM,
    **{name: column for name, column in COUNT_NAMES.items() if name != column},
}
# From this similarity (difflib) on one name is taken for a misspelling of the other.
SIMILARITY = 0.85
# The column of an index that pandas wrote without a name.
_INDEX = re.compile(r"^$|^Unnamed: \d+$")
# A file names no days: its pre_* columns count as the week that CUPED needs.
WEEK = tuple(dt.date(2000, 1, 3) + dt.timedelta(days=day) for day in range(LEAST_DAYS))

# A message lists at most so many arms.
MOST_LISTED = 5
# No prompt takes 2^1000 ms or 2^-1000 ms; a float holds both.
MOST_DOUBLINGS = 1000.0
# Between the fastest and the slowest bucket of a file, at its coarsest scale.
MOST_BUCKETS = 2**20


class Arms(NamedTuple):
    """The names of the two cohorts in a file."""

    treated: str
    control: str


class OwnerFile(NamedTuple):
    """A file as evidence. `totals` has a row per owner, with `cohort` enforced or control.

    `loops` has the `owner` and `loops` of each row, None where the file has no such column.
    `missing` counts the prompts that did not report a metric, of those that `ended`, or of all that
    started where the file has no such column. `remarks` name the ignored columns, with the reason.
    """

    totals: pd.DataFrame
    loops: pd.DataFrame | None
    durations: Durations | None
    baseline: Baseline | None
    missing: MissingValues
    remarks: tuple[str, ...]


def read_columns(file: pd.DataFrame, arms: Arms) -> OwnerFile:
    """Return a file's rows, all texts or already numbers, as evidence.

    Raises:
        ValueError: naming column, row (the frame's index) and value, for a column that is missing
            or looks like a misspelling of a known one, an owner that is unnamed or there twice, an
            arm that is neither of both, or a cell that is no count or contradicts another one.
    """
    if arms.treated == arms.control:
        raise ValueError(f"both arms are {arms.treated!r}; name two")
    file, remarks = known_columns(file)
    owners = checked_owners(file)
    is_repeated = file[OWNER].duplicated().to_numpy()
    refuse_cells(
        file, is_repeated, OWNER, why="is there twice; give each owner one row, its days summed"
    )
    is_treated = (file[ARM] == arms.treated).to_numpy()
    is_neither = ~is_treated & (file[ARM] != arms.control).to_numpy()
    if is_neither.any():
        refuse_cells(file, is_neither, ARM, why=_neither(file, arms))
    totals = pd.DataFrame(
        {
            OWNER: owners,
            COHORT: np.where(is_treated, Cohort.ENFORCED.value, Cohort.CONTROL.value),
            **_counts(file, ""),
        }
    )
    loops = None
    if LOOPS in file.columns:
        loops = pd.DataFrame({OWNER: owners, LOOPS: counts_of(file, LOOPS)})
    durations, baseline = _durations(file, totals), _baseline(file, owners)
    missing = _missing_values(file, totals, durations)
    return OwnerFile(totals, loops, durations, baseline, missing, remarks)


class KnownColumns(NamedTuple):
    """The known columns of a file; `remarks` name the others."""

    file: pd.DataFrame
    remarks: tuple[str, ...]


def known_columns(file: pd.DataFrame) -> KnownColumns:
    """Return the known columns under their trimmed names; others are ignored with a remark.

    An index that pandas wrote is ignored without a remark. The columns of the days before the wave
    are ignored together if one of them is missing, since CUPED needs all of them.

    Raises:
        ValueError: for a column that is missing, there twice, or looks like a misspelling of a
            known one.
    """
    file = file.rename(columns=lambda name: str(name).strip())
    names = [name for name in file.columns if not _INDEX.match(name)]
    unknown = [name for name in names if name not in KNOWN]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} is there twice; keep one of them")
    for name in unknown:
        similar = difflib.get_close_matches(name.lower(), KNOWN, n=1, cutoff=SIMILARITY)
        if similar:
            raise ValueError(
                f"column {name!r} is not known and looks like {similar[0]!r}; rename it or drop it"
            )
    _refuse_missing(names)
    remarks = []
    if unknown:
        remarks.append(_passed_over(unknown, "not known", "known are " + ", ".join(KNOWN)))
    before = [name for name in names if name in ALL_BEFORE]
    missing = [name for name in NEEDED_BEFORE if name not in before]
    if before and missing:
        effect = f"without {', '.join(missing)} nothing is adjusted by the days before"
        remarks.append(_passed_over(before, "only a part of the days before", effect))
        names = [name for name in names if name not in before]
    return KnownColumns(file[[name for name in names if name in KNOWN]], tuple(remarks))


def _refuse_missing(names: Sequence[str]) -> None:
    needed = [*NEEDED]
    if HISTOGRAM in names and not {SCALE, BOUNDS} & set(names):
        needed.append(SCALE)
    if {SCALE, BOUNDS} & set(names):
        needed.append(HISTOGRAM)
    missing = [column for column in needed if column not in names]
    if missing:
        raise ValueError(_missing_columns(missing, names))
    if {SCALE, BOUNDS} <= set(names):
        raise ValueError(f"columns {SCALE!r} and {BOUNDS!r} exclude each other; give one of them")


def _missing_columns(missing: Sequence[str], names: Sequence[str]) -> str:
    """Name the missing columns, and those that the file may have under their name in evidence."""
    are = "column" if len(missing) == 1 else "columns"
    verb = "is" if len(missing) == 1 else "are"
    message = f"{are} {', '.join(map(repr, missing))} {verb} missing"
    renames = [
        f"{evidence_name!r} to {column!r}"
        for evidence_name, column in EVIDENCE_NAMES.items()
        if column in missing and evidence_name in names
    ]
    if renames:
        message += f"; rename {', '.join(renames)}, the names of a file with one row per owner"
    return f"{message}; the columns are {', '.join(map(repr, names))}"


def _passed_over(names: Sequence[str], why: str, detail: str) -> str:
    are = "column" if len(names) == 1 else "columns"
    return f"{are} {', '.join(map(repr, names))} passed over: {why}; {detail}"


def _neither(file: pd.DataFrame, arms: Arms) -> str:
    arms_of_file = sorted(set(file[ARM].astype(str)))
    listed = ", ".join(map(repr, arms_of_file[:MOST_LISTED]))
    listed += ", ..." if len(arms_of_file) > MOST_LISTED else ""
    return (
        f"is neither {arms.treated!r} nor {arms.control!r}; the arms of the file are {listed}, "
        "name the two to compare"
    )


def _counts(file: pd.DataFrame, prefix: str) -> Mapping[str, Counts]:
    """Return the counts by their names in owner totals; cancelled prompts may be left out."""
    counts: dict[str, Counts] = {}
    for name, column_name in COUNT_NAMES.items():
        column = f"{prefix}{column_name}"
        if column in file.columns:
            counts[name] = counts_of(file, column)
        else:
            counts[name] = np.zeros(len(file), dtype=np.int64)
    is_more = counts["completed"] + counts["cancelled"] > counts["started"]
    why = f"exceeds {prefix}prompts less {prefix}cancelled"
    refuse_cells(file, is_more, f"{prefix}completions", why=why)
    is_more = counts["disrupted"] > counts["started"]
    refuse_cells(file, is_more, f"{prefix}disconnects", why=f"exceeds {prefix}prompts")
    return counts


def _baseline(file: pd.DataFrame, owners: object) -> Baseline | None:
    if f"{BEFORE}prompts" not in file.columns:
        return None
    counts = _counts(file, BEFORE)
    return Baseline(pd.DataFrame({OWNER: owners, **counts, COMPARABLE: True}), WEEK)


def _missing_values(
    file: pd.DataFrame, totals: pd.DataFrame, durations: Durations | None
) -> MissingValues:
    ends = totals.assign(
        **{name: counts_of(file, name) for name in OF_ENDS if name in file.columns}
    )
    if ENDED in ends.columns:
        is_more = (ends[ENDED] > ends["started"]).to_numpy()
        refuse_cells(file, is_more, ENDED, why="exceeds prompts")
    return missing_values_of(ends, durations, (Cohort.ENFORCED, Cohort.CONTROL))


def _durations(file: pd.DataFrame, totals: pd.DataFrame) -> Durations | None:
    if HISTOGRAM not in file.columns:
        return None
    entries = _entries(file)
    counts = entries.groupby(level=0)[COUNT].sum().reindex(file.index, fill_value=0).to_numpy()
    why = "counts more durations than there are prompts"
    refuse_cells(file, counts > totals["started"].to_numpy(), HISTOGRAM, why=why)
    if BOUNDS in file.columns:
        return _explicit(file, entries)
    scales = _scales(file)
    _refuse_far(file, entries, scales)
    parts = [
        OwnerHistograms.of(entries[entries.index.isin(file.index[scales == scale])], int(scale))
        for scale in np.unique(scales[~np.isnan(scales)])
    ]
    return merge_histograms(parts) if len(entries) else None


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
    scales = numbers_of(file[SCALE])
    is_known = np.isin(scales, list(SCALES))
    why = f"is no scale; it must be a whole number from {SCALES.start} to {SCALES.stop - 1}"
    refuse_cells(file, has_any & ~is_known, SCALE, why=why)
    return np.where(has_any, scales, np.nan)


def _refuse_far(file: pd.DataFrame, entries: pd.DataFrame, scales: Floats) -> None:
    """Refuse a bucket that no duration can have, or one that is too far from the others."""
    if entries.empty:
        return
    scale = pd.Series(scales, index=file.index).reindex(entries.index).to_numpy()
    buckets = entries[BUCKET].to_numpy()
    # Both edges count: the lower edge of a coarse bucket may be far out as well.
    doublings = np.maximum(np.abs(buckets), np.abs(buckets + 1)) * np.exp2(-scale)
    why = "has a bucket whose edge is beyond 2^1000 ms or 2^-1000 ms; check bucket and scale"
    _refuse_entries(file, entries, doublings > MOST_DOUBLINGS, why)
    coarse = np.floor(buckets * np.exp2(scale.min() - scale))
    why = f"has a bucket more than {MOST_BUCKETS // 2:,} buckets away from the middle of the file"
    is_far = np.abs(coarse - np.median(coarse)) > MOST_BUCKETS // 2
    _refuse_entries(file, entries, is_far, f"{why}; check bucket and scale")


def _refuse_entries(file: pd.DataFrame, entries: pd.DataFrame, is_bad: Flags, why: str) -> None:
    refuse_cells(file, file.index.isin(entries.index[is_bad]), HISTOGRAM, why=why)


def _explicit(file: pd.DataFrame, entries: pd.DataFrame) -> ExplicitHistograms:
    """Return histograms whose bounds are in every row that has one, and equal in all of them."""
    has_any = file.index.isin(entries.index)
    texts = file[BOUNDS].fillna("").astype(str).str.split().str.join(" ")
    first = texts[has_any].iloc[0] if has_any.any() else ""
    is_other = has_any & (texts != first).to_numpy()
    refuse_cells(file, is_other, BOUNDS, why=f"are not the bounds of the first row, {first!r}")
    bounds = _bounds(first)
    why = "are no bounds; write numbers of ms from 0 that rise, such as 10 100 1000"
    refuse_cells(file, has_any & (len(bounds) == 0), BOUNDS, why=why)
    is_outside = ~entries[BUCKET].between(0, len(bounds)).to_numpy()
    why = f"is no bucket of {len(bounds)} bounds; they are counted from 0 to {len(bounds)}"
    refuse_cells(entries.rename(columns={BUCKET: HISTOGRAM}), is_outside, HISTOGRAM, why=why)
    places, owners = pd.factorize(entries[OWNER], sort=True)
    counts = np.zeros((len(owners), len(bounds) + 1), dtype=np.int64)
    np.add.at(counts, (places, entries[BUCKET].to_numpy()), entries[COUNT].to_numpy())
    return ExplicitHistograms(tuple(owners), bounds, counts)


def _bounds(text: str) -> tuple[float, ...]:
    """Return the bounds in a text, or none when they are not numbers from 0 that rise."""
    try:
        bounds = tuple(float(word) for word in text.split())
    except ValueError:
        return ()
    edges = np.array(bounds)
    is_rising = np.isfinite(edges).all() and (np.diff(edges) > 0.0).all()
    return bounds if is_rising and edges.min(initial=0.0) >= 0.0 else ()
