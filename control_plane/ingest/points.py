"""The native metrics: counters, and the histogram of durations, as deltas or cumulative."""

from collections.abc import Mapping
from typing import NamedTuple

from control_plane.ingest import accepted, fields
from control_plane.ingest.allow_list import Sifted, sift
from control_plane.ingest.event_time import Clock, accepted_time
from control_plane.ingest.histograms import histogram_of
from control_plane.ingest.identity import digest63, point_identity, stream_identity
from control_plane.ingest.otlp import (
    HistogramPoint,
    NumberPoint,
    OtherPoint,
    Point,
    Temporality,
)
from control_plane.ingest.records import CounterPoint, DurationPoint, Origin
from control_plane.ingest.rejections import IgnoreReason, Refusal, RejectReason
from reducer import contract
from reducer.rollout.invariants import NEVER_ON_A_METRIC
from reducer.vocabulary import Mode

_SHARED = frozenset({contract.GUARD, contract.MODE, accepted.OVERFLOW})
ALLOWED_ON_POINTS = {
    metric: frozenset(labels) | _SHARED for metric, labels in accepted.COUNTERS.items()
} | {contract.DURATION_METRIC: _SHARED}
_PREFIX = f"{contract.SCOPE}."


class PointArrival(NamedTuple):
    """What all points of one scope share; `is_early` is of before contract 1.

    Without `has_mode` a point need not name its mode: the assignment id of its Resource does.
    """

    origin: Origin
    now_ns: int
    clock: Clock
    is_early: bool = False
    has_mode: bool = True


class Taken(NamedTuple):
    """An accepted point, and how many of its attributes the contract does not know."""

    record: CounterPoint | DurationPoint
    dropped: int


def take_point(point: Point, arrival: PointArrival) -> Taken | IgnoreReason:
    """Turn a point into a record; raises Refusal for one that counts for nothing."""
    if point.metric not in ALLOWED_ON_POINTS:
        return IgnoreReason.UNKNOWN_METRIC
    match point:
        case OtherPoint(metric, instrument):
            raise _wrong_instrument(metric, instrument)
        case NumberPoint():
            if point.metric == contract.DURATION_METRIC:
                raise _wrong_instrument(point.metric, "sum")
            # some collectors write a zero as no value at all
            is_empty = point.has_no_value or point.value is None
            return IgnoreReason.NO_DATA if is_empty else _counter(point, arrival)
        case HistogramPoint():
            if point.metric != contract.DURATION_METRIC:
                raise _wrong_instrument(point.metric, "histogram")
            return IgnoreReason.NO_DATA if point.has_no_value else _duration(point, arrival)


def _wrong_instrument(metric: str, instrument: str) -> Refusal:
    wanted = "a histogram" if metric == contract.DURATION_METRIC else "a counter"
    return Refusal(RejectReason.WRONG_INSTRUMENT, f"{metric} came as {instrument} and is {wanted}")


def _counter(point: NumberPoint, arrival: PointArrival) -> Taken:
    if not point.is_monotonic:
        raise Refusal(RejectReason.NOT_MONOTONIC, f"{point.metric} is not monotonic")
    _check_temporality(point.metric, point.temporality)
    if point.unit not in accepted.PLAIN_COUNTS:
        _check_unit(point.metric, point.unit)
    value = fields.whole(point.value)
    if value is None or not 0 <= value <= contract.TOKEN_LIMIT:
        raise Refusal(RejectReason.BAD_VALUE, f"{point.metric} has the value {point.value}")
    start_ns, time_ns = _interval(point, arrival)
    sifted = sift(point.attributes, ALLOWED_ON_POINTS[point.metric], forbidden=NEVER_ON_A_METRIC)
    is_overflow = _is_overflow(sifted)
    guard, mode = _guard_and_mode(sifted, arrival, are_required=not is_overflow)
    if not is_overflow:
        _check_essential(point.metric, sifted)
    stream = _stream(point, "sum", arrival.origin)
    record = CounterPoint(
        origin=arrival.origin,
        metric=point.metric,
        guard=guard,
        mode=mode,
        labels=_labels(sifted, accepted.COUNTERS[point.metric]),
        start_ns=start_ns,
        time_ns=time_ns,
        value=value,
        identity=point_identity(stream, interval=(point.start_ns, point.time_ns), value=value),
        deny_listed=sifted.deny_listed,
        stream=stream,
        is_cumulative=point.temporality is Temporality.CUMULATIVE,
        is_overflow=is_overflow,
    )
    return Taken(record, sifted.dropped)


def _duration(point: HistogramPoint, arrival: PointArrival) -> Taken:
    _check_temporality(point.metric, point.temporality)
    _check_unit(point.metric, point.unit)
    if point.events > contract.TOKEN_LIMIT:
        raise Refusal(RejectReason.BAD_VALUE, f"{point.metric} counts {point.events}")
    start_ns, time_ns = _interval(point, arrival)
    sifted = sift(point.attributes, _SHARED, forbidden=NEVER_ON_A_METRIC)
    is_overflow = _is_overflow(sifted)
    guard, mode = _guard_and_mode(sifted, arrival, are_required=not is_overflow)
    instrument = "exponential_histogram" if point.is_exponential else "histogram"
    stream = _stream(point, instrument, arrival.origin)
    buckets = histogram_of(point)
    # the sum tells apart two writers that share a name and counted alike
    value = float(point.events) if point.total is None else point.total
    identity = point_identity(stream, interval=(point.start_ns, point.time_ns), value=value)
    record = DurationPoint(
        origin=arrival.origin,
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
    return Taken(record, sifted.dropped)


def _check_temporality(metric: str, temporality: Temporality) -> None:
    if temporality is Temporality.UNSPECIFIED:
        raise Refusal(RejectReason.UNSPECIFIED_TEMPORALITY, f"{metric} names no temporality")


def _check_unit(metric: str, unit: str) -> None:
    wanted = accepted.UNITS[metric]
    if unit != wanted:
        told = f"the unit {fields.quoted(unit)}" if unit else "no unit"
        raise Refusal(RejectReason.WRONG_UNIT, f"{metric} has {told}, not {wanted}")


def _interval(point: NumberPoint | HistogramPoint, arrival: PointArrival) -> tuple[int, int]:
    time_ns = accepted_time(point.time_ns, now_ns=arrival.now_ns, clock=arrival.clock)
    if point.start_ns > point.time_ns:
        raise Refusal(RejectReason.BAD_INTERVAL, f"{point.metric} starts after its time")
    return (arrival.clock(point.start_ns) if point.start_ns else 0), time_ns


def _is_overflow(sifted: Sifted) -> bool:
    told = sifted.known.get(accepted.OVERFLOW)
    # some collectors write truth as a text
    return told is True or told == "true"


def _guard_and_mode(
    sifted: Sifted, arrival: PointArrival, *, are_required: bool
) -> tuple[str | None, Mode | None]:
    guard = fields.name(sifted.known, contract.GUARD, accepted.GUARD_NAME)
    if are_required and not arrival.is_early:
        fields.required(guard, contract.GUARD, sifted.deny_listed)
    mode = fields.word(sifted.known, contract.MODE, accepted.MODES)
    if are_required and arrival.has_mode:
        fields.required(mode, contract.MODE, sifted.deny_listed)
    return guard, mode


def _check_essential(metric: str, sifted: Sifted) -> None:
    known = sifted.known
    for key in accepted.ESSENTIAL[metric]:
        fields.required(known.get(key), key, sifted.deny_listed)
    if metric == contract.PROMPTS_METRIC and known[contract.STAGE] == accepted.ENDED_STAGE:
        fields.required(known.get(contract.OUTCOME), contract.OUTCOME, sifted.deny_listed)


def _labels(
    sifted: Sifted, closed_sets: Mapping[str, accepted.Words]
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
