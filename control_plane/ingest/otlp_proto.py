"""OTLP protobuf bodies to neutral values, decoding every slice that repeats only once."""

from opentelemetry.proto.trace.v1.trace_pb2 import Status

from control_plane.ingest.accepted import EARLY_SCOPE_VERSION
from control_plane.ingest.forms import Known
from control_plane.ingest.lazy_messages import RECORD, SPAN
from control_plane.ingest.otlp import (
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
from control_plane.ingest.proto_envelope import Scope, parse, read_envelope
from control_plane.ingest.proto_points import read_metric
from control_plane.ingest.proto_values import is_content, read_attributes
from control_plane.ingest.quota import Quota
from control_plane.ingest.rejections import Refusal, Rejected
from control_plane.otlp_door import Limits
from reducer.contract import SCOPE

Scopes = frozenset[str] | None


def decode_logs(
    body: bytes, *, limits: Limits, wanted: Scopes = None, known: Known | None = None
) -> tuple[ResourceLogs, ...]:
    """Decode an ExportLogsServiceRequest.

    Records of scopes that are not `wanted` are only counted, and not looked into; None wants all.
    Those of guardwave's own scope that say what is `known` come as runs.
    Raises BadBody for bytes that are no such message, TooLarge for too many records.
    """
    quota = Quota(limits.records)
    return tuple(
        ResourceLogs(
            entry.attributes,
            tuple(_scope_logs(scope, quota, wanted=wanted, known=known) for scope in entry.scopes),
        )
        for entry in read_envelope(body, quota)
    )


def decode_metrics(
    body: bytes, *, limits: Limits, wanted: Scopes = None
) -> tuple[ResourceMetrics, ...]:
    """Decode an ExportMetricsServiceRequest; scopes, limits and errors as for logs."""
    quota = Quota(limits.records)
    return tuple(
        ResourceMetrics(
            entry.attributes,
            tuple(_scope_metrics(scope, quota, wanted=wanted) for scope in entry.scopes),
        )
        for entry in read_envelope(body, quota)
    )


def decode_spans(
    body: bytes, *, limits: Limits, wanted: Scopes = None
) -> tuple[ResourceSpans, ...]:
    """Decode an ExportTraceServiceRequest; scopes, limits and errors as for logs."""
    quota = Quota(limits.records)
    return tuple(
        ResourceSpans(
            entry.attributes,
            tuple(_scope_spans(scope, quota, wanted=wanted) for scope in entry.scopes),
        )
        for entry in read_envelope(body, quota)
    )


def _scope_logs(scope: Scope, quota: Quota, *, wanted: Scopes, known: Known | None) -> ScopeLogs:
    name, version, records = scope
    quota.take(len(records))
    if wanted is not None and name not in wanted:
        return ScopeLogs(name, version, (), skipped=len(records))
    # what hosts of before contract 1 say is read in another way than the same words of others
    if known is None or name != SCOPE or version == EARLY_SCOPE_VERSION:
        return ScopeLogs(name, version, tuple(map(log_item, records)))
    runs, rest = known.recognise(records)
    items = tuple(map(log_item, rest))
    return ScopeLogs(name, version, items, runs=runs, messages=rest, whole=records)


def log_item(message: bytes) -> LogItem | Rejected:
    """Decode one LogRecord; raises BadBody for bytes that are none."""
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
    except Refusal as refusal:
        return refusal.rejected


def _scope_spans(scope: Scope, quota: Quota, *, wanted: Scopes) -> ScopeSpans:
    name, version, items = scope
    quota.take(len(items))
    if wanted is not None and name not in wanted:
        return ScopeSpans(name, version, (), skipped=len(items))
    return ScopeSpans(name, version, tuple(map(_span, items)))


def _span(item: bytes) -> Span | Rejected:
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
    except Refusal as refusal:
        return refusal.rejected


def _scope_metrics(scope: Scope, quota: Quota, *, wanted: Scopes) -> ScopeMetrics:
    name, version, items = scope
    quota.wrap(len(items))
    is_wanted = wanted is None or name in wanted
    points: list[Point | Rejected] = []
    count = without_data = 0
    for item in items:
        metric = read_metric(item)
        if metric is None:
            without_data += 1
            continue
        count += len(metric.points)
        quota.take(len(metric.points))
        if is_wanted:
            points += metric.read()
    skipped = 0 if is_wanted else count
    return ScopeMetrics(name, version, tuple(points), skipped, without_data)
