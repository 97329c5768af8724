"""Native metrics: counters and the histogram of durations, as deltas or cumulative."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from math import ceil, isfinite, isnan, log2
from typing import NamedTuple

from guardwave.control_plane.ingest.contract import fields, limits
from guardwave.control_plane.ingest.contract.allow_list import SiftedAttributes, sift_attributes
from guardwave.control_plane.ingest.contract.limits import Clock, accepted_time
from guardwave.control_plane.ingest.model.identity import digest63, point_identity, stream_identity
from guardwave.control_plane.ingest.model.otlp_values import (
    ExplicitBuckets,
    ExponentialBuckets,
    HistogramPoint,
    NumberPoint,
    OtherPoint,
    Point,
    Temporality,
)
from guardwave.control_plane.ingest.model.records import CounterPoint, DurationPoint, Origin
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, ItemRejected, RejectReason
from guardwave.control_plane.stores.evidence.delta.points import COARSEST_SCALE, Histogram
from guardwave.reducer import contract
from guardwave.reducer.rollout.invariants import NEVER_ON_A_METRIC
from guardwave.reducer.vocabulary import Mode

# OpenTelemetry's SDKs use no finer scale.
FINEST = 20
# Shorter durations share one bucket.
SHORTEST_S = 0.001


def histogram_of(point: HistogramPoint) -> Histogram | None:
    """Return the buckets of durations in seconds; None for a histogram with bounds of its own.

    Raises:
        ItemRejected: the buckets are too coarse to compare, or count, sum and buckets contradict
            each other (OpenTelemetry's metrics.proto, for both kinds of histogram).
    """
    _check_total(point)
    if point.buckets is None:
        _check_bounded(point, point.explicit_buckets)
        return None
    return _exponential(point, point.buckets)


def _exponential(point: HistogramPoint, buckets: ExponentialBuckets) -> Histogram:
    if not COARSEST_SCALE <= buckets.scale <= FINEST:
        raise _bad_histogram(
            point, f"has scale {buckets.scale}; {COARSEST_SCALE} to {FINEST} are read"
        )
    _check_count(point, buckets.zeros + sum(buckets.counts))
    # durations under a millisecond share one bucket, as those of events do
    lowest = ceil(log2(SHORTEST_S) * 2.0**buckets.scale) - 1
    counts: Counter[int] = Counter()
    if buckets.zeros:
        counts[lowest] += buckets.zeros
    for index, count in enumerate(buckets.counts, start=buckets.offset):
        if count:
            counts[max(index, lowest)] += count
    return Histogram(buckets.scale, tuple(sorted(counts.items())))


def _check_bounded(point: HistogramPoint, explicit_buckets: ExplicitBuckets) -> None:
    counts, bounds = explicit_buckets.counts, explicit_buckets.bounds
    if not counts and not bounds:
        return
    if len(counts) != len(bounds) + 1:
        raise _bad_histogram(
            point, f"has {len(bounds)} bounds and {len(counts)} buckets, not one more"
        )
    ascends = all(low < high for low, high in pairwise(bounds))
    if not ascends or any(map(isnan, bounds)):
        raise _bad_histogram(point, "has bounds that do not ascend")
    _check_count(point, sum(counts))


def _check_count(point: HistogramPoint, in_buckets: int) -> None:
    if in_buckets != point.events:
        raise _bad_histogram(
            point, f"counts {point.events} durations and has buckets for {in_buckets}"
        )


def _check_total(point: HistogramPoint) -> None:
    total = point.total
    if total is None:
        return
    if not isfinite(total) or total < 0:
        raise _bad_histogram(point, f"has the sum {total:g}")
    if total and not point.events:
        raise _bad_histogram(point, f"counts no durations and has the sum {total:g}")


def _bad_histogram(point: HistogramPoint, fault: str) -> ItemRejected:
    return ItemRejected(RejectReason.BAD_HISTOGRAM, f"{point.metric} {fault}")


_SHARED = frozenset({contract.GUARD, contract.MODE, limits.OVERFLOW})
ALLOWED_ON_POINTS = {
    metric: frozenset(labels) | _SHARED for metric, labels in limits.COUNTERS.items()
} | {contract.DURATION_METRIC: _SHARED}
_PREFIX = f"{contract.SCOPE}."


class PointContext(NamedTuple):
    """The facts that all points of one scope share; `is_early` marks hosts before contract 1.

    Without `has_mode` a point need not name its mode: the assignment id of its Resource does.
    """

    origin: Origin
    now_ns: int
    clock: Clock
    is_early: bool = False
    has_mode: bool = True


class AcceptedPoint(NamedTuple):
    """An accepted point, and how many of its attributes the contract does not know."""

    record: CounterPoint | DurationPoint
    dropped: int


def accept_point(point: Point, context: PointContext) -> AcceptedPoint | IgnoreReason:
    """Turn a point into a record; raises ItemRejected for one that counts for nothing."""
    if point.metric not in ALLOWED_ON_POINTS:
        return IgnoreReason.UNKNOWN_METRIC
    match point:
        case OtherPoint(metric, instrument):
            raise _wrong_instrument(metric, instrument)
        case NumberPoint():
            if point.metric == contract.DURATION_METRIC:
                raise _wrong_instrument(point.metric, "sum")
            # some collectors leave out the value of a zero
            is_empty = point.has_no_value or point.value is None
            return IgnoreReason.NO_DATA if is_empty else _counter(point, context)
        case HistogramPoint():
            if point.metric != contract.DURATION_METRIC:
                raise _wrong_instrument(point.metric, "histogram")
            return IgnoreReason.NO_DATA if point.has_no_value else _duration(point, context)


def _wrong_instrument(metric: str, instrument: str) -> ItemRejected:
    wanted = "a histogram" if metric == contract.DURATION_METRIC else "a counter"
    return ItemRejected(
        RejectReason.WRONG_INSTRUMENT, f"{metric} came as {instrument} and is {wanted}"
    )


def _counter(point: NumberPoint, context: PointContext) -> AcceptedPoint:
    if not point.is_monotonic:
        raise ItemRejected(RejectReason.NOT_MONOTONIC, f"{point.metric} is not monotonic")
    _check_temporality(point.metric, point.temporality)
    if point.unit not in limits.PLAIN_COUNTS:
        _check_unit(point.metric, point.unit)
    value = fields.whole(point.value)
    if value is None or not 0 <= value <= contract.TOKEN_LIMIT:
        raise ItemRejected(RejectReason.BAD_VALUE, f"{point.metric} has the value {point.value}")
    start_ns, time_ns = _interval(point, context)
    sifted = sift_attributes(
        point.attributes, ALLOWED_ON_POINTS[point.metric], forbidden=NEVER_ON_A_METRIC
    )
    is_overflow = _is_overflow(sifted)
    guard, mode = _guard_and_mode(sifted, context, are_required=not is_overflow)
    if not is_overflow:
        _check_essential(point.metric, sifted)
    stream = _stream(point, "sum", context.origin)
    record = CounterPoint(
        origin=context.origin,
        metric=point.metric,
        guard=guard,
        mode=mode,
        labels=_labels(sifted, limits.COUNTERS[point.metric]),
        start_ns=start_ns,
        time_ns=time_ns,
        value=value,
        identity=point_identity(stream, interval=(point.start_ns, point.time_ns), value=value),
        deny_listed=sifted.deny_listed,
        stream=stream,
        is_cumulative=point.temporality is Temporality.CUMULATIVE,
        is_overflow=is_overflow,
    )
    return AcceptedPoint(record, sifted.dropped)


def _duration(point: HistogramPoint, context: PointContext) -> AcceptedPoint:
    _check_temporality(point.metric, point.temporality)
    _check_unit(point.metric, point.unit)
    if point.events > contract.TOKEN_LIMIT:
        raise ItemRejected(RejectReason.BAD_VALUE, f"{point.metric} counts {point.events}")
    start_ns, time_ns = _interval(point, context)
    sifted = sift_attributes(point.attributes, _SHARED, forbidden=NEVER_ON_A_METRIC)
    is_overflow = _is_overflow(sifted)
    guard, mode = _guard_and_mode(sifted, context, are_required=not is_overflow)
    instrument = "exponential_histogram" if point.is_exponential else "histogram"
    stream = _stream(point, instrument, context.origin)
    buckets = histogram_of(point)
    # the sum distinguishes two writers of one name that counted the same
    value = float(point.events) if point.total is None else point.total
    identity = point_identity(stream, interval=(point.start_ns, point.time_ns), value=value)
    record = DurationPoint(
        origin=context.origin,
        metric=point.metric,
        guard=guard,
        mode=mode,
        start_ns=start_ns,
        time_ns=time_ns,
        count=point.events,
        identity=digest63("histogram", str(identity), str(point.events)),
        deny_listed=sifted.deny_listed,
        stream=stream,
        is_cumulative=point.temporality is Temporality.CUMULATIVE,
        buckets=buckets,
        is_overflow=is_overflow,
    )
    return AcceptedPoint(record, sifted.dropped)


def _check_temporality(metric: str, temporality: Temporality) -> None:
    if temporality is Temporality.UNSPECIFIED:
        raise ItemRejected(RejectReason.UNSPECIFIED_TEMPORALITY, f"{metric} names no temporality")


def _check_unit(metric: str, unit: str) -> None:
    wanted = limits.UNITS[metric]
    if unit != wanted:
        found = f"the unit {fields.quoted(unit)}" if unit else "no unit"
        raise ItemRejected(RejectReason.WRONG_UNIT, f"{metric} has {found}, not {wanted}")


def _interval(point: NumberPoint | HistogramPoint, context: PointContext) -> tuple[int, int]:
    time_ns = accepted_time(point.time_ns, now_ns=context.now_ns, clock=context.clock)
    if point.start_ns > point.time_ns:
        raise ItemRejected(RejectReason.BAD_INTERVAL, f"{point.metric} starts after its time")
    return (context.clock(point.start_ns) if point.start_ns else 0), time_ns


def _is_overflow(sifted: SiftedAttributes) -> bool:
    value = sifted.known.get(limits.OVERFLOW)
    # some collectors write true as a string
    return value is True or value == "true"


def _guard_and_mode(
    sifted: SiftedAttributes, context: PointContext, *, are_required: bool
) -> tuple[str | None, Mode | None]:
    guard = fields.name(sifted.known, contract.GUARD, limits.GUARD_NAME)
    if are_required and not context.is_early:
        fields.required(guard, contract.GUARD, sifted.deny_listed)
    mode = fields.word(sifted.known, contract.MODE, limits.MODES)
    if are_required and context.has_mode:
        fields.required(mode, contract.MODE, sifted.deny_listed)
    return guard, mode


def _check_essential(metric: str, sifted: SiftedAttributes) -> None:
    known = sifted.known
    for key in limits.ESSENTIAL[metric]:
        fields.required(known.get(key), key, sifted.deny_listed)
    if metric == contract.PROMPTS_METRIC and known[contract.STAGE] == limits.ENDED_STAGE:
        fields.required(known.get(contract.OUTCOME), contract.OUTCOME, sifted.deny_listed)


def _labels(
    sifted: SiftedAttributes, closed_sets: Mapping[str, limits.Words]
) -> tuple[tuple[str, str], ...]:
    labels: list[tuple[str, str]] = []
    for key in sorted(sifted.known.keys() & closed_sets.keys()):
        found = fields.word(sifted.known, key, closed_sets[key])
        if found is not None:
            labels.append((key.removeprefix(_PREFIX), str(found)))
    return tuple(labels)


def _stream(point: NumberPoint | HistogramPoint, instrument: str, origin: Origin) -> int:
    return stream_identity(
        origin,
        metric=(point.metric, instrument, point.unit, point.temporality.name),
        attributes=point.attributes,
    )
