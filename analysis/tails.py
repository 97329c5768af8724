"""The long durations of owners: all that a cut may leave above it, laid out to be counted fast."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.baseline import Baseline
from analysis.cuped import (
    Adjustment,
    Covariates,
    Places,
    at,
    comparable_places,
    covariates,
    usable,
)
from analysis.frames import Floats
from analysis.histograms import Buckets, Counts, OwnerHistograms
from reducer.vocabulary import Metric

# Entries looked at in one go, so that little memory is needed beside the histograms.
CHUNK_ENTRIES = 4_000_000
# A tail that turned out too short is made again from buckets this factor of duration lower.
LOWER = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The entries of histograms above each owner's floor; no cut may be below it."""

    owners: int
    places: npt.NDArray[np.int32]
    buckets: Buckets
    counts: Floats

    @classmethod
    def of(cls, histograms: OwnerHistograms, floors: npt.NDArray[np.integer]) -> "Tail":
        """Take the entries in buckets above the owners' floors."""
        starts, parts = histograms.starts, []
        for low, high in owner_slices(starts):
            entries = slice(starts[low], starts[high])
            places = np.repeat(
                np.arange(low, high, dtype=np.int32), np.diff(starts[low : high + 1])
            )
            is_above = histograms.buckets[entries] > floors[places]
            counts = histograms.counts[entries][is_above].astype(np.float64)
            parts.append((places[is_above], histograms.buckets[entries][is_above], counts))
        owners = len(histograms.owners)
        if not parts:
            return cls(owners, np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
        places, buckets, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(owners, places, buckets, counts)

    def above(self, cuts: npt.NDArray[np.integer]) -> Floats:
        """Return how many durations of each owner lie in buckets above the owner's own cut."""
        is_above = self.buckets > cuts[self.places]
        found = np.bincount(self.places[is_above], self.counts[is_above], self.owners)
        return found.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SlowBefore:
    """The durations of the days before the wave, by the owners of the test.

    `places` are the owners' rows in the baseline's histograms, -1 for one that counts as new.
    """

    baseline: Baseline
    histograms: OwnerHistograms
    places: Places
    trials: Floats
    scale: int
    fixed: Adjustment
    tails: list[tuple[int, Tail]] = field(default_factory=list)

    def covariates(self, bucket: int) -> Covariates:
        """Return slow and all durations by owner, cut at the edge of a bucket of the wave."""
        return Covariates(self._slow(bucket), self.trials, len(self.baseline.days))

    def adjustment(self, bucket: int) -> Adjustment:
        """Return the regression on them."""
        slow = self._slow(bucket)
        return self.fixed.and_also(slow - slow.sum() / self.trials.sum() * self.trials)

    def _slow(self, bucket: int) -> Floats:
        own = self.histograms
        coarser, finer = max(self.scale - own.scale, 0), max(own.scale - self.scale, 0)
        # The last fine bucket within the coarse one has the same edge in ms.
        cut = (bucket >> coarser) if coarser else ((bucket + 1) << finer) - 1
        tail = self._tail(cut)
        return at(tail.above(np.full(tail.owners, cut)), self.places)

    def _tail(self, cut: int) -> Tail:
        for floor, tail in self.tails:
            if floor <= cut:
                return tail
        own = self.histograms
        floor = cut - max(1, round(np.log2(LOWER) * 2.0**own.scale))
        tail = Tail.of(own, np.full(len(own.owners), floor))
        self.tails[:] = [(floor, tail)]
        return tail


def slow_before(
    baseline: Baseline | None, owners: tuple[str, ...], scale: int, *, has_bounds: bool
) -> SlowBefore | str:
    """Lay out the durations of a baseline by `owners`, or say in words why there are none."""
    found = usable(baseline, Metric.LATENCY_P95)
    if isinstance(found, str):
        return found
    durations = found.durations
    if durations is None:
        return "no durations of the days before the wave are known"
    if has_bounds:
        return "explicit buckets are not compared with those before the wave"
    is_comparable = comparable_places(found, owners) >= 0
    places = pd.Index(durations.owners).get_indexer(pd.Index(owners))
    places = np.where(is_comparable, places, -1)
    trials = at(durations.totals.astype(np.float64), places)
    known = covariates(found, trials, trials)
    if isinstance(known, str):
        return known
    return SlowBefore(found, durations, places, trials, scale, Adjustment.of_trials(trials))


def owner_slices(starts: Counts) -> Iterator[tuple[int, int]]:
    """Yield ranges of owners that have at most CHUNK_ENTRIES entries, or one owner."""
    owners, low = len(starts) - 1, 0
    while low < owners:
        fitting = np.searchsorted(starts, starts[low] + CHUNK_ENTRIES, side="right") - 1
        high = min(max(int(fitting), low + 1), owners)
        yield low, high
        low = high
