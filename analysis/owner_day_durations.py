"""The durations of owner-days: as the evidence API writes them, and as a Parquet export does.

Both have the `scale` of each row's base-2 exponential buckets; the API `durations`, a list of
[bucket, count], and Parquet `duration_buckets` beside `duration_counts`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.cells import OWNER, numbers_of, refuse_cells
from analysis.histograms import BUCKET, COUNT, SCALES, OwnerHistograms, merged
from reducer.rollout.state import EvidenceSource

SCALE, PAIRS = "scale", "durations"
BUCKETS, PROMPTS = "duration_buckets", "duration_counts"
_MILLISECONDS = 1000


def durations_of(rows: pd.DataFrame, source: EvidenceSource) -> OwnerHistograms | None:
    """Return the durations of owner-days in ms at their coarsest scale; None without any.

    Counters tell seconds. They become milliseconds by whole buckets, the same for all, which moves
    what is shown by half a bucket at most, and no ratio.

    Raises:
        ValueError: naming column, row and value.
    """
    column = next((each for each in (PAIRS, BUCKETS) if each in rows.columns), None)
    if column is None:
        return None
    _require(rows, (SCALE,) if column == PAIRS else (SCALE, PROMPTS), column)
    told = _pairs(rows) if column == PAIRS else _beside(rows)
    lengths = [len(pairs) for pairs in told]
    entries = pd.DataFrame(
        [pair for pairs in told for pair in pairs],
        columns=[BUCKET, COUNT],
        index=rows.index.repeat(lengths),
    )
    entries[OWNER] = np.repeat(rows[OWNER].to_numpy(dtype=object), lengths)
    scales = np.repeat(_scales(rows), lengths)
    parts = [
        OwnerHistograms.of(entries[scales == scale], int(scale)) for scale in np.unique(scales)
    ]
    if not parts:
        return None
    whole = merged(parts)
    if source is EvidenceSource.EVENTS:
        return whole
    shift = round(math.log2(_MILLISECONDS) * 2.0**whole.scale)
    return replace(whole, buckets=whole.buckets + np.int32(shift))


def _require(rows: pd.DataFrame, columns: Sequence[str], beside: str) -> None:
    for column in columns:
        if column not in rows.columns:
            raise ValueError(
                f"owner evidence has {beside!r} and lacks the column {column!r} that goes with it; "
                "keep both, or leave both out"
            )


def _scales(rows: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    scales = numbers_of(rows[SCALE])
    why = f"is no scale; it must be a whole number from {SCALES.start} to {SCALES.stop - 1}"
    refuse_cells(rows, ~np.isin(scales, list(SCALES)), SCALE, why=why)
    return scales


def _pairs(rows: pd.DataFrame) -> list[list[tuple[object, object]]]:
    told = [_pairs_in(cell) for cell in rows[PAIRS]]
    why = "is no list of [bucket, count], as [[75, 1], [80, 2]] is"
    refuse_cells(rows, np.array([each is None for each in told], dtype=np.bool_), PAIRS, why=why)
    return [each for each in told if each is not None]


def _pairs_in(cell: object) -> list[tuple[object, object]] | None:
    if isinstance(cell, str | bytes) or not isinstance(cell, Iterable):
        return None
    found = []
    for pair in cell:
        if isinstance(pair, str | bytes) or not isinstance(pair, Iterable):
            return None
        both = tuple(pair)
        if len(both) != 2:
            return None
        found.append(both)
    return found


def _beside(rows: pd.DataFrame) -> list[list[tuple[object, object]]]:
    for column in (BUCKETS, PROMPTS):
        is_none = [isinstance(c, str | bytes) or not isinstance(c, Iterable) for c in rows[column]]
        why = "is no list of whole numbers, as [75, 80] is"
        refuse_cells(rows, np.array(is_none, dtype=np.bool_), column, why=why)
    pairs = list(zip(rows[BUCKETS], rows[PROMPTS], strict=True))
    is_uneven = np.array([len(buckets) != len(counts) for buckets, counts in pairs], dtype=np.bool_)
    refuse_cells(rows, is_uneven, PROMPTS, why=f"has not as many entries as {BUCKETS}")
    return [list(zip(buckets, counts, strict=True)) for buckets, counts in pairs]
