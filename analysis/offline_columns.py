"""The columns of a file of owners: each checked by its own name, then turned into evidence.

One row per owner: `owner, arm, prompts, completions, disconnects, tokens, turns`, where there are
any `cancelled`, the same counts before the wave as `pre_*`, `loops` (loop events of other
protections), what prompts left out (`ended`, `tokens_untold`, `turns_untold`), and durations.
`latency_hist` holds them as "bucket:count ...", in base-2 exponential buckets of milliseconds
beside `latency_scale`, or beside `latency_bounds`, "10 100 1000": upper bounds in ms of buckets
that are counted from 0.
"""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.baseline import COMPARABLE, LEAST_DAYS, Baseline
from analysis.cells import (
    OWNER,
    Counts,
    Flags,
    Floats,
    checked_owners,
    counts_of,
    numbers_of,
    refuse_cells,
)
from analysis.frames import COHORT
from analysis.histograms import (
    BUCKET,
    COUNT,
    SCALES,
    Durations,
    ExplicitHistograms,
    OwnerHistograms,
    merged,
)
from analysis.loops import LOOPS
from analysis.offline_header import (
    ARM,
    BEFORE,
    BOUNDS,
    COUNT_NAMES,
    HISTOGRAM,
    OF_ENDS,
    SCALE,
    known_columns,
)
from analysis.untold import ENDED, Untold, untold_of
from reducer.vocabulary import Cohort

# A file names no days: its pre_* columns are taken for the week that CUPED asks for.
WEEK = tuple(dt.date(2000, 1, 3) + dt.timedelta(days=day) for day in range(LEAST_DAYS))

# As many arms as a message lists.
MOST_NAMED = 5
# A float holds 2^1000 ms and 2^-1000 ms; no prompt takes either.
MOST_DOUBLINGS = 1000.0
# Between the fastest and the slowest bucket of a file, at its coarsest scale.
MOST_BUCKETS = 2**20


class Arms(NamedTuple):
    """What a file calls the two cohorts."""

    treated: str
    control: str


class OwnerFile(NamedTuple):
    """A file as evidence. `totals` has a row per owner, with `cohort` enforced or control.

    `loops` has the `owner` and `loops` of each row, None where the file does not tell them.
    `untold` counts the prompts that told nothing of a metric, of `ended` ones, or of all that
    started where the file does not count those. `remarks` say which of its columns were passed
    over, and why.
    """

    totals: pd.DataFrame
    loops: pd.DataFrame | None
    durations: Durations | None
    baseline: Baseline | None
    untold: Untold
    remarks: tuple[str, ...]


def read_columns(file: pd.DataFrame, arms: Arms) -> OwnerFile:
    """Return a file's rows, all texts or already numbers, as evidence.

    Raises:
        ValueError: naming column, row (the frame's index) and value, for a column that is missing
            or looks like a slip of a known one, an owner that is unnamed or there twice, an arm
            that is neither of both, or a cell that is no count or contradicts another one.
    """
    if arms.treated == arms.control:
        raise ValueError(f"both arms are {arms.treated!r}; name two")
    file, remarks = known_columns(file)
    owners = checked_owners(file)
    is_twice = file[OWNER].duplicated().to_numpy()
    refuse_cells(
        file, is_twice, OWNER, why="is there twice; give each owner one row, its days summed"
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
    return OwnerFile(totals, loops, durations, baseline, _untold(file, totals, durations), remarks)


def _neither(file: pd.DataFrame, arms: Arms) -> str:
    found = sorted(set(file[ARM].astype(str)))
    named = ", ".join(map(repr, found[:MOST_NAMED])) + (", ..." if len(found) > MOST_NAMED else "")
    return (
        f"is neither {arms.treated!r} nor {arms.control!r}; the arms of the file are {named}, name "
        "the two to compare"
    )


def _counts(file: pd.DataFrame, prefix: str) -> Mapping[str, Counts]:
    """Return the counts by their names in owner totals; cancelled prompts may be left out."""
    found: dict[str, Counts] = {}
    for name, written in COUNT_NAMES.items():
        column = f"{prefix}{written}"
        if column in file.columns:
            found[name] = counts_of(file, column)
        else:
            found[name] = np.zeros(len(file), dtype=np.int64)
    is_more = found["completed"] + found["cancelled"] > found["started"]
    why = f"exceeds {prefix}prompts less {prefix}cancelled"
    refuse_cells(file, is_more, f"{prefix}completions", why=why)
    is_more = found["disrupted"] > found["started"]
    refuse_cells(file, is_more, f"{prefix}disconnects", why=f"exceeds {prefix}prompts")
    return found


def _baseline(file: pd.DataFrame, owners: object) -> Baseline | None:
    if f"{BEFORE}prompts" not in file.columns:
        return None
    counts = _counts(file, BEFORE)
    return Baseline(pd.DataFrame({OWNER: owners, **counts, COMPARABLE: True}), WEEK)


def _untold(file: pd.DataFrame, totals: pd.DataFrame, durations: Durations | None) -> Untold:
    ends = totals.assign(
        **{name: counts_of(file, name) for name in OF_ENDS if name in file.columns}
    )
    if ENDED in ends.columns:
        is_more = (ends[ENDED] > ends["started"]).to_numpy()
        refuse_cells(file, is_more, ENDED, why="exceeds prompts")
    return untold_of(ends, durations, (Cohort.ENFORCED, Cohort.CONTROL))


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
    _refuse_far(file, entries, scales)
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
    # Both edges: of a coarse bucket the lower one may be far out as well.
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
    """Return histograms whose bounds stand in every row that has one, always the same."""
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
    """Return the bounds that a text names, or none when they are not numbers from 0 that rise."""
    try:
        bounds = tuple(float(word) for word in text.split())
    except ValueError:
        return ()
    edges = np.array(bounds)
    is_rising = np.isfinite(edges).all() and (np.diff(edges) > 0.0).all()
    return bounds if is_rising and edges.min(initial=0.0) >= 0.0 else ()
