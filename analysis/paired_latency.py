"""Latency p95 before and after: the durations of the same owners in two periods, at one cut.

The earlier durations are shifted by the margin, both are pooled and cut, and the shares of slow
prompts are contrasted by owner (analysis.latency says how the cut lies).
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.bounds import least_passing
from analysis.cohorts import Contrast
from analysis.frames import OWNER, Outcomes
from analysis.histograms import BUCKET, COUNT, Durations, OwnerHistograms
from analysis.latency import LatencyTest, latency_test
from analysis.pairing import Paired, paired_contrast


@dataclass(frozen=True, slots=True, eq=False)
class PairedLatency:
    """Each owner twice, after and before; shifts are numbers of buckets."""

    test: LatencyTest

    def shares(self, steps: int) -> Paired:
        """Return the slow prompts and all prompts of each owner, with `before` shifted."""
        own = self.test.at(self.test.cut(steps))
        half = len(own.owners) // 2
        return Paired(own.harm[:half], own.trials[:half], own.harm[half:], own.trials[half:])

    def contrast(self, steps: int) -> Contrast | None:
        """Contrast the shares of slow prompts; below zero the ratio is less than the shift."""
        return paired_contrast(self.shares(steps), is_log=False)

    def least_excluded(self, confidence: float) -> int | None:
        """Return the least shift whose contrast has its bound at this confidence below 0."""

        def gap(steps: int) -> float:
            contrast = self.contrast(steps)
            return math.inf if contrast is None else contrast.upper(confidence)

        lowest, highest = (round(limit) for limit in self.test.limits)
        return least_passing(gap, start=gap(0), guess=0, limits=(lowest, highest))


def pair_durations(
    owners: tuple[str, ...], after: Durations | None, before: Durations | None
) -> PairedLatency | str:
    """Pair the durations of the named owners, or say in words why that cannot be done."""
    if after is None or before is None:
        return "latency p95 needs the durations of prompts before and after, and has not both"
    if not (isinstance(after, OwnerHistograms) and isinstance(before, OwnerHistograms)):
        return "explicit buckets are not compared before and after"
    both = set(owners) & _with_any(after) & _with_any(before)
    if not both:
        return "no owner has durations both before and after"
    scale = min(after.scale, before.scale)
    parts = [
        _long(each.at_scale(scale), both, prefix)
        for prefix, each in (("after:", after), ("before:", before))
    ]
    histograms = OwnerHistograms.of(pd.concat(parts, ignore_index=True), scale)
    nothing = np.zeros(len(histograms.owners))
    is_after = np.arange(len(nothing)) < len(both)
    # "after:" sorts before "before:", so the owners of both halves stand in one order.
    named = Outcomes(histograms.owners, is_after, nothing, nothing)
    return PairedLatency(latency_test(named, histograms, None))


def _with_any(durations: OwnerHistograms) -> set[str]:
    has_any = durations.totals > 0
    return {owner for owner, has in zip(durations.owners, has_any, strict=True) if has}


def _long(durations: OwnerHistograms, owners: set[str], prefix: str) -> pd.DataFrame:
    names = np.array(durations.owners, dtype=object)[durations.places]
    frame = pd.DataFrame({OWNER: names, BUCKET: durations.buckets, COUNT: durations.counts})
    kept = frame[frame[OWNER].isin(owners)]
    return kept.assign(**{OWNER: prefix + kept[OWNER].astype(str)})
