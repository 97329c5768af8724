"""Owner-day tables: owner-days as columns, small as JSON and checked when read back."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import compress
from math import log2
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.control_plane.stores.evidence.delta.points import SCALE
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode

Value = TypeVar("Value", str, date, Cohort, Mode)
Places = npt.NDArray[np.int64]

# The one count that rows may lack; a table has it only if every row does.
LOOPS = "loops"
# The limit of one count: a float of the analysis holds every whole number up to it.
LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class OwnerDayTable:
    """Owner-days, one entry of each column per owner-day.

    `owners`, `days`, `cohorts`, `versions` and `modes` hold distinct values; the columns that end
    in `_at` hold places in them. `durations_in` is the number of entries of `duration_buckets`
    (base-2 exponential at `scale`, ms) and `duration_counts` of each owner-day, in order. `counts`
    has loop events only if every owner-day reports them.
    """

    owners: tuple[str, ...]
    days: tuple[date, ...]
    cohorts: tuple[Cohort, ...]
    versions: tuple[str, ...]
    modes: tuple[Mode, ...]
    owner_at: tuple[int, ...]
    day_at: tuple[int, ...]
    cohort_at: tuple[int, ...]
    version_at: tuple[int, ...]
    mode_at: tuple[int, ...]
    counts: Mapping[str, tuple[int, ...]]
    durations_in: tuple[int, ...]
    duration_buckets: tuple[int, ...]
    duration_counts: tuple[int, ...]
    scale: int = SCALE

    def __post_init__(self) -> None:
        """Reject columns that do not fit each other, as in an edited file."""
        if set(self.counts) - {LOOPS} != set(SUMS):
            raise ValueError(f"owner-days have the counts {', '.join(self.counts)}, not {SUMS}")
        rows = len(self.owner_at)
        per_row = {
            **{name: getattr(self, name) for name in _PLACES.values()},
            **self.counts,
            "durations_in": self.durations_in,
        }
        for name, column in per_row.items():
            _check(name, column, length=rows, limit=LARGEST)
        for values, places in _PLACES.items():
            _check(places, getattr(self, places), length=rows, limit=len(getattr(self, values)))
        total = sum(self.durations_in)
        _check("duration_counts", self.duration_counts, length=total, limit=LARGEST)
        if len(self.duration_buckets) != total:
            raise ValueError(
                f"duration_buckets has {len(self.duration_buckets)} entries, durations_in counts "
                f"{total}"
            )

    @classmethod
    def of(cls, rows: Sequence[OwnerDay], scale: int | None = None) -> "OwnerDayTable":
        """Return the rows as columns, in their order, durations at this scale or the coarsest."""
        scale = coarsest_scale(rows) if scale is None else scale
        durations = [_in_milliseconds(row, scale) for row in rows]
        owners, owner_at = _interned([row.owner for row in rows])
        days, day_at = _interned([row.day for row in rows])
        cohorts, cohort_at = _interned([row.cohort for row in rows])
        versions, version_at = _interned([row.version for row in rows])
        modes, mode_at = _interned([row.mode for row in rows])
        return cls(
            owners=owners,
            days=days,
            cohorts=cohorts,
            versions=versions,
            modes=modes,
            owner_at=owner_at,
            day_at=day_at,
            cohort_at=cohort_at,
            version_at=version_at,
            mode_at=mode_at,
            counts={
                name: tuple(getattr(row, name) for row in rows) for name in _common_counts(rows)
            },
            durations_in=tuple(map(len, durations)),
            duration_buckets=tuple(bucket for histogram in durations for bucket, _ in histogram),
            duration_counts=tuple(count for histogram in durations for _, count in histogram),
            scale=scale,
        )

    def frame(self) -> pd.DataFrame:
        """Return a line per owner-day: `owner`, `cohort`, `day`, `version`, `mode`, the counts."""
        return pd.DataFrame(
            {
                "owner": _picked(self.owners, self.owner_at),
                "cohort": _picked([cohort.value for cohort in self.cohorts], self.cohort_at),
                "day": _picked(self.days, self.day_at),
                "version": _picked(self.versions, self.version_at),
                "mode": _picked([mode.value for mode in self.modes], self.mode_at),
                **{name: np.array(column, dtype=np.int64) for name, column in self.counts.items()},
            }
        )

    def on_days(self, days: Collection[date]) -> "OwnerDayTable":
        """Return only the owner-days of these days."""
        kept = [self.days[place] in days for place in self.day_at]
        kept_entries = np.repeat(
            np.array(kept, dtype=bool), np.array(self.durations_in, dtype=np.int64)
        )
        return replace(
            self,
            owner_at=tuple(compress(self.owner_at, kept)),
            day_at=tuple(compress(self.day_at, kept)),
            cohort_at=tuple(compress(self.cohort_at, kept)),
            version_at=tuple(compress(self.version_at, kept)),
            mode_at=tuple(compress(self.mode_at, kept)),
            durations_in=tuple(compress(self.durations_in, kept)),
            counts={name: tuple(compress(column, kept)) for name, column in self.counts.items()},
            duration_buckets=tuple(compress(self.duration_buckets, kept_entries)),
            duration_counts=tuple(compress(self.duration_counts, kept_entries)),
        )

    def durations(self) -> pd.DataFrame:
        """Return one line per owner-day and bucket: `owner`, `bucket`, `count`."""
        place = np.repeat(
            np.array(self.owner_at, dtype=np.int64), np.array(self.durations_in, dtype=np.int64)
        )
        return pd.DataFrame(
            {
                "owner": _picked(self.owners, place),
                "bucket": np.array(self.duration_buckets, dtype=np.int64),
                "count": np.array(self.duration_counts, dtype=np.int64),
            }
        )


def _common_counts(rows: Sequence[OwnerDay]) -> tuple[str, ...]:
    """Return the names of the counts that all rows have."""
    return (*SUMS, LOOPS) if rows and all(row.loops is not None for row in rows) else SUMS


def coarsest_scale(rows: Iterable[OwnerDay]) -> int:
    """Return the scale that the durations of all rows can be brought to."""
    return min((row.scale for row in rows), default=SCALE)


def _in_milliseconds(row: OwnerDay, scale: int) -> tuple[tuple[int, int], ...]:
    """Return the row's durations by bucket, at its scale or a coarser one.

    Seconds become milliseconds by a shift of whole buckets, the same for all rows of a scale: it
    moves a shown value by at most half a bucket, and no ratio.
    """
    shift = round(log2(1000) * 2.0**scale) if row.source is EvidenceSource.COUNTERS else 0
    if scale == row.scale:
        return tuple((bucket + shift, count) for bucket, count in row.durations)
    merged: dict[int, int] = {}
    for bucket, count in row.durations:
        wider = (bucket >> (row.scale - scale)) + shift
        merged[wider] = merged.get(wider, 0) + count
    return tuple(merged.items())


_PLACES: Mapping[str, str] = {
    "owners": "owner_at",
    "days": "day_at",
    "cohorts": "cohort_at",
    "versions": "version_at",
    "modes": "mode_at",
}


def _check(name: str, column: Sequence[int], *, length: int, limit: int) -> None:
    if len(column) != length:
        raise ValueError(f"{name} has {len(column)} entries where {length} are due")
    values = np.array(column, dtype=np.int64)
    is_bad = (values < 0) | (values >= limit)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"{name}, row {row}: {column[row]} is not from 0 to below {limit}")


def _interned(values: Sequence[Value]) -> tuple[tuple[Value, ...], tuple[int, ...]]:
    """Return the distinct values, sorted, and the place of every one of `values` in them."""
    distinct = sorted(set(values))
    places = {value: place for place, value in enumerate(distinct)}
    return tuple(distinct), tuple(places[value] for value in values)


def _picked(values: Sequence[object], places: Sequence[int] | Places) -> npt.NDArray[np.object_]:
    known: npt.NDArray[np.object_] = np.empty(len(values), dtype=object)
    known[:] = values
    return known[np.array(places, dtype=np.int64)]
