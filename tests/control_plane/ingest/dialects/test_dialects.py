"""Dialects: chosen by scope and name, and given spans only when one of them reads spans."""

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.decode import otlp_json, protobuf
from guardwave.control_plane.ingest.dialects import DIALECTS, wanted_scopes
from guardwave.control_plane.ingest.dialects.dialect import (
    Accepted,
    ItemContext,
    ReadResult,
    Scopes,
)
from guardwave.control_plane.ingest.dialects.native import NativeDialect
from guardwave.control_plane.ingest.model.otlp_values import LogItem, Point, Span
from guardwave.control_plane.ingest.model.records import PromptStart
from guardwave.control_plane.ingest.model.rejections import (
    IgnoreReason,
    ItemRejected,
    Rejection,
    RejectReason,
)
from guardwave.control_plane.ingest.reading import (
    RequestContext,
    read_logs,
    read_metrics,
    read_spans,
)
from guardwave.reducer.vocabulary import Route
from tests.support.otlp.bodies import (
    LIMITS,
    NOW_NS,
    RESOURCE,
    TRANSITION,
    any_value,
    counter_request,
    decode_logs,
    decode_metrics,
    log_request,
)

SCOPE = "some-agent"
TRACE_ID = bytes(range(16))
RECEIVING = RequestContext("internal", NOW_NS)


class SomeAgent:
    """A dialect of another host, which reports a prompt by a log record and by a span."""

    scopes = Scopes(
        logs=frozenset({SCOPE, "agent.guard"}),
        points=frozenset({SCOPE}),
        spans=frozenset({SCOPE}),
    )

    def contract_of(self, scope_version: str) -> int | None:
        return 1 if scope_version in {"1", "0.24"} else None

    def read_log(self, item: LogItem, context: ItemContext) -> ReadResult:
        if item.event_name != "spoke":
            return IgnoreReason.UNKNOWN_EVENT
        if item.attributes.get("is_empty"):
            raise ItemRejected(RejectReason.BAD_ATTRIBUTE, "is_empty is true")
        if item.attributes.get("is_silent"):
            return Accepted(())
        starts = [_start(context, item.trace_id.hex(), item.time_ns, turn) for turn in ("a", "b")]
        return Accepted(tuple(starts), dropped=2)

    def read_point(self, point: Point, context: ItemContext) -> ReadResult:
        del point, context
        return IgnoreReason.UNKNOWN_METRIC

    def read_span(self, span: Span, context: ItemContext) -> ReadResult:
        if span.name != "prompt":
            return IgnoreReason.UNKNOWN_EVENT
        return Accepted(
            (_start(context, span.trace_id.hex(), span.start_ns, str(span.status_code)),)
        )


BOTH = (NativeDialect(), SomeAgent())


def _start(context: ItemContext, prompt: str, time_ns: int, turn: str) -> PromptStart:
    return PromptStart(
        origin=context.origin,
        time_ns=context.clock(time_ns),
        prompt_id=f"{prompt}-{turn}",
        assignment_ids=context.origin.assignment_ids,
        route=Route.INTERACTIVE_FOREGROUND,
    )


def logs_of(attributes, *, scope=(SCOPE, "0.24"), event="spoke", **fields):
    request = log_request(attributes, event=event, scope=scope, **fields)
    return decode_logs(request.SerializeToString(), Encoding.PROTOBUF)


def span_bodies() -> dict[Encoding, bytes]:
    """One span of the dialect's scope and one of another, in both encodings."""
    request = ExportTraceServiceRequest()
    entry = request.resource_spans.add()
    for key, value in RESOURCE.items():
        entry.resource.attributes.add(key=key, value=any_value(value))
    for name in (SCOPE, "http"):
        scope = entry.scope_spans.add()
        scope.scope.name, scope.scope.version = name, "0.24"
        span = scope.spans.add(
            trace_id=TRACE_ID,
            span_id=TRACE_ID[:8],
            name="prompt",
            start_time_unix_nano=NOW_NS - 5,
            end_time_unix_nano=NOW_NS,
        )
        span.status.MergeFrom(Status(code=Status.STATUS_CODE_ERROR, message="it went wrong"))
        span.attributes.add(key="turns", value=any_value(3))
    content = {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [
                        {"key": key, "value": {"stringValue": value}}
                        for key, value in RESOURCE.items()
                    ]
                },
                "scopeSpans": [
                    {
                        "scope": {"name": name, "version": "0.24"},
                        "spans": [
                            {
                                "traceId": TRACE_ID.hex(),
                                "spanId": TRACE_ID[:8].hex(),
                                "name": "prompt",
                                "startTimeUnixNano": str(NOW_NS - 5),
                                "endTimeUnixNano": str(NOW_NS),
                                "status": {"code": 2, "message": "it went wrong"},
                                "attributes": [{"key": "turns", "value": {"intValue": 3}}],
                            }
                        ],
                    }
                    for name in (SCOPE, "http")
                ],
            }
        ]
    }
    return {
        Encoding.PROTOBUF: request.SerializeToString(),
        Encoding.JSON: json.dumps(content).encode(),
    }


def test_an_item_may_become_several_records_or_none():
    decoded = read_logs(logs_of({}, trace_id=TRACE_ID), RECEIVING, BOTH)
    ids = [record.prompt_id for record in decoded.records if isinstance(record, PromptStart)]
    assert (ids, decoded.dropped_attributes) == ([f"{TRACE_ID.hex()}-a", f"{TRACE_ID.hex()}-b"], 2)
    silent = read_logs(logs_of({"is_silent": True}), RECEIVING, BOTH)
    assert (silent.records, silent.rejected, dict(silent.ignored_by_reason)) == ((), (), {})


def test_a_dialect_may_reject_an_item_by_raising():
    decoded = read_logs(logs_of({"is_empty": True}), RECEIVING, BOTH)
    assert [rejection.reason for rejection in decoded.rejected] == [RejectReason.BAD_ATTRIBUTE]


def test_an_item_of_a_shared_scope_goes_to_the_dialect_that_knows_its_name():
    scope = ("agent.guard", "1")
    native = read_logs(logs_of(TRANSITION, scope=scope, event="agent.guard.transition"), RECEIVING)
    both = read_logs(
        logs_of(TRANSITION, scope=scope, event="agent.guard.transition"), RECEIVING, BOTH
    )
    assert native == both
    assert len(read_logs(logs_of({}, scope=scope), RECEIVING, BOTH).records) == 2


def test_a_name_that_no_dialect_knows_is_ignored_once():
    decoded = read_logs(logs_of({}, scope=("agent.guard", "1"), event="hello"), RECEIVING, BOTH)
    assert dict(decoded.ignored_by_reason) == {IgnoreReason.UNKNOWN_EVENT: 1}
    points = counter_request({}, scope=(SCOPE, "0.24"), as_int=1).SerializeToString()
    decoded = read_metrics(decode_metrics(points, Encoding.PROTOBUF), RECEIVING, BOTH)
    assert dict(decoded.ignored_by_reason) == {IgnoreReason.UNKNOWN_METRIC: 1}


def test_a_scope_of_an_unknown_contract_is_rejected_by_its_dialect():
    decoded = read_logs(logs_of({}, scope=(SCOPE, "9")), RECEIVING, BOTH)
    assert [rejection.reason for rejection in decoded.rejected] == [RejectReason.CONTRACT_UNKNOWN]


def test_a_service_name_alone_makes_no_dialect():
    resource = dict(RESOURCE) | {"service.name": SCOPE}
    decoded = read_logs(logs_of({}, scope=("other", "0.24"), resource=resource), RECEIVING, BOTH)
    assert (decoded.records, dict(decoded.ignored_by_reason)) == ((), {IgnoreReason.OTHER_SCOPE: 1})


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_dialect_that_reads_spans_gets_those_of_its_scopes(encoding):
    decoder = otlp_json if encoding is Encoding.JSON else protobuf
    body = span_bodies()[encoding]
    batches = decoder.decode_spans(body, limits=LIMITS, wanted_scopes=wanted_scopes(BOTH).spans)
    (scope, other) = batches[0].scopes
    assert scope.spans == (Span(TRACE_ID, "prompt", NOW_NS - 5, NOW_NS, 2, {"turns": 3}),)
    assert (other.spans, other.skipped) == ((), 1)
    decoded = read_spans(batches, RECEIVING, BOTH)
    ids = [record.prompt_id for record in decoded.records if isinstance(record, PromptStart)]
    assert ids == [f"{TRACE_ID.hex()}-2"]
    assert dict(decoded.ignored_by_reason) == {IgnoreReason.OTHER_SCOPE: 1}


def test_native_items_are_asked_of_the_native_dialect_first():
    assert isinstance(DIALECTS[0], NativeDialect)
    assert {"agent.guard"} <= wanted_scopes().logs & wanted_scopes().points
    context = ItemContext(None, "1", NOW_NS, lambda ns: ns)  # type: ignore[arg-type]  # not looked at
    span = Span(TRACE_ID, "agent.guard", 0, 0, 0, {})
    assert not isinstance(DIALECTS[0].read_span(span, context), Accepted | Rejection)
