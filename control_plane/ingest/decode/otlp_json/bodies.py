"""OTLP/JSON bodies: requests for logs, metrics and traces to neutral values.

The generic protobuf JSON parser does not fit: it reads hex ids as base64 and accepts the enum names
and snake_case keys that OTLP forbids.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from guardwave.control_plane.core.otlp_request import Limits
from guardwave.control_plane.ingest.decode.otlp_json import values as scalar
from guardwave.control_plane.ingest.decode.otlp_json.envelope import (
    expect_object,
    load,
    read_array,
    read_objects,
    read_resource,
    read_scope,
)
from guardwave.control_plane.ingest.decode.otlp_json.values import (
    Object,
    read_attributes,
    read_object,
    read_value,
)
from guardwave.control_plane.ingest.model.otlp_values import (
    EMPTY_BODIES,
    NO_RECORDED_VALUE,
    Attributes,
    ExplicitBuckets,
    ExponentialBuckets,
    HistogramPoint,
    LogItem,
    NumberPoint,
    OtherPoint,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ResourceSpans,
    ScopeLogs,
    ScopeMetrics,
    ScopeSpans,
    Span,
    Temporality,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection, RejectReason
from guardwave.control_plane.ingest.wire import Quota, check_bucket_count

Scopes = frozenset[str] | None
Scope = TypeVar("Scope", ScopeLogs, ScopeMetrics, ScopeSpans)

_KINDS = ("sum", "histogram", "exponentialHistogram", "gauge", "summary")


def decode_logs(
    body: bytes, *, limits: Limits, wanted_scopes: Scopes = None
) -> tuple[ResourceLogs, ...]:
    """Decode an ExportLogsServiceRequest.

    Records of scopes outside `wanted_scopes` are only counted; None wants all scopes. Raises
    BadBody for a body or an envelope that is not OTLP/JSON, TooLarge for too many records.
    """
    read = partial(_scope_logs, wanted_scopes=wanted_scopes)
    return tuple(ResourceLogs(*entry) for entry in _entries(body, "Logs", limits, read))


def decode_metrics(
    body: bytes, *, limits: Limits, wanted_scopes: Scopes = None
) -> tuple[ResourceMetrics, ...]:
    """Decode an ExportMetricsServiceRequest; scopes, limits and errors as for logs."""
    read = partial(_scope_metrics, wanted_scopes=wanted_scopes)
    return tuple(ResourceMetrics(*entry) for entry in _entries(body, "Metrics", limits, read))


def decode_spans(
    body: bytes, *, limits: Limits, wanted_scopes: Scopes = None
) -> tuple[ResourceSpans, ...]:
    """Decode an ExportTraceServiceRequest; scopes, limits and errors as for logs."""
    read = partial(_scope_spans, wanted_scopes=wanted_scopes)
    return tuple(ResourceSpans(*entry) for entry in _entries(body, "Spans", limits, read))


def _entries(
    body: bytes, kind: str, limits: Limits, read: Callable[[Object, Quota], Scope]
) -> Iterator[tuple[Attributes, tuple[Scope, ...]]]:
    """Yield the Resource of each entry, and its scopes as `read` decodes them."""
    quota = Quota(limits.records)
    for entry in read_objects(load(body), f"resource{kind}", quota):
        resource = read_resource(entry)
        scopes = read_objects(entry, f"scope{kind}", quota)
        yield resource, tuple(read(scope, quota) for scope in scopes)


def _scope_logs(holder: Object, quota: Quota, *, wanted_scopes: Scopes) -> ScopeLogs:
    name, version = read_scope(holder)
    records = read_array(holder, "logRecords")
    quota.count_items(len(records))
    if wanted_scopes is not None and name not in wanted_scopes:
        return ScopeLogs(name, version, (), skipped=len(records))
    return ScopeLogs(name, version, tuple(map(_log_item, records)))


def _log_item(raw: object) -> LogItem | Rejection:
    try:
        record = read_object(raw, "a log record")
        scalar.enum(record.get("severityNumber"), "severityNumber")
        trace_id = scalar.hex_id(record.get("traceId"), "traceId", size=16)
        scalar.hex_id(record.get("spanId"), "spanId", size=8)
        body = record.get("body")
        return LogItem(
            scalar.unsigned(record.get("timeUnixNano"), "timeUnixNano"),
            scalar.unsigned(record.get("observedTimeUnixNano"), "observedTimeUnixNano"),
            scalar.text(record.get("eventName"), "eventName"),
            read_attributes(record),
            body is not None and read_value(body, "body") not in EMPTY_BODIES,
            trace_id,
        )
    except ItemRejected as error:
        return error.rejection


def _scope_spans(holder: Object, quota: Quota, *, wanted_scopes: Scopes) -> ScopeSpans:
    name, version = read_scope(holder)
    spans = read_array(holder, "spans")
    quota.count_items(len(spans))
    if wanted_scopes is not None and name not in wanted_scopes:
        return ScopeSpans(name, version, (), skipped=len(spans))
    return ScopeSpans(name, version, tuple(map(_span, spans)))


def _span(raw: object) -> Span | Rejection:
    try:
        span = read_object(raw, "a span")
        status = read_object(span.get("status") or {}, "status")
        return Span(
            scalar.hex_id(span.get("traceId"), "traceId", size=16),
            scalar.text(span.get("name"), "name"),
            scalar.unsigned(span.get("startTimeUnixNano"), "startTimeUnixNano"),
            scalar.unsigned(span.get("endTimeUnixNano"), "endTimeUnixNano"),
            scalar.enum(status.get("code"), "code"),
            read_attributes(span),
        )
    except ItemRejected as error:
        return error.rejection


def _scope_metrics(holder: Object, quota: Quota, *, wanted_scopes: Scopes) -> ScopeMetrics:
    name, version = read_scope(holder)
    is_wanted = wanted_scopes is None or name in wanted_scopes
    points: list[Point | Rejection] = []
    skipped = without_data = 0
    for metric in read_objects(holder, "metrics", quota):
        kind = next((kind for kind in _KINDS if metric.get(kind) is not None), None)
        if kind is None:
            without_data += 1
            continue
        series = expect_object(metric[kind], kind)
        raw_points = read_array(series, "dataPoints")
        quota.count_items(len(raw_points))
        if is_wanted:
            points.extend(_points(metric, kind, series))
        else:
            skipped += len(raw_points)
    return ScopeMetrics(name, version, tuple(points), skipped, without_data)


def _points(metric: Object, kind: str, series: Object) -> Iterator[Point | Rejection]:
    raw_points = read_array(series, "dataPoints")
    try:
        name = scalar.text(metric.get("name"), "name")
        unit = scalar.text(metric.get("unit"), "unit")
        number = scalar.enum(series.get("aggregationTemporality"), "aggregationTemporality")
        is_monotonic = scalar.boolean(series.get("isMonotonic"), "isMonotonic")
    except ItemRejected as error:
        yield from (error.rejection for _ in raw_points)
        return
    is_known = 0 <= number <= Temporality.CUMULATIVE
    temporality = Temporality(number) if is_known else Temporality.UNSPECIFIED
    for raw in raw_points:
        try:
            point = read_object(raw, "a data point")
            match kind:
                case "sum":
                    yield _number_point(point, (name, unit), temporality, is_monotonic=is_monotonic)
                case "histogram" | "exponentialHistogram":
                    is_exponential = kind == "exponentialHistogram"
                    yield _histogram_point(
                        point, (name, unit), temporality, is_exponential=is_exponential
                    )
                case _:
                    yield OtherPoint(name, kind)
        except ItemRejected as error:
            yield error.rejection


def _number_point(
    point: Object, name_and_unit: tuple[str, str], temporality: Temporality, *, is_monotonic: bool
) -> NumberPoint:
    return NumberPoint(
        *name_and_unit,
        scalar.unsigned(point.get("startTimeUnixNano"), "startTimeUnixNano"),
        scalar.unsigned(point.get("timeUnixNano"), "timeUnixNano"),
        _number(point),
        temporality,
        is_monotonic,
        read_attributes(point),
        _has_no_value(point),
    )


def _number(point: Object) -> int | float | None:
    as_int, as_double = point.get("asInt"), point.get("asDouble")
    if as_int is not None and as_double is not None:
        raise ItemRejected(RejectReason.UNREADABLE, "a point has both asInt and asDouble")
    if as_int is not None:
        return scalar.signed(as_int, "asInt")
    return None if as_double is None else scalar.double(as_double, "asDouble")


def _histogram_point(
    point: Object, name_and_unit: tuple[str, str], temporality: Temporality, *, is_exponential: bool
) -> HistogramPoint:
    total = point.get("sum")
    return HistogramPoint(
        *name_and_unit,
        scalar.unsigned(point.get("startTimeUnixNano"), "startTimeUnixNano"),
        scalar.unsigned(point.get("timeUnixNano"), "timeUnixNano"),
        scalar.unsigned(point.get("count"), "count"),
        None if total is None else scalar.double(total, "sum"),
        temporality,
        is_exponential,
        read_attributes(point),
        _has_no_value(point),
        _buckets(point) if is_exponential else None,
        ExplicitBuckets() if is_exponential else _bounded(point),
    )


def _buckets(point: Object) -> ExponentialBuckets:
    positive = point.get("positive")
    if positive is None:
        positive = {}
    if not isinstance(positive, dict):
        raise ItemRejected(RejectReason.UNREADABLE, "positive is no object")
    counts = _bucket_list(positive, "bucketCounts")
    return ExponentialBuckets(
        scalar.integer(point.get("scale"), "scale", low=-(2**31), high=2**31 - 1),
        scalar.unsigned(point.get("zeroCount"), "zeroCount"),
        scalar.integer(positive.get("offset"), "offset", low=-(2**31), high=2**31 - 1),
        tuple(scalar.unsigned(count, "bucketCounts") for count in counts),
    )


def _bounded(point: Object) -> ExplicitBuckets:
    bounds = _bucket_list(point, "explicitBounds")
    counts = _bucket_list(point, "bucketCounts")
    return ExplicitBuckets(
        tuple(scalar.double(bound, "explicitBounds") for bound in bounds),
        tuple(scalar.unsigned(count, "bucketCounts") for count in counts),
    )


def _bucket_list(holder: Object, key: str) -> list[object]:
    found = holder.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ItemRejected(RejectReason.UNREADABLE, f"{key} is no list")
    check_bucket_count(len(found))
    return found


def _has_no_value(point: Object) -> bool:
    flags = scalar.integer(point.get("flags"), "flags", low=0, high=2**32 - 1)
    return bool(flags & NO_RECORDED_VALUE)
