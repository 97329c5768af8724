"""OTLP protobuf bodies to neutral values, by the published message classes."""

from collections.abc import Iterable

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.logs.v1.logs_pb2 import ScopeLogs as WireScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics as WireScopeMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans as WireScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from control_plane.ingest.otlp import (
    EMPTY_BODIES,
    NO_RECORDED_VALUE,
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
from control_plane.ingest.proto_values import read_attributes, read_resource, read_value
from control_plane.ingest.quota import Quota
from control_plane.ingest.rejections import Refusal, Rejected
from control_plane.ingest.wire import BadBody, Limits

Scopes = frozenset[str] | None


def decode_logs(body: bytes, *, limits: Limits, wanted: Scopes = None) -> tuple[ResourceLogs, ...]:
    """Decode an ExportLogsServiceRequest.

    Records of scopes that are not `wanted` are only counted; None wants all. Raises BadBody for
    bytes that are no such message, TooLarge for too many records.
    """
    request = ExportLogsServiceRequest()
    _parse(request, body)
    quota = Quota(limits.records)
    quota.wrap(len(request.resource_logs))
    return tuple(
        ResourceLogs(
            read_resource(entry.resource.attributes),
            tuple(_scope_logs(scope, quota, wanted=wanted) for scope in entry.scope_logs),
        )
        for entry in request.resource_logs
    )


def decode_metrics(
    body: bytes, *, limits: Limits, wanted: Scopes = None
) -> tuple[ResourceMetrics, ...]:
    """Decode an ExportMetricsServiceRequest; scopes, limits and errors as for logs."""
    request = ExportMetricsServiceRequest()
    _parse(request, body)
    quota = Quota(limits.records)
    quota.wrap(len(request.resource_metrics))
    return tuple(
        ResourceMetrics(
            read_resource(entry.resource.attributes),
            tuple(_scope_metrics(scope, quota, wanted=wanted) for scope in entry.scope_metrics),
        )
        for entry in request.resource_metrics
    )


def decode_spans(
    body: bytes, *, limits: Limits, wanted: Scopes = None
) -> tuple[ResourceSpans, ...]:
    """Decode an ExportTraceServiceRequest; scopes, limits and errors as for logs."""
    request = ExportTraceServiceRequest()
    _parse(request, body)
    quota = Quota(limits.records)
    quota.wrap(len(request.resource_spans))
    return tuple(
        ResourceSpans(
            read_resource(entry.resource.attributes),
            tuple(_scope_spans(scope, quota, wanted=wanted) for scope in entry.scope_spans),
        )
        for entry in request.resource_spans
    )


def _parse(
    request: ExportLogsServiceRequest | ExportMetricsServiceRequest | ExportTraceServiceRequest,
    body: bytes,
) -> None:
    try:
        request.ParseFromString(body)
    except DecodeError as broken:
        name = request.DESCRIPTOR.name
        raise BadBody(
            f"the body of {len(body)} bytes is no protobuf {name}; check the exporter"
        ) from broken


def _scope_logs(scope: WireScopeLogs, quota: Quota, *, wanted: Scopes) -> ScopeLogs:
    name, version = scope.scope.name, scope.scope.version
    count = len(scope.log_records)
    quota.wrap(1)
    quota.take(count)
    if wanted is not None and name not in wanted:
        return ScopeLogs(name, version, (), skipped=count)
    return ScopeLogs(name, version, tuple(map(_log_item, scope.log_records)))


def _log_item(record: LogRecord) -> LogItem | Rejected:
    try:
        return LogItem(
            record.time_unix_nano,
            record.observed_time_unix_nano,
            record.event_name,
            read_attributes(record.attributes),
            record.HasField("body") and read_value(record.body) not in EMPTY_BODIES,
            record.trace_id,
        )
    except Refusal as refusal:
        return refusal.rejected


def _scope_spans(scope: WireScopeSpans, quota: Quota, *, wanted: Scopes) -> ScopeSpans:
    name, version = scope.scope.name, scope.scope.version
    count = len(scope.spans)
    quota.wrap(1)
    quota.take(count)
    if wanted is not None and name not in wanted:
        return ScopeSpans(name, version, (), skipped=count)
    return ScopeSpans(name, version, tuple(map(_span, scope.spans)))


def _span(span: WireSpan) -> Span | Rejected:
    try:
        return Span(
            span.trace_id,
            span.name,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.code,
            read_attributes(span.attributes),
        )
    except Refusal as refusal:
        return refusal.rejected


def _scope_metrics(scope: WireScopeMetrics, quota: Quota, *, wanted: Scopes) -> ScopeMetrics:
    name, version = scope.scope.name, scope.scope.version
    is_wanted = wanted is None or name in wanted
    points: list[Point | Rejected] = []
    skipped = without_data = 0
    quota.wrap(1 + len(scope.metrics))
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        if kind is None:
            without_data += 1
            continue
        count = len(getattr(metric, kind).data_points)
        quota.take(count)
        if is_wanted:
            points.extend(_points(metric, kind))
        else:
            skipped += count
    return ScopeMetrics(name, version, tuple(points), skipped, without_data)


def _points(metric: Metric, kind: str) -> Iterable[Point | Rejected]:
    match kind:
        case "sum":
            return _number_points(metric)
        case "histogram":
            return _histogram_points(metric, metric.histogram.data_points)
        case "exponential_histogram":
            return _histogram_points(metric, metric.exponential_histogram.data_points)
        case _:
            count = len(getattr(metric, kind).data_points)
            return (OtherPoint(metric.name, kind) for _ in range(count))


def _temporality(number: int) -> Temporality:
    return Temporality(number) if 0 <= number <= Temporality.CUMULATIVE else Temporality.UNSPECIFIED


def _number_points(metric: Metric) -> Iterable[NumberPoint | Rejected]:
    temporality = _temporality(metric.sum.aggregation_temporality)
    is_monotonic = metric.sum.is_monotonic
    name, unit = metric.name, metric.unit
    for point in metric.sum.data_points:
        try:
            yield NumberPoint(
                name,
                unit,
                point.start_time_unix_nano,
                point.time_unix_nano,
                _number(point),
                temporality,
                is_monotonic,
                read_attributes(point.attributes),
                bool(point.flags & NO_RECORDED_VALUE),
            )
        except Refusal as refusal:
            yield refusal.rejected


def _number(point: NumberDataPoint) -> int | float | None:
    match point.WhichOneof("value"):
        case "as_int":
            return point.as_int
        case "as_double":
            return point.as_double
        case _:
            return None


def _histogram_points(
    metric: Metric, points: Iterable[HistogramDataPoint | ExponentialHistogramDataPoint]
) -> Iterable[HistogramPoint | Rejected]:
    is_exponential = metric.HasField("exponential_histogram")
    holder = metric.exponential_histogram if is_exponential else metric.histogram
    temporality = _temporality(holder.aggregation_temporality)
    for point in points:
        try:
            yield HistogramPoint(
                metric.name,
                metric.unit,
                point.start_time_unix_nano,
                point.time_unix_nano,
                point.count,
                point.sum if point.HasField("sum") else None,
                temporality,
                is_exponential,
                read_attributes(point.attributes),
                bool(point.flags & NO_RECORDED_VALUE),
            )
        except Refusal as refusal:
            yield refusal.rejected
