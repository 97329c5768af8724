"""Histograms: prompt durations by owner, in base-2 exponential buckets or between explicit bounds.

Bucket b of scale s holds the durations in (g^b, g^(b+1)] milliseconds with g = 2^(2^-s), as in the
OpenTelemetry data model. At the next coarser scale two neighbours become one: b becomes b >> 1.
Owner-days hold durations in several shapes of columns; `durations_of` reads them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames.column_checks import (
    OWNER,
    Counts,
    Floats,
    checked_owners,
    counts_of,
    numbers_of,
    refuse_cells,
    require_columns,
)
from guardwave.analysis.frames.owner_totals import block_names
from guardwave.reducer.rollout.state import EvidenceSource

BUCKET = "bucket"
COUNT = "count"
# Columns of owner-days: pairs in one column, or buckets and their counts in two.
SCALE, PAIRS = "scale", "durations"
BUCKETS, PROMPTS = "duration_buckets", "duration_counts"
_MILLISECONDS = 1000
# The OpenTelemetry data model ends at scale 20; below -10 one bucket holds every double.
SCALES = range(-10, 21)
# As powers of two of 1 ms: nothing beyond 2^1000 or below 2^-1000 is a duration.
LARGEST_EXPONENT = 1000.0
LARGEST_BUCKET = 2.0**30

Buckets: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class OwnerHistograms:
    """Exponential histograms of one scale: owner i has entries `starts[i]` to `starts[i + 1]`.

    `owners` are sorted. Within an owner `buckets` rise and `counts` are above 0.
    """

    owners: tuple[str, ...]
    scale: int
    starts: Counts
    buckets: Buckets
    counts: Counts

    @classmethod
    def of(cls, frame: pd.DataFrame, scale: int) -> "OwnerHistograms":
        """Sum rows of `owner`, `bucket` and `count` to one histogram per owner.

        Neither the order of the rows nor their split over days matters; an empty bucket is left
        out.

        Raises:
            ValueError: naming column, row and value, for a missing column, an unnamed owner, a
                bucket that is no whole number or whose upper edge is beyond 2^1000 ms or below
                2^-1000, or a count that is none >= 0; and for a scale outside -10 to 20.
        """
        _require_scale(scale)
        require_columns(frame, (OWNER, BUCKET, COUNT))
        owners = checked_owners(frame)
        buckets = _buckets_of(frame)
        is_beyond = np.abs((buckets + 1) * 2.0**-scale) > LARGEST_EXPONENT
        why = f"is no bucket of a duration: at scale {scale} its edge is no number of ms"
        refuse_cells(frame, is_beyond, BUCKET, why=why)
        counts = counts_of(frame, COUNT)
        codes, names = pd.factorize(owners, sort=True)
        return _grouped(tuple(names), scale, codes, buckets=buckets, counts=counts)

    @property
    def growth(self) -> float:
        """Ratio g of a bucket's upper edge to its lower one; infinite at scale -10."""
        return power_of_two(2.0**-self.scale)

    def upper_edge(self, bucket: int) -> float:
        """Return the largest duration that a bucket holds, in ms; infinite beyond all floats."""
        return power_of_two((bucket + 1) * 2.0**-self.scale)

    @property
    def totals(self) -> Counts:
        """Durations of each owner."""
        has_any = np.diff(self.starts) > 0
        sums = np.zeros(len(self.owners), dtype=np.int64)
        # For an empty range `reduceat` returns the next entry.
        if has_any.any():
            sums[has_any] = np.add.reduceat(self.counts, self.starts[:-1][has_any])
        return sums

    @property
    def places(self) -> Counts:
        """The place in `owners` of each entry."""
        return np.repeat(np.arange(len(self.owners)), np.diff(self.starts))

    def at_scale(self, scale: int) -> "OwnerHistograms":
        """Return the same durations in coarser buckets.

        Raises:
            ValueError: for a finer scale, which the buckets cannot give.
        """
        _require_scale(scale)
        if scale == self.scale:
            return self
        if scale > self.scale:
            raise ValueError(
                f"scale {scale} is finer than scale {self.scale} of the histograms; buckets can "
                "be merged and never split"
            )
        buckets = self.buckets >> (self.scale - scale)
        return _grouped(self.owners, scale, self.places, buckets=buckets, counts=self.counts)

    def by_block(self, blocks: Mapping[str, str]) -> "OwnerHistograms":
        """Sum the owners of each block, as `frames.by_block` does with their totals.

        Raises:
            ValueError: for an owner that `blocks` does not name.
        """
        codes, names = pd.factorize(block_names(self.owners, blocks), sort=True)
        places = codes[self.places]
        return _grouped(tuple(names), self.scale, places, buckets=self.buckets, counts=self.counts)


@dataclass(frozen=True, slots=True, eq=False)
class ExplicitHistograms:
    """Histograms with explicit bounds in ms: row i of `counts` is owner i of the sorted `owners`.

    Column j counts durations in (bounds[j - 1], bounds[j]]; the first is open below and the last
    above, so there is one column more than there are bounds.
    """

    owners: tuple[str, ...]
    bounds: tuple[float, ...]
    counts: Counts

    def __post_init__(self) -> None:
        edges = np.array(self.bounds)
        if len(edges) == 0 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(f"bounds {self.bounds} must be finite and rise; give at least one")
        if list(self.owners) != sorted(set(self.owners)):
            raise ValueError("owners of explicit histograms must be sorted, each once")
        shape = (len(self.owners), len(self.bounds) + 1)
        if self.counts.shape != shape:
            raise ValueError(
                f"counts have the shape {self.counts.shape}; {shape} is needed: a row per owner "
                "and a column more than bounds"
            )
        if self.counts.size and int(self.counts.min()) < 0:
            row, column = np.argwhere(self.counts < 0)[0]
            raise ValueError(
                f"counts, row {row}, column {column}: {self.counts[row, column]} is no count; it "
                "must be a whole number from 0"
            )

    @property
    def totals(self) -> Counts:
        """Durations of each owner."""
        return np.asarray(self.counts.sum(axis=1))


Durations: TypeAlias = OwnerHistograms | ExplicitHistograms


def merge_histograms(parts: Sequence[OwnerHistograms]) -> OwnerHistograms:
    """Sum histograms of any scales at the coarsest of them; owners may be in several parts.

    Raises:
        ValueError: without a part.
    """
    if not parts:
        raise ValueError("no histograms to merge; give at least one part")
    scale = min(part.scale for part in parts)
    coarse = [part.at_scale(scale) for part in parts]
    if len(coarse) == 1:
        return coarse[0]
    owners = np.concatenate(
        [np.array(part.owners, dtype=object)[part.places] for part in coarse]
        + [np.array(part.owners, dtype=object) for part in coarse]
    )
    codes, names = pd.factorize(owners, sort=True)
    entries = sum(len(part.buckets) for part in coarse)
    return _grouped(
        tuple(names),
        scale,
        codes[:entries],
        buckets=np.concatenate([part.buckets for part in coarse]),
        counts=np.concatenate([part.counts for part in coarse]),
    )


def power_of_two(exponent: float) -> float:
    """Return 2 to some power; infinite where a float ends."""
    return float(2.0**exponent) if exponent < np.finfo(np.float64).maxexp else math.inf


def durations_of(rows: pd.DataFrame, source: EvidenceSource) -> OwnerHistograms | None:
    """Return the durations of owner-days in ms at their coarsest scale; None without any.

    Counters report seconds. They become milliseconds by a shift of whole buckets, the same for all
    owners: a shown duration moves by half a bucket at most, and no ratio moves.

    Raises:
        ValueError: naming column, row and value.
    """
    column = next((name for name in (PAIRS, BUCKETS) if name in rows.columns), None)
    if column is None:
        return None
    _require_companions(rows, (SCALE,) if column == PAIRS else (SCALE, PROMPTS), column)
    by_row = _pairs_of_one_column(rows) if column == PAIRS else _pairs_of_two_columns(rows)
    lengths = [len(pairs) for pairs in by_row]
    entries = pd.DataFrame(
        [pair for pairs in by_row for pair in pairs],
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
    whole = merge_histograms(parts)
    if source is EvidenceSource.EVENTS:
        return whole
    shift = round(math.log2(_MILLISECONDS) * 2.0**whole.scale)
    return replace(whole, buckets=whole.buckets + np.int32(shift))


def _grouped(
    owners: tuple[str, ...],
    scale: int,
    places: npt.NDArray[np.int64],
    *,
    buckets: npt.NDArray[np.integer],
    counts: Counts,
) -> OwnerHistograms:
    """Sum equal (owner, bucket) pairs and lay them out owner by owner."""
    order = np.lexsort((buckets, places))
    places, buckets, counts = places[order], buckets[order], counts[order]
    is_first = np.ones(len(places), dtype=np.bool_)
    is_first[1:] = (np.diff(places) != 0) | (np.diff(buckets) != 0)
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(counts, firsts) if len(firsts) else counts
    has_any = sums > 0
    firsts, sums = firsts[has_any], sums[has_any]
    entries = np.bincount(places[firsts], minlength=len(owners))
    starts = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
    return OwnerHistograms(
        owners, scale, starts, buckets[firsts].astype(np.int32), sums.astype(np.int64)
    )


def _require_scale(scale: int) -> None:
    if scale not in SCALES:
        raise ValueError(f"scale {scale} is none of {SCALES.start} to {SCALES.stop - 1}")


def _buckets_of(frame: pd.DataFrame) -> Counts:
    values = numbers_of(frame[BUCKET])
    # A NaN fails every comparison, so it is refused without a rule of its own.
    is_whole = (np.floor(values) == values) & (np.abs(values) < LARGEST_BUCKET)
    refuse_cells(frame, ~is_whole, BUCKET, why="is no bucket; it must be a whole number")
    return values.astype(np.int64)


def _require_companions(rows: pd.DataFrame, columns: Sequence[str], beside: str) -> None:
    for column in columns:
        if column not in rows.columns:
            raise ValueError(
                f"owner evidence has {beside!r} and lacks the column {column!r} that goes with it; "
                "keep both, or leave both out"
            )


def _scales(rows: pd.DataFrame) -> Floats:
    scales = numbers_of(rows[SCALE])
    why = f"is no scale; it must be a whole number from {SCALES.start} to {SCALES.stop - 1}"
    refuse_cells(rows, ~np.isin(scales, list(SCALES)), SCALE, why=why)
    return scales


def _pairs_of_one_column(rows: pd.DataFrame) -> list[list[tuple[object, object]]]:
    by_row = [_pairs_in(cell) for cell in rows[PAIRS]]
    why = "is no list of [bucket, count], as [[75, 1], [80, 2]] is"
    refuse_cells(
        rows, np.array([pairs is None for pairs in by_row], dtype=np.bool_), PAIRS, why=why
    )
    return [pairs for pairs in by_row if pairs is not None]


def _pairs_in(cell: object) -> list[tuple[object, object]] | None:
    if isinstance(cell, str | bytes) or not isinstance(cell, Iterable):
        return None
    pairs = []
    for pair in cell:
        if isinstance(pair, str | bytes) or not isinstance(pair, Iterable):
            return None
        both = tuple(pair)
        if len(both) != 2:
            return None
        pairs.append(both)
    return pairs


def _pairs_of_two_columns(rows: pd.DataFrame) -> list[list[tuple[object, object]]]:
    for column in (BUCKETS, PROMPTS):
        is_bad = [
            isinstance(cell, str | bytes) or not isinstance(cell, Iterable) for cell in rows[column]
        ]
        why = "is no list of whole numbers, as [75, 80] is"
        refuse_cells(rows, np.array(is_bad, dtype=np.bool_), column, why=why)
    pairs = list(zip(rows[BUCKETS], rows[PROMPTS], strict=True))
    is_uneven = np.array([len(buckets) != len(counts) for buckets, counts in pairs], dtype=np.bool_)
    refuse_cells(rows, is_uneven, PROMPTS, why=f"has not as many entries as {BUCKETS}")
    return [list(zip(buckets, counts, strict=True)) for buckets, counts in pairs]
