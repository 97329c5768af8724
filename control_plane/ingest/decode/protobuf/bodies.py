"""OTLP/protobuf bodies: requests for logs, metrics and traces to neutral values."""

from opentelemetry.proto.trace.v1.trace_pb2 import Status

from guardwave.control_plane.core.otlp_request import Limits
from guardwave.control_plane.ingest.contract import EARLY_SCOPE_VERSION
from guardwave.control_plane.ingest.decode.protobuf.envelope import Scope, parse, read_envelope
from guardwave.control_plane.ingest.decode.protobuf.lazy_messages import RECORD, SPAN
from guardwave.control_plane.ingest.decode.protobuf.points import read_metric
from guardwave.control_plane.ingest.decode.protobuf.values import is_content, read_attributes
from guardwave.control_plane.ingest.fast_path import LayoutMatcher
from guardwave.control_plane.ingest.model.otlp_values import (
    LogItem,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ResourceSpans,
    ScopeLogs,
    ScopeMetrics,
    ScopeSpans,
    Span,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection
from guardwave.control_plane.ingest.wire import Quota
from guardwave.reducer.contract import SCOPE

Scopes = frozenset[str] | None


def decode_logs(
    body: bytes,
    *,
    limits: Limits,
    wanted_scopes: Scopes = None,
    layouts: LayoutMatcher | None = None,
) -> tuple[ResourceLogs, ...]:
    """Decode an ExportLogsServiceRequest.

    Records of scopes outside `wanted_scopes` are counted and not parsed; None wants all scopes.
    Records of guardwave's own scope that match one of the `layouts` come in batches.
    Raises BadBody for bytes that are no such message, TooLarge for too many records.
    """
    quota = Quota(limits.records)
    return tuple(
        ResourceLogs(
            entry.attributes,
            tuple(
                _scope_logs(scope, quota, wanted_scopes=wanted_scopes, layouts=layouts)
                for scope in entry.scopes
            ),
        )
        for entry in read_envelope(body, quota)
    )


def decode_metrics(
    body: bytes, *, limits: Limits, wanted_scopes: Scopes = None
) -> tuple[ResourceMetrics, ...]:
    """Decode an ExportMetricsServiceRequest; scopes, limits and errors as for logs."""
    quota = Quota(limits.records)
    return tuple(
        ResourceMetrics(
            entry.attributes,
            tuple(
                _scope_metrics(scope, quota, wanted_scopes=wanted_scopes) for scope in entry.scopes
            ),
        )
        for entry in read_envelope(body, quota)
    )


def decode_spans(
    body: bytes, *, limits: Limits, wanted_scopes: Scopes = None
) -> tuple[ResourceSpans, ...]:
    """Decode an ExportTraceServiceRequest; scopes, limits and errors as for logs."""
    quota = Quota(limits.records)
    return tuple(
        ResourceSpans(
            entry.attributes,
            tuple(
                _scope_spans(scope, quota, wanted_scopes=wanted_scopes) for scope in entry.scopes
            ),
        )
        for entry in read_envelope(body, quota)
    )


def _scope_logs(
    scope: Scope, quota: Quota, *, wanted_scopes: Scopes, layouts: LayoutMatcher | None
) -> ScopeLogs:
    name, version, records = scope
    quota.count_items(len(records))
    if wanted_scopes is not None and name not in wanted_scopes:
        return ScopeLogs(name, version, (), skipped=len(records))
    # hosts before contract 1 mean something else by the same words
    if layouts is None or name != SCOPE or version == EARLY_SCOPE_VERSION:
        return ScopeLogs(name, version, tuple(map(log_item, records)))
    record_batches, rest = layouts.match(records)
    items = tuple(map(log_item, rest))
    return ScopeLogs(
        name, version, items, record_batches=record_batches, messages=rest, all_messages=records
    )


def log_item(message: bytes) -> LogItem | Rejection:
    """Decode one LogRecord; raises BadBody for bytes that are no LogRecord."""
    record = parse(RECORD, message)
    try:
        return LogItem(
            record.time_ns,
            record.observed_time_ns,
            record.event_name,
            read_attributes(record.attributes),
            is_content(record.body),
            record.trace_id,
        )
    except ItemRejected as error:
        return error.rejection


def _scope_spans(scope: Scope, quota: Quota, *, wanted_scopes: Scopes) -> ScopeSpans:
    name, version, items = scope
    quota.count_items(len(items))
    if wanted_scopes is not None and name not in wanted_scopes:
        return ScopeSpans(name, version, (), skipped=len(items))
    return ScopeSpans(name, version, tuple(map(_span, items)))


def _span(item: bytes) -> Span | Rejection:
    span = parse(SPAN, item)
    try:
        return Span(
            span.trace_id,
            span.name,
            span.start_ns,
            span.end_ns,
            parse(Status, b"".join(span.status)).code,
            read_attributes(span.attributes),
        )
    except ItemRejected as error:
        return error.rejection


def _scope_metrics(scope: Scope, quota: Quota, *, wanted_scopes: Scopes) -> ScopeMetrics:
    name, version, items = scope
    quota.count_wrappers(len(items))
    is_wanted = wanted_scopes is None or name in wanted_scopes
    points: list[Point | Rejection] = []
    count = without_data = 0
    for item in items:
        metric = read_metric(item)
        if metric is None:
            without_data += 1
            continue
        count += len(metric.points)
        quota.count_items(len(metric.points))
        if is_wanted:
            points += metric.read()
    skipped = 0 if is_wanted else count
    return ScopeMetrics(name, version, tuple(points), skipped, without_data)
