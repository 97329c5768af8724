"""Shift: latency p95 in the decision test, by a shift of the reference and a pooled cut.

A margin of g^K multiplies the reference's durations by g^K, which moves each of their buckets up
by K. If the true ratio is g^K, both cohorts then have the same durations. They are pooled, and cut
at the upper edge of the bucket that holds the pooled 95th percentile; the harm of an owner is its
prompts above the cut. Counts are exact at the edges of buckets, so coarse buckets never bias the
test: they only allow fewer margins. On quantiles under clustering see Deng, Knoblich and Lu (2018).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from guardwave.analysis.frames import (
    Baseline,
    Buckets,
    Counts,
    Durations,
    ExplicitHistograms,
    Flags,
    Floats,
    Outcomes,
    OwnerHistograms,
    power_of_two,
)
from guardwave.analysis.inference.covariate import Adjustment, Covariates
from guardwave.analysis.inference.injection import rate_statistics
from guardwave.analysis.inference.latency.tails import (
    SlowBaseline,
    Tail,
    owner_slices,
    slow_baseline,
)
from guardwave.analysis.inference.random_sets import Sets

# The share of durations at or below the percentile, as a fraction of whole numbers.
PERCENTILE = (19, 20)
# More buckets between the fastest and the slowest duration are merged: these resolve any margin.
MOST_BUCKETS = 2**20


class Cut(NamedTuple):
    """A pooled cut: above bucket `treated` of the treated, and above `reference` of the others."""

    treated: int
    reference: int
    ratio: float
    """Upper edge of the former by that of the latter: the margin that the cut tests."""


@dataclass(frozen=True, slots=True, eq=False)
class LatencyTest:
    """Durations of the owners of both cohorts that have any; margins are numbers of buckets.

    `first` is the lowest bucket of all; `by_bucket` counts treated and reference from there on.
    `bounds` are the edges of explicit buckets, and empty for exponential ones.
    """

    outcomes: Outcomes
    histograms: OwnerHistograms
    bounds: tuple[float, ...]
    first: int
    by_bucket: tuple[Counts, Counts]
    tail: Tail
    before: SlowBaseline | str

    @property
    def is_treated(self) -> Flags:
        """The cohort of each owner."""
        return self.outcomes.is_treated

    @property
    def limits(self) -> tuple[float, float]:
        """Shifts by the number of all buckets: a larger one changes nothing."""
        buckets = len(self.by_bucket[0])
        return -float(buckets), float(buckets)

    @property
    def worst(self) -> float | None:
        """None: a duration has no limit."""
        return None

    def statistics(self, margin: float, sets: Sets) -> Floats:
        """Return the statistics with the reference shifted by `margin` buckets."""
        cut = self.cut(round(margin))
        harm = self.slow(cut)
        return rate_statistics(harm, self.outcomes.trials, sets, self.adjustment(cut))

    def cut(self, steps: int) -> Cut:
        """Return the pooled cut with the reference shifted by some buckets."""
        treated, reference = self.by_bucket
        size = len(treated)
        pooled = np.zeros(size + abs(steps), dtype=np.int64)
        # A positive shift moves the reference up, a negative one the treated instead.
        pooled[max(-steps, 0) :][:size] += treated
        pooled[max(steps, 0) :][:size] += reference
        place = _percentile(pooled) + self.first - max(-steps, 0)
        return Cut(place, place - steps, self._ratio(place, place - steps))

    def percentile_edges(self) -> tuple[float, float]:
        """Return the upper edges, in ms, of the buckets with either cohort's 95th percentile."""
        treated, reference = (
            self.edge(_percentile(counts) + self.first) for counts in self.by_bucket
        )
        return treated, reference

    def slow(self, cut: Cut) -> Floats:
        """Return each owner's durations above the cut of its cohort."""
        cuts = np.where(self.outcomes.is_treated, cut.treated, cut.reference)
        return self.tail.above(cuts)

    def outcomes_at(self, cut: Cut) -> Outcomes:
        """Return the slow durations and all durations of each owner."""
        return self.outcomes._replace(harm=self.slow(cut))

    def covariates(self, cut: Cut) -> Covariates | str:
        """Return the slow durations of the days before the wave, or in words why there are none.

        Both cohorts have the same cut here: the baseline must not depend on the cohort that an
        owner is drawn into.
        """
        return self.before if isinstance(self.before, str) else self.before.covariates(cut.treated)

    def adjustment(self, cut: Cut) -> Adjustment | None:
        """Return CUPED's regression at a cut, or None without covariates."""
        return None if isinstance(self.before, str) else self.before.adjustment(cut.treated)

    def edge(self, bucket: int) -> float:
        """Return the upper edge of a bucket in ms; infinite for the last explicit one."""
        if not self.bounds:
            return self.histograms.upper_edge(bucket)
        return self.bounds[bucket] if 0 <= bucket < len(self.bounds) else math.inf

    def growth_at(self, bucket: int) -> float | None:
        """Return a bucket's upper edge by its lower one; None where the lower one is 0 or less."""
        if not self.bounds:
            growth = self.histograms.growth
            return growth if math.isfinite(growth) else None
        if not 1 <= bucket < len(self.bounds) or self.bounds[bucket - 1] <= 0.0:
            return None
        return self.bounds[bucket] / self.bounds[bucket - 1]

    def _ratio(self, treated: int, reference: int) -> float:
        if not self.bounds:
            return power_of_two((treated - reference) * 2.0**-self.histograms.scale)
        if not (0 <= treated < len(self.bounds) and 0 <= reference < len(self.bounds)):
            return math.nan
        below = self.bounds[reference]
        return self.bounds[treated] / below if below > 0.0 else math.nan

    def steps_within(self, margin: float) -> int | None:
        """Return the most buckets whose ratio is at most `margin`, or None without one.

        A margin of 1 or less is none: buckets too wide for the margin test nothing.
        """
        if not self.bounds:
            # Rounding may put a margin that is itself a power of g a hair below it.
            steps = math.floor(math.log2(margin) * 2.0**self.histograms.scale + 1e-9)
            return steps if steps >= 1 else None
        fitting = [
            steps
            for steps in range(1, len(self.bounds))
            if 1.0 < self.cut(steps).ratio <= margin * (1.0 + 1e-12)
        ]
        return max(fitting, default=None, key=lambda steps: self.cut(steps).ratio)


def latency_test(
    outcomes: Outcomes, durations: Durations, baseline: Baseline | None
) -> LatencyTest:
    """Lay out the durations of the owners that have any; `outcomes` name owners and cohorts.

    A cohort may be left without an owner. Then the test must not be run.
    """
    bounds: tuple[float, ...] = ()
    if isinstance(durations, ExplicitHistograms):
        bounds, durations = durations.bounds, _indexed(durations)
    places = pd.Index(durations.owners).get_indexer(pd.Index(outcomes.owners))
    totals = durations.totals
    has_any = (places >= 0) & (totals[places] > 0 if len(totals) else False)
    kept = places[has_any]
    histograms = _select(durations, kept)
    if not bounds:
        histograms = _narrow(histograms)
    owners = Outcomes(
        histograms.owners,
        outcomes.is_treated[has_any],
        np.zeros(len(kept)),
        totals[kept].astype(np.float64),
    )
    first = int(histograms.buckets.min()) if len(histograms.buckets) else 0
    last = int(histograms.buckets.max()) if len(histograms.buckets) else 0
    by_bucket = _by_bucket(histograms, owners.is_treated, first, last - first + 1)
    # At any cut at most this share of all durations lies above it.
    allowed = sum(int(counts.sum()) for counts in by_bucket) * (PERCENTILE[1] - PERCENTILE[0])
    floors = [first + _floor(counts, allowed // PERCENTILE[1]) for counts in by_bucket]
    tail = Tail.of(histograms, np.where(owners.is_treated, floors[0], floors[1]))
    before = slow_baseline(baseline, owners.owners, histograms.scale, has_bounds=bool(bounds))
    return LatencyTest(owners, histograms, bounds, first, by_bucket, tail, before)


def _by_bucket(
    histograms: OwnerHistograms, is_treated: Flags, first: int, buckets: int
) -> tuple[Counts, Counts]:
    """Sum the histograms of each cohort."""
    sums = np.zeros((2, buckets), dtype=np.int64)
    starts = histograms.starts
    for low, high in owner_slices(starts):
        entries = slice(starts[low], starts[high])
        sides = np.repeat(is_treated[low:high], np.diff(starts[low : high + 1]))
        places, counts = histograms.buckets[entries] - first, histograms.counts[entries]
        for side, is_side in enumerate((sides, ~sides)):
            # Counts below 2^53 are whole as floats too.
            added = np.bincount(places[is_side], counts[is_side].astype(np.float64), buckets)
            sums[side] += added.astype(np.int64)
    return sums[0], sums[1]


def _floor(by_bucket: Counts, allowed: int) -> int:
    """Return the lowest bucket, counted from the first, with at most `allowed` durations above it.

    It is -1 where all may lie above. No cut can be lower.
    """
    reached = np.concatenate([[0], np.cumsum(by_bucket)])
    return int(np.argmax(reached[-1] - reached <= allowed)) - 1


def _percentile(by_bucket: Counts) -> int:
    part, whole = PERCENTILE
    reached = np.cumsum(by_bucket)
    return int(np.argmax(whole * reached >= part * reached[-1]))


def _narrow(histograms: OwnerHistograms) -> OwnerHistograms:
    """Return the durations in buckets so coarse that there are few enough to count each."""
    while len(histograms.buckets):
        buckets = histograms.buckets
        if int(buckets.max()) - int(buckets.min()) < MOST_BUCKETS:
            break
        histograms = histograms.at_scale(histograms.scale - 1)
    return histograms


def _select(histograms: OwnerHistograms, kept: npt.NDArray[np.integer]) -> OwnerHistograms:
    """Return the histograms of some owners, given by rising places."""
    if len(kept) == len(histograms.owners):
        return histograms
    is_kept = np.zeros(len(histograms.owners), dtype=np.bool_)
    is_kept[kept] = True
    sizes = np.diff(histograms.starts)
    entries = np.repeat(is_kept, sizes)
    return OwnerHistograms(
        tuple(np.array(histograms.owners, dtype=object)[kept]),
        histograms.scale,
        np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
        histograms.buckets[entries],
        histograms.counts[entries],
    )


def _indexed(durations: ExplicitHistograms) -> OwnerHistograms:
    """Lay explicit buckets out like exponential ones, with the column as the bucket."""
    rows, columns = np.nonzero(durations.counts)
    entries = np.bincount(rows, minlength=len(durations.owners))
    starts = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
    buckets: Buckets = columns.astype(np.int32)
    return OwnerHistograms(durations.owners, 0, starts, buckets, durations.counts[rows, columns])
