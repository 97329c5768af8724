import json
from typing import Any

import pytest
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]  # ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships none
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.door import (
    MESSAGE_LIMIT,
    Signal,
    explain,
    partial,
    status,
    success,
)
from guardwave.control_plane.ingest.model.rejections import Rejection, RejectReason

RESPONSES: dict[Signal, tuple[type[Any], str, str]] = {
    Signal.LOGS: (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    Signal.METRICS: (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
    Signal.TRACES: (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
}


def test_a_full_success_sets_nothing():
    assert success(Encoding.PROTOBUF) == (b"", "application/x-protobuf")
    assert success(Encoding.JSON) == (b"{}", "application/json")


@pytest.mark.parametrize("signal", Signal)
def test_a_partial_success_reports_how_many_and_why(signal):
    message, field, json_field = RESPONSES[signal]
    body, content_type = partial(Encoding.PROTOBUF, signal, rejected=3, message="late: too old")
    answer = message.FromString(body).partial_success
    assert content_type == "application/x-protobuf"
    assert (getattr(answer, field), answer.error_message) == (3, "late: too old")
    body, content_type = partial(Encoding.JSON, signal, rejected=3, message="late: too old")
    assert content_type == "application/json"
    assert json.loads(body) == {
        "partialSuccess": {json_field: "3", "errorMessage": "late: too old"}
    }


def test_a_warning_rejects_nothing():
    body, _ = partial(Encoding.JSON, Signal.LOGS, rejected=0, message="weak identity")
    assert json.loads(body)["partialSuccess"]["rejectedLogRecords"] == "0"


@pytest.mark.parametrize("message", ["", "  "])
def test_a_partial_success_without_words_is_a_mistake_of_ours(message):
    with pytest.raises(ValueError, match="needs a message"):
        partial(Encoding.JSON, Signal.LOGS, rejected=1, message=message)


def test_a_400_holds_a_bad_request_in_both_encodings():
    body, content_type = status(Encoding.PROTOBUF, 400, "the body is no protobuf")
    answer = Status.FromString(body)
    detail = BadRequest()
    assert answer.details[0].Unpack(detail)
    assert (content_type, answer.code) == ("application/x-protobuf", 3)
    assert answer.message == detail.field_violations[0].description == "the body is no protobuf"
    body, content_type = status(Encoding.JSON, 400, "the body is not JSON")
    parsed = json.loads(body)
    assert (content_type, parsed["code"]) == ("application/json", 3)
    assert parsed["details"] == [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "body", "description": "the body is not JSON"}],
        }
    ]


@pytest.mark.parametrize(
    ("http_status", "code"),
    [(401, 16), (403, 7), (404, 5), (405, 12), (413, 8), (415, 3), (429, 8), (503, 14), (418, 2)],
)
def test_other_errors_carry_the_code_of_their_status(http_status, code):
    answer = Status.FromString(status(Encoding.PROTOBUF, http_status, "no")[0])
    assert (answer.code, answer.message, len(answer.details)) == (
        code,
        "no",
        0,
    )
    assert json.loads(status(Encoding.JSON, http_status, "no")[0]) == {
        "code": code,
        "message": "no",
    }


@pytest.mark.parametrize("encoding", Encoding)
def test_a_long_message_is_shortened_rather_than_rejected(encoding):
    assert len(status(encoding, 400, "long " * 1_000_000)[0]) < 10 * MESSAGE_LIMIT
    body, _ = partial(encoding, Signal.LOGS, rejected=1, message="long " * 1_000_000)
    assert len(body) < 10 * MESSAGE_LIMIT


@pytest.mark.parametrize("encoding", Encoding)
def test_a_message_that_quotes_a_lone_surrogate_can_be_sent(encoding):
    assert b"content type ?" in status(encoding, 415, "content type \ud800")[0]


def test_rejected_items_are_reported_by_the_first_reason_and_all_counts():
    rejected = [
        Rejection(RejectReason.LATE, "the time is 50.0 hours ago; send within 48 hours"),
        Rejection(RejectReason.BAD_ATTRIBUTE, "agent.guard.mode is missing"),
        Rejection(RejectReason.LATE, "the time is 51.0 hours ago; send within 48 hours"),
    ]
    assert explain(rejected, accepted=7) == (
        "late: the time is 50.0 hours ago; send within 48 hours "
        "(3 of 10 rejected: late 2, bad_attribute 1)"
    )


@pytest.mark.parametrize("reason", RejectReason)
def test_every_reason_has_a_remedy(reason):
    assert len(reason.remedy) > 10
