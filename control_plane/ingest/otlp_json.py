"""OTLP/JSON bodies to neutral values.

A walk of our own: the generic protobuf JSON parser reads hex ids as base64 and accepts the enum
names and snake_case keys that OTLP forbids.
"""

from collections.abc import Iterator, Sequence

import orjson

from control_plane.ingest import json_scalars as scalar
from control_plane.ingest.json_values import (
    Object,
    read_attributes,
    read_object,
    read_pair,
    read_value,
)
from control_plane.ingest.otlp import (
    EMPTY_BODIES,
    NO_RECORDED_VALUE,
    Attributes,
    HistogramPoint,
    LogItem,
    NumberPoint,
    OtherPoint,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ScopeLogs,
    ScopeMetrics,
    Temporality,
)
from control_plane.ingest.quota import Quota, check_resource_size
from control_plane.ingest.rejections import Refusal, Rejected, RejectReason
from control_plane.ingest.wire import BadBody, Limits

Scopes = frozenset[str] | None

_KINDS = ("sum", "histogram", "exponentialHistogram", "gauge", "summary")


def decode_logs(body: bytes, *, limits: Limits, wanted: Scopes = None) -> tuple[ResourceLogs, ...]:
    """Decode an ExportLogsServiceRequest.

    Records of scopes that are not `wanted` are only counted; None wants all. Raises BadBody for
    a body or an envelope that is not OTLP/JSON, TooLarge for too many records.
    """
    quota = Quota(limits.records)
    return tuple(
        ResourceLogs(
            _resource(entry),
            tuple(
                _scope_logs(scope, quota, wanted=wanted)
                for scope in _objects(entry, "scopeLogs", quota)
            ),
        )
        for entry in _objects(_load(body), "resourceLogs", quota)
    )


def decode_metrics(
    body: bytes, *, limits: Limits, wanted: Scopes = None
) -> tuple[ResourceMetrics, ...]:
    """Decode an ExportMetricsServiceRequest; scopes, limits and errors as for logs."""
    quota = Quota(limits.records)
    return tuple(
        ResourceMetrics(
            _resource(entry),
            tuple(
                _scope_metrics(scope, quota, wanted=wanted)
                for scope in _objects(entry, "scopeMetrics", quota)
            ),
        )
        for entry in _objects(_load(body), "resourceMetrics", quota)
    )


def _load(body: bytes) -> Object:
    if not body:
        return {}
    try:
        return _object(orjson.loads(body), "the body")
    except orjson.JSONDecodeError as broken:
        raise BadBody(f"the body is not JSON: {broken}") from broken


def _object(raw: object, where: str) -> Object:
    if not isinstance(raw, dict):
        raise BadBody(f"{where} is {_kind_of(raw)}, not an object; send OTLP/JSON")
    return raw


def _objects(holder: Object, key: str, quota: Quota) -> list[Object]:
    items = _array(holder, key)
    quota.wrap(len(items))
    return [_object(item, f"an entry of {key}") for item in items]


def _array(holder: Object, key: str) -> Sequence[object]:
    raw = holder.get(key)
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise BadBody(f"{key} is {_kind_of(raw)}, not an array; send OTLP/JSON")
    return raw


def _kind_of(raw: object) -> str:
    words = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if raw is None else words.get(type(raw), "a number")


def _resource(entry: Object) -> Attributes:
    resource = entry.get("resource")
    if resource is None:
        return {}
    pairs = _array(_object(resource, "resource"), "attributes")
    check_resource_size(len(pairs))
    try:
        return dict(read_pair(item) for item in pairs)
    except Refusal as refusal:
        raise BadBody(f"a resource cannot be read: {refusal.rejected.detail}") from refusal


def _scope(holder: Object) -> tuple[str, str]:
    raw = holder.get("scope")
    scope = {} if raw is None else _object(raw, "scope")
    try:
        return (
            scalar.text(scope.get("name"), "scope.name"),
            scalar.text(scope.get("version"), "scope.version"),
        )
    except Refusal as refusal:
        raise BadBody(f"a scope cannot be read: {refusal.rejected.detail}") from refusal


def _scope_logs(holder: Object, quota: Quota, *, wanted: Scopes) -> ScopeLogs:
    name, version = _scope(holder)
    records = _array(holder, "logRecords")
    quota.take(len(records))
    if wanted is not None and name not in wanted:
        return ScopeLogs(name, version, (), skipped=len(records))
    return ScopeLogs(name, version, tuple(map(_log_item, records)))


def _log_item(raw: object) -> LogItem | Rejected:
    try:
        record = read_object(raw, "a log record")
        scalar.enum(record.get("severityNumber"), "severityNumber")
        scalar.check_hex_id(record.get("traceId"), "traceId", size=16)
        scalar.check_hex_id(record.get("spanId"), "spanId", size=8)
        body = record.get("body")
        return LogItem(
            scalar.unsigned(record.get("timeUnixNano"), "timeUnixNano"),
            scalar.unsigned(record.get("observedTimeUnixNano"), "observedTimeUnixNano"),
            scalar.text(record.get("eventName"), "eventName"),
            read_attributes(record),
            body is not None and read_value(body, "body") not in EMPTY_BODIES,
        )
    except Refusal as refusal:
        return refusal.rejected


def _scope_metrics(holder: Object, quota: Quota, *, wanted: Scopes) -> ScopeMetrics:
    name, version = _scope(holder)
    is_wanted = wanted is None or name in wanted
    points: list[Point | Rejected] = []
    skipped = without_data = 0
    for metric in _objects(holder, "metrics", quota):
        kind = next((kind for kind in _KINDS if metric.get(kind) is not None), None)
        if kind is None:
            without_data += 1
            continue
        series = _object(metric[kind], kind)
        raw_points = _array(series, "dataPoints")
        quota.take(len(raw_points))
        if is_wanted:
            points.extend(_points(metric, kind, series))
        else:
            skipped += len(raw_points)
    return ScopeMetrics(name, version, tuple(points), skipped, without_data)


def _points(metric: Object, kind: str, series: Object) -> Iterator[Point | Rejected]:
    raw_points = _array(series, "dataPoints")
    try:
        name = scalar.text(metric.get("name"), "name")
        unit = scalar.text(metric.get("unit"), "unit")
        number = scalar.enum(series.get("aggregationTemporality"), "aggregationTemporality")
        is_monotonic = scalar.boolean(series.get("isMonotonic"), "isMonotonic")
    except Refusal as refusal:
        yield from (refusal.rejected for _ in raw_points)
        return
    known = 0 <= number <= Temporality.CUMULATIVE
    temporality = Temporality(number) if known else Temporality.UNSPECIFIED
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
        except Refusal as refusal:
            yield refusal.rejected


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
        raise Refusal(RejectReason.UNREADABLE, "a point has both asInt and asDouble")
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
    )


def _has_no_value(point: Object) -> bool:
    flags = scalar.integer(point.get("flags"), "flags", low=0, high=2**32 - 1)
    return bool(flags & NO_RECORDED_VALUE)
