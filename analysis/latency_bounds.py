"""From shifts in buckets to ratios: what a bound and an interval of latency are told as.

A shift that is excluded excludes its ratio too, so the ends of an interval are one bucket outside
the shifts that are not excluded. The estimate is the ratio of two edges, each up to one bucket
above its percentile; an interval is widened to hold it.
"""

import math

from analysis.latency import LatencyTest
from analysis.report import Figures, Interval

# Two ratios that are as near are the same edge, computed in two ways.
SAME_EDGE = 1e-12


def ratio_at(test: LatencyTest, steps: int | None) -> float | None:
    """Return the ratio of a shift, or None where it has no edge in ms."""
    if steps is None:
        return None
    ratio = test.cut(steps).ratio
    return ratio if math.isfinite(ratio) else None


def is_at_least(ratio: float | None, margin: float | None) -> bool:
    """Whether a ratio reaches a margin; one that is unknown does not."""
    return ratio is not None and margin is not None and ratio >= margin * (1.0 - SAME_EDGE)


def bound_at(test: LatencyTest, shift: int | None, steps: int, figures: Figures) -> float | None:
    """Return the ratio that the least excluded shift bounds, below the margin exactly if inside.

    `steps` is the tested margin. A shift of at most that is inside: its own ratio is excluded, so
    where it equals the margin the bound is an edge below. One above is outside, and told as no
    less than the margin and the estimate.
    """
    edge, margin = ratio_at(test, shift), figures.margin
    if shift is None or margin is None:
        return edge
    if shift > steps:
        reached = [figures.estimate] if figures.estimate is not None else []
        return None if edge is None else max(edge, margin, *reached)
    tested = ratio_at(test, steps)
    inside = min((ratio for ratio in (edge, tested) if ratio is not None), default=None)
    if is_at_least(inside, margin):
        inside = ratio_at(test, shift - 1)
    if inside is None or is_at_least(inside, margin):
        return math.nextafter(margin, 0.0)
    return inside


def interval_at(
    test: LatencyTest,
    shifts: tuple[int | None, int | None],
    steps: int,
    *,
    figures: Figures,
    level: float,
    method: str,
) -> Interval | None:
    """Return the interval between two bounds, each told by its least excluded shift.

    `shifts` are the least ones whose contrast lies below 0 at its lower and at its upper bound.
    """
    low, high = shifts
    ends = [
        None if low is None else ratio_at(test, low - 1),
        bound_at(test, high, steps, figures),
    ]
    known = [end for end in (*ends, figures.estimate) if end is not None]
    if None in ends:
        return None
    return Interval(min(known), max(known), level, method)
