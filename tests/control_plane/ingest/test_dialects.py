"""Dialects: found by scope, asked by name, and served spans only when one of them wants some."""

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from control_plane.ingest import otlp_json, otlp_proto
from control_plane.ingest.dialects.dialect import Arrival, Fate, Refused, Scopes, Taken
from control_plane.ingest.dialects.native import NativeDialect
from control_plane.ingest.dialects.registry import DIALECTS, wanted
from control_plane.ingest.otlp import LogItem, Point, Span
from control_plane.ingest.reading import Receiving, read_logs, read_metrics, read_spans
from control_plane.ingest.records import PromptStart
from control_plane.ingest.rejections import IgnoreReason, Refusal, RejectReason
from control_plane.otlp_door import Encoding
from reducer.vocabulary import Route
from tests.control_plane.ingest.bodies import (
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
RECEIVING = Receiving("internal", NOW_NS)


class SomeAgent:
    """A dialect of another host, which tells of a prompt by a log record and by a span."""

    scopes = Scopes(
        logs=frozenset({SCOPE, "agent.guard"}),
        points=frozenset({SCOPE}),
        spans=frozenset({SCOPE}),
    )

    def contract_of(self, scope_version: str) -> int | None:
        return 1 if scope_version in {"1", "0.24"} else None

    def read_log(self, item: LogItem, arrival: Arrival) -> Fate:
        if item.event_name != "said":
            return IgnoreReason.UNKNOWN_EVENT
        if item.attributes.get("is_empty"):
            raise Refusal(RejectReason.BAD_ATTRIBUTE, "is_empty is true")
        if item.attributes.get("is_silent"):
            return Taken(())
        told = [_start(arrival, item.trace_id.hex(), item.time_ns, turn) for turn in ("a", "b")]
        return Taken(tuple(told), dropped=2)

    def read_point(self, point: Point, arrival: Arrival) -> Fate:
        del point, arrival
        return IgnoreReason.UNKNOWN_METRIC

    def read_span(self, span: Span, arrival: Arrival) -> Fate:
        if span.name != "prompt":
            return IgnoreReason.UNKNOWN_EVENT
        return Taken((_start(arrival, span.trace_id.hex(), span.start_ns, str(span.status_code)),))


BOTH = (NativeDialect(), SomeAgent())


def _start(arrival: Arrival, prompt: str, time_ns: int, turn: str) -> PromptStart:
    return PromptStart(
        origin=arrival.origin,
        time_ns=arrival.clock(time_ns),
        prompt_id=f"{prompt}-{turn}",
        assignment_ids=arrival.origin.assignment_ids,
        route=Route.INTERACTIVE_FOREGROUND,
    )


def logs_of(attributes, *, scope=(SCOPE, "0.24"), event="said", **fields):
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
    told = {
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
        Encoding.JSON: json.dumps(told).encode(),
    }


def test_an_item_may_tell_several_records_or_none():
    told = read_logs(logs_of({}, trace_id=TRACE_ID), RECEIVING, BOTH)
    ids = [each.prompt_id for each in told.records if isinstance(each, PromptStart)]
    assert (ids, told.dropped_attributes) == ([f"{TRACE_ID.hex()}-a", f"{TRACE_ID.hex()}-b"], 2)
    silent = read_logs(logs_of({"is_silent": True}), RECEIVING, BOTH)
    assert (silent.records, silent.rejected, dict(silent.ignored_by_reason)) == ((), (), {})


def test_a_dialect_may_refuse_an_item_by_raising():
    told = read_logs(logs_of({"is_empty": True}), RECEIVING, BOTH)
    assert [each.reason for each in told.rejected] == [RejectReason.BAD_ATTRIBUTE]


def test_an_item_of_a_shared_scope_goes_to_the_dialect_that_knows_its_name():
    scope = ("agent.guard", "1")
    native = read_logs(logs_of(TRANSITION, scope=scope, event="agent.guard.transition"), RECEIVING)
    both = read_logs(
        logs_of(TRANSITION, scope=scope, event="agent.guard.transition"), RECEIVING, BOTH
    )
    assert native == both
    assert len(read_logs(logs_of({}, scope=scope), RECEIVING, BOTH).records) == 2


def test_a_name_that_no_dialect_knows_is_ignored_once():
    told = read_logs(logs_of({}, scope=("agent.guard", "1"), event="hello"), RECEIVING, BOTH)
    assert dict(told.ignored_by_reason) == {IgnoreReason.UNKNOWN_EVENT: 1}
    points = counter_request({}, scope=(SCOPE, "0.24"), as_int=1).SerializeToString()
    told = read_metrics(decode_metrics(points, Encoding.PROTOBUF), RECEIVING, BOTH)
    assert dict(told.ignored_by_reason) == {IgnoreReason.UNKNOWN_METRIC: 1}


def test_a_scope_of_an_unknown_contract_is_refused_by_its_dialect():
    told = read_logs(logs_of({}, scope=(SCOPE, "9")), RECEIVING, BOTH)
    assert [each.reason for each in told.rejected] == [RejectReason.CONTRACT_UNKNOWN]


def test_a_service_name_alone_makes_no_dialect():
    resource = dict(RESOURCE) | {"service.name": SCOPE}
    told = read_logs(logs_of({}, scope=("other", "0.24"), resource=resource), RECEIVING, BOTH)
    assert (told.records, dict(told.ignored_by_reason)) == ((), {IgnoreReason.OTHER_SCOPE: 1})


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_dialect_that_reads_spans_gets_those_of_its_scopes(encoding):
    decoder = otlp_json if encoding is Encoding.JSON else otlp_proto
    body = span_bodies()[encoding]
    batches = decoder.decode_spans(body, limits=LIMITS, wanted=wanted(BOTH).spans)
    (scope, other) = batches[0].scopes
    assert scope.spans == (Span(TRACE_ID, "prompt", NOW_NS - 5, NOW_NS, 2, {"turns": 3}),)
    assert (other.spans, other.skipped) == ((), 1)
    told = read_spans(batches, RECEIVING, BOTH)
    assert [each.prompt_id for each in told.records if isinstance(each, PromptStart)] == [
        f"{TRACE_ID.hex()}-2"
    ]
    assert dict(told.ignored_by_reason) == {IgnoreReason.OTHER_SCOPE: 1}


def test_native_items_are_asked_of_the_native_dialect_first():
    assert isinstance(DIALECTS[0], NativeDialect)
    assert {"agent.guard"} <= wanted().logs & wanted().points
    arrival = Arrival(None, "1", NOW_NS, lambda ns: ns)  # type: ignore[arg-type]  # not looked at
    span = Span(TRACE_ID, "agent.guard", 0, 0, 0, {})
    assert not isinstance(DIALECTS[0].read_span(span, arrival), Taken | Refused)
