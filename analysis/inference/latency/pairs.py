"""Pairs: latency p95 before and after, by the durations of the same owners at one cut.

The earlier durations are shifted by the margin, both periods are pooled and cut, and the shares of
slow prompts are contrasted by owner. The module `shift` explains the cut.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from guardwave.analysis.frames import BUCKET, COUNT, OWNER, Durations, Outcomes, OwnerHistograms
from guardwave.analysis.inference.cohorts import Contrast, Paired, paired_contrast
from guardwave.analysis.inference.latency.shift import LatencyTest, latency_test
from guardwave.analysis.inference.rerandomisation import least_passing


@dataclass(frozen=True, slots=True, eq=False)
class PairedLatency:
    """Each owner twice, after and before; shifts are numbers of buckets."""

    test: LatencyTest

    def shares(self, steps: int) -> Paired:
        """Return the slow prompts and all prompts of each owner, with `before` shifted."""
        slow = self.test.outcomes_at(self.test.cut(steps))
        half = len(slow.owners) // 2
        return Paired(slow.harm[:half], slow.trials[:half], slow.harm[half:], slow.trials[half:])

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
    """Pair the durations of the named owners, or return in words why that is impossible."""
    if after is None or before is None:
        return "latency p95 needs the durations of prompts before and after, and has not both"
    if not (isinstance(after, OwnerHistograms) and isinstance(before, OwnerHistograms)):
        return "explicit buckets are not compared before and after"
    both = set(owners) & _with_any(after) & _with_any(before)
    if not both:
        return "no owner has durations both before and after"
    scale = min(after.scale, before.scale)
    parts = [
        _long_frame(durations.at_scale(scale), both, prefix)
        for prefix, durations in (("after:", after), ("before:", before))
    ]
    histograms = OwnerHistograms.of(pd.concat(parts, ignore_index=True), scale)
    nothing = np.zeros(len(histograms.owners))
    is_after = np.arange(len(nothing)) < len(both)
    # "after:" sorts before "before:", so both halves have their owners in the same order.
    owners_twice = Outcomes(histograms.owners, is_after, nothing, nothing)
    return PairedLatency(latency_test(owners_twice, histograms, None))


def _with_any(durations: OwnerHistograms) -> set[str]:
    has_any = durations.totals > 0
    return {owner for owner, has in zip(durations.owners, has_any, strict=True) if has}


def _long_frame(durations: OwnerHistograms, owners: set[str], prefix: str) -> pd.DataFrame:
    names = np.array(durations.owners, dtype=object)[durations.places]
    frame = pd.DataFrame({OWNER: names, BUCKET: durations.buckets, COUNT: durations.counts})
    rows = frame[frame[OWNER].isin(owners)]
    return rows.assign(**{OWNER: prefix + rows[OWNER].astype(str)})
