"""OTLP/protobuf read through the published message classes alone: the reference, and slow."""

from collections.abc import Iterable, Iterator, Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
)

from guardwave.control_plane.ingest.model.otlp_values import (
    ELEMENT_LIMIT,
    EMPTY_BODIES,
    NO_RECORDED_VALUE,
    STRING_LIMIT,
    Attributes,
    ExplicitBuckets,
    ExponentialBuckets,
    HistogramPoint,
    KeyValues,
    LogItem,
    NumberPoint,
    OtherPoint,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ScopeLogs,
    ScopeMetrics,
    Temporality,
    Value,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection
from guardwave.control_plane.ingest.wire.quota import (
    check_attribute_count,
    check_bucket_count,
    check_no_repeat,
)


def logs(body: bytes) -> tuple[ResourceLogs, ...]:
    """Read an ExportLogsServiceRequest; raises DecodeError."""
    return tuple(
        ResourceLogs(
            _read(entry.resource.attributes),
            tuple(
                ScopeLogs(
                    scope.scope.name, scope.scope.version, tuple(map(_item, scope.log_records))
                )
                for scope in entry.scope_logs
            ),
        )
        for entry in ExportLogsServiceRequest.FromString(body).resource_logs
    )


def metrics(body: bytes) -> tuple[ResourceMetrics, ...]:
    """Read an ExportMetricsServiceRequest; raises DecodeError."""
    found = []
    for entry in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        scopes = []
        for scope in entry.scope_metrics:
            empty = [metric for metric in scope.metrics if metric.WhichOneof("data") is None]
            points = [point for metric in scope.metrics for point in _points(metric)]
            name, version = scope.scope.name, scope.scope.version
            scopes.append(ScopeMetrics(name, version, tuple(points), 0, len(empty)))
        found.append(ResourceMetrics(_read(entry.resource.attributes), tuple(scopes)))
    return tuple(found)


def _item(record: LogRecord) -> LogItem | Rejection:
    try:
        return LogItem(
            record.time_unix_nano,
            record.observed_time_unix_nano,
            record.event_name,
            _attributes(record.attributes),
            record.HasField("body") and _value(record.body) not in EMPTY_BODIES,
            record.trace_id,
        )
    except ItemRejected as error:
        return error.rejection


def _points(metric: Metric) -> Iterator[Point | Rejection]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    series = getattr(metric, kind)
    for point in series.data_points:
        try:
            match point:
                case NumberDataPoint() if kind == "sum":
                    yield _number(metric, point)
                case HistogramDataPoint() | ExponentialHistogramDataPoint():
                    yield _histogram(metric, point, series.aggregation_temporality)
                case _:
                    yield OtherPoint(metric.name, kind)
        except ItemRejected as error:
            yield error.rejection


def _number(metric: Metric, point: NumberDataPoint) -> NumberPoint:
    kind = point.WhichOneof("value")
    return NumberPoint(
        metric.name,
        metric.unit,
        point.start_time_unix_nano,
        point.time_unix_nano,
        None if kind is None else getattr(point, kind),
        _temporality(metric.sum.aggregation_temporality),
        metric.sum.is_monotonic,
        _attributes(point.attributes),
        bool(point.flags & NO_RECORDED_VALUE),
    )


def _histogram(
    metric: Metric, point: HistogramDataPoint | ExponentialHistogramDataPoint, temporality: int
) -> HistogramPoint:
    return HistogramPoint(
        metric.name,
        metric.unit,
        point.start_time_unix_nano,
        point.time_unix_nano,
        point.count,
        point.sum if point.HasField("sum") else None,
        _temporality(temporality),
        isinstance(point, ExponentialHistogramDataPoint),
        _attributes(point.attributes),
        bool(point.flags & NO_RECORDED_VALUE),
        _buckets(point),
        _bounded(point),
    )


def _buckets(
    point: HistogramDataPoint | ExponentialHistogramDataPoint,
) -> ExponentialBuckets | None:
    if isinstance(point, HistogramDataPoint):
        return None
    counts = tuple(point.positive.bucket_counts)
    check_bucket_count(len(counts))
    return ExponentialBuckets(point.scale, point.zero_count, point.positive.offset, counts)


def _bounded(point: HistogramDataPoint | ExponentialHistogramDataPoint) -> ExplicitBuckets:
    if not isinstance(point, HistogramDataPoint):
        return ExplicitBuckets()
    check_bucket_count(max(len(point.bucket_counts), len(point.explicit_bounds)))
    return ExplicitBuckets(tuple(point.explicit_bounds), tuple(point.bucket_counts))


def _temporality(number: int) -> Temporality:
    return Temporality(number) if 0 <= number <= Temporality.CUMULATIVE else Temporality.UNSPECIFIED


def _attributes(pairs: Sequence[KeyValue]) -> Attributes:
    check_attribute_count(len(pairs))
    attributes = _read(pairs)
    check_no_repeat(len(attributes), len(pairs))
    return attributes


def _read(pairs: Iterable[KeyValue]) -> Attributes:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return tuple(_value(item) for item in value.array_value.values[:ELEMENT_LIMIT])
        case "kvlist_value":
            pairs = value.kvlist_value.values[:ELEMENT_LIMIT]
            return KeyValues(tuple((pair.key, _value(pair.value)) for pair in pairs))
        case "string_value":
            return value.string_value[:STRING_LIMIT]
        case "bytes_value":
            return value.bytes_value[:STRING_LIMIT]
        case kind:
            found: bool | int | float = getattr(value, kind)
            return found
