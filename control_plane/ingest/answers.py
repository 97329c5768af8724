"""What an OTLP/HTTP request is answered with, in its own encoding."""

from collections.abc import Sequence
from enum import StrEnum

import orjson
from google.protobuf.any_pb2 import Any as Packed

# googleapis-common-protos ships no type information
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]  # see above
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # see above
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from control_plane.ingest.rejections import Rejected
from control_plane.otlp_door import Encoding

# OTLP allows 4 MiB for the whole answer; what a person reads fits in far less.
MESSAGE_LIMIT = 1024

# google.rpc.Code for the HTTP statuses this door answers; anything else is UNKNOWN.
_RPC_CODES = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    405: 12,
    413: 8,
    415: 3,
    429: 8,
    500: 13,
    503: 14,
}
_UNKNOWN = 2
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"

Answer = tuple[bytes, str]


class Signal(StrEnum):
    """The three kinds of telemetry, each with a door of its own; the value ends its path."""

    LOGS = "logs"
    METRICS = "metrics"
    TRACES = "traces"


_REJECTED_FIELD = {
    Signal.LOGS: "rejectedLogRecords",
    Signal.METRICS: "rejectedDataPoints",
    Signal.TRACES: "rejectedSpans",
}


def success(encoding: Encoding) -> Answer:
    """Answer a request that was accepted whole: the response message with nothing set."""
    return (b"{}" if encoding is Encoding.JSON else b""), encoding.value


def partial(encoding: Encoding, signal: Signal, *, rejected: int, message: str) -> Answer:
    """Answer a request of which `rejected` items were not accepted.

    With 0 rejected the message is a warning. Raises ValueError for an empty message, which the
    protocol forbids.
    """
    text = _shorten(message)
    if not text:
        raise ValueError("a partial success needs a message that says why")
    if encoding is Encoding.JSON:
        body = {"partialSuccess": {_REJECTED_FIELD[signal]: str(rejected), "errorMessage": text}}
        return orjson.dumps(body), encoding.value
    return _partial_message(signal, rejected, text), encoding.value


def _partial_message(signal: Signal, rejected: int, text: str) -> bytes:
    match signal:
        case Signal.LOGS:
            logs = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=text)
            return ExportLogsServiceResponse(partial_success=logs).SerializeToString()
        case Signal.METRICS:
            points = ExportMetricsPartialSuccess(rejected_data_points=rejected, error_message=text)
            return ExportMetricsServiceResponse(partial_success=points).SerializeToString()
        case Signal.TRACES:
            spans = ExportTracePartialSuccess(rejected_spans=rejected, error_message=text)
            return ExportTraceServiceResponse(partial_success=spans).SerializeToString()


def status(encoding: Encoding, http_status: int, message: str) -> Answer:
    """Answer a request that was refused as a whole, with a google.rpc.Status.

    A 400 also carries a google.rpc.BadRequest, as OTLP asks for bad data.
    """
    code = _RPC_CODES.get(http_status, _UNKNOWN)
    text = _shorten(message) or "refused"
    if encoding is Encoding.JSON:
        refusal: dict[str, object] = {"code": code, "message": text}
        if http_status == 400:
            violation = {"field": "body", "description": text}
            refusal["details"] = [{"@type": _BAD_REQUEST, "fieldViolations": [violation]}]
        return orjson.dumps(refusal), encoding.value
    details = []
    if http_status == 400:
        packed = Packed()
        violation = BadRequest.FieldViolation(field="body", description=text)
        packed.Pack(BadRequest(field_violations=[violation]))
        details.append(packed)
    body: bytes = Status(code=code, message=text, details=details).SerializeToString()
    return body, encoding.value


def explain(rejected: Sequence[Rejected], *, accepted: int) -> str:
    """Say in one line what was rejected: the first reason in full, then every reason's count."""
    first = rejected[0]
    counts: dict[str, int] = {}
    for item in rejected:
        counts[item.reason] = counts.get(item.reason, 0) + 1
    reasons = ", ".join(f"{reason} {count}" for reason, count in counts.items())
    total = len(rejected) + accepted
    return f"{first.reason}: {first.detail} ({len(rejected)} of {total} rejected: {reasons})"


def _shorten(message: str) -> str:
    # a lone surrogate can stand in a message that quotes input, and no UTF-8 can carry it
    text = message.strip().encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"
