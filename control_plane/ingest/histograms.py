"""The buckets of a histogram of durations: compared, or refused where they cannot be true."""

from collections import Counter
from itertools import pairwise
from math import ceil, isfinite, isnan, log2

from control_plane.ingest.otlp import Bounded, Buckets, HistogramPoint
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.stores.evidence_points import COARSEST, Histogram

# The scales that OpenTelemetry's SDKs use end here; durations below this are all alike.
FINEST = 20
SHORTEST_S = 0.001


def histogram_of(point: HistogramPoint) -> Histogram | None:
    """Return the buckets of durations in seconds; None for a histogram with bounds of its own.

    Raises:
        Refusal: the buckets are too coarse to compare, or what the point says of its durations
            cannot all be true (OpenTelemetry's metrics.proto, of both kinds of histogram).
    """
    _check_total(point)
    if point.buckets is None:
        _check_bounded(point, point.bounded)
        return None
    return _exponential(point, point.buckets)


def _exponential(point: HistogramPoint, told: Buckets) -> Histogram:
    # all that is shorter than a millisecond is in one bucket, as by events
    if not COARSEST <= told.scale <= FINEST:
        raise _refusal(point, f"has scale {told.scale}; {COARSEST} to {FINEST} are read")
    _check_count(point, told.zeros + sum(told.counts))
    least = ceil(log2(SHORTEST_S) * 2.0**told.scale) - 1
    counts: Counter[int] = Counter()
    if told.zeros:
        counts[least] += told.zeros
    for at, count in enumerate(told.counts, start=told.offset):
        if count:
            counts[max(at, least)] += count
    return Histogram(told.scale, tuple(sorted(counts.items())))


def _check_bounded(point: HistogramPoint, told: Bounded) -> None:
    if not told.counts and not told.bounds:
        return
    if len(told.counts) != len(told.bounds) + 1:
        raise _refusal(
            point, f"has {len(told.bounds)} bounds and {len(told.counts)} buckets, not one more"
        )
    ascends = all(low < high for low, high in pairwise(told.bounds))
    if not ascends or any(map(isnan, told.bounds)):
        raise _refusal(point, "has bounds that do not ascend")
    _check_count(point, sum(told.counts))


def _check_count(point: HistogramPoint, held: int) -> None:
    if held != point.events:
        raise _refusal(point, f"counts {point.events} durations and has buckets for {held}")


def _check_total(point: HistogramPoint) -> None:
    total = point.total
    if total is None:
        return
    if not isfinite(total) or total < 0:
        raise _refusal(point, f"has the sum {total:g}")
    if total and not point.events:
        raise _refusal(point, f"counts no durations and has the sum {total:g}")


def _refusal(point: HistogramPoint, fault: str) -> Refusal:
    return Refusal(RejectReason.BAD_HISTOGRAM, f"{point.metric} {fault}")
