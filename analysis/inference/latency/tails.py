"""Tails: the long durations of owners, which may lie above a cut, laid out for fast counting."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames import Baseline, Buckets, Counts, Floats, OwnerHistograms
from guardwave.analysis.inference.covariate import (
    Adjustment,
    Covariates,
    Places,
    comparable_places,
    counts_at,
    covariates,
    usable_baseline,
)
from guardwave.reducer.vocabulary import Metric

# Entries of one step, so that little memory is needed beside the histograms.
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
        """Return the tail of the entries in buckets above the owners' floors."""
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
        counts = np.bincount(self.places[is_above], self.counts[is_above], self.owners)
        return counts.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SlowBaseline:
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
        """Return CUPED's regression on these covariates."""
        slow = self._slow(bucket)
        return self.fixed.with_regressors(slow - slow.sum() / self.trials.sum() * self.trials)

    def _slow(self, bucket: int) -> Floats:
        scale = self.histograms.scale
        coarser, finer = max(self.scale - scale, 0), max(scale - self.scale, 0)
        # The last fine bucket within the coarse one has the same edge in ms.
        cut = (bucket >> coarser) if coarser else ((bucket + 1) << finer) - 1
        tail = self._tail(cut)
        return counts_at(tail.above(np.full(tail.owners, cut)), self.places)

    def _tail(self, cut: int) -> Tail:
        for floor, tail in self.tails:
            if floor <= cut:
                return tail
        histograms = self.histograms
        floor = cut - max(1, round(np.log2(LOWER) * 2.0**histograms.scale))
        tail = Tail.of(histograms, np.full(len(histograms.owners), floor))
        self.tails[:] = [(floor, tail)]
        return tail


def slow_baseline(
    baseline: Baseline | None, owners: tuple[str, ...], scale: int, *, has_bounds: bool
) -> SlowBaseline | str:
    """Lay out the durations of a baseline by `owners`, or return in words why there are none."""
    usable = usable_baseline(baseline, Metric.LATENCY_P95)
    if isinstance(usable, str):
        return usable
    durations = usable.durations
    if durations is None:
        return "no durations of the days before the wave are known"
    if has_bounds:
        return "explicit buckets are not compared with those before the wave"
    is_comparable = comparable_places(usable, owners) >= 0
    places = pd.Index(durations.owners).get_indexer(pd.Index(owners))
    places = np.where(is_comparable, places, -1)
    trials = counts_at(durations.totals.astype(np.float64), places)
    by_owner = covariates(usable, trials, trials)
    if isinstance(by_owner, str):
        return by_owner
    return SlowBaseline(usable, durations, places, trials, scale, Adjustment.of_trials(trials))


def owner_slices(starts: Counts) -> Iterator[tuple[int, int]]:
    """Yield ranges of owners that have at most CHUNK_ENTRIES entries, or one owner."""
    owners, low = len(starts) - 1, 0
    while low < owners:
        fitting = np.searchsorted(starts, starts[low] + CHUNK_ENTRIES, side="right") - 1
        high = min(max(int(fitting), low + 1), owners)
        yield low, high
        low = high
