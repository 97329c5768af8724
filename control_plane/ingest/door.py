"""OTLP door: the answer to one telemetry request, in the request's own encoding."""

import logging
from collections import Counter
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

from guardwave.control_plane.core.errors import GuardwaveError, StoreUnavailable, trace_of
from guardwave.control_plane.core.otlp_request import Encoding, Limits, OtlpAnswer, OtlpRequest
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.decode import otlp_json, protobuf
from guardwave.control_plane.ingest.dialects import wanted_scopes
from guardwave.control_plane.ingest.intake import Intake, Receipt
from guardwave.control_plane.ingest.model.otlp_values import ResourceLogs
from guardwave.control_plane.ingest.model.rejections import Rejection
from guardwave.control_plane.ingest.wire import (
    ACCEPTED_CONTENT_ENCODINGS,
    TooSlow,
    UnsupportedEncoding,
    WireError,
    encoding_of,
    read_body,
)
from guardwave.control_plane.rollouts.access import Identity
from guardwave.reducer.vocabulary import Role

# OTLP allows 4 MiB for the whole answer; a sentence for a person fits in far less.
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
    """The three kinds of telemetry; the value is the last part of the path."""

    LOGS = "logs"
    METRICS = "metrics"
    TRACES = "traces"


_REJECTED_FIELD = {
    Signal.LOGS: "rejectedLogRecords",
    Signal.METRICS: "rejectedDataPoints",
    Signal.TRACES: "rejectedSpans",
}


def success(encoding: Encoding) -> Answer:
    """Answer a request that was accepted whole: an empty response message."""
    return (b"{}" if encoding is Encoding.JSON else b""), encoding.value


def partial(encoding: Encoding, signal: Signal, *, rejected: int, message: str) -> Answer:
    """Answer a request with `rejected` items that were not accepted.

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
    """Answer a request that was rejected as a whole, with a google.rpc.Status.

    A 400 also carries a google.rpc.BadRequest, as OTLP asks for bad data.
    """
    code = _RPC_CODES.get(http_status, _UNKNOWN)
    text = _shorten(message) or "rejected"
    if encoding is Encoding.JSON:
        answer: dict[str, object] = {"code": code, "message": text}
        if http_status == 400:
            violation = {"field": "body", "description": text}
            answer["details"] = [{"@type": _BAD_REQUEST, "fieldViolations": [violation]}]
        return orjson.dumps(answer), encoding.value
    details = []
    if http_status == 400:
        packed = Packed()
        violation = BadRequest.FieldViolation(field="body", description=text)
        packed.Pack(BadRequest(field_violations=[violation]))
        details.append(packed)
    body: bytes = Status(code=code, message=text, details=details).SerializeToString()
    return body, encoding.value


def explain(rejections: Sequence[Rejection], *, accepted: int) -> str:
    """Return one line for the sender: the first rejection in full, then every reason's count."""
    first = rejections[0]
    counts = Counter(rejection.reason for rejection in rejections)
    reasons = ", ".join(f"{reason} {count}" for reason, count in counts.items())
    total = len(rejections) + accepted
    return f"{first.reason}: {first.detail} ({len(rejections)} of {total} rejected: {reasons})"


def _shorten(message: str) -> str:
    # a message that quotes input may hold a lone surrogate, which has no UTF-8
    text = message.strip().encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


_ENCODINGS = ("Accept-Encoding", ACCEPTED_CONTENT_ENCODINGS)
_RETRY_AFTER = ("Retry-After", "1")
_CHALLENGE = ("WWW-Authenticate", 'Bearer realm="guardwave"')

_WANTED_SCOPES = wanted_scopes()

_log = logging.getLogger("guardwave.intake")


class Door:
    """Answers OTLP requests, for the pre-router and for the Flask route."""

    def __init__(
        self, intake: Intake, credentials: CredentialCache, *, limits: Limits | None = None
    ) -> None:
        self._intake = intake
        self._credentials = credentials
        self._limits = limits or Limits()

    def __call__(self, request: OtlpRequest) -> OtlpAnswer:
        """Answer one request; every error is a Status body in the request's own encoding.

        While the store is away the answer is 503 with Retry-After 1: every other 4xx or 5xx makes
        a client drop its data (OTLP/HTTP, Retryable Response Codes).
        """
        try:
            encoding = encoding_of(request.content_type)
        except UnsupportedEncoding as error:
            return _error(Encoding.JSON, error.status, str(error))
        try:
            sender = self._credentials.bearer(request.authorization)
            if sender is None:
                text = "send Authorization: Bearer with a token of role ingest"
                return _error(encoding, 401, text, _CHALLENGE)
            if sender.role is not Role.INGEST:
                text = f"this token has the role {sender.role}; telemetry needs one of role ingest"
                return _error(encoding, 403, text)
            return self._answer(request, encoding, sender)
        except WireError as error:
            return _error(encoding, error.status, str(error), *_headers_of(error))
        except StoreUnavailable as away:
            return _error(encoding, 503, str(away), _RETRY_AFTER)
        except GuardwaveError as error:
            return _error(encoding, error.status, str(error))
        except Exception as fault:  # noqa: BLE001  # ours: answered in the protocol, and logged
            _log.error("%s: the request was not taken in: %s", request.signal, trace_of(fault))
            return _error(encoding, 500, "guardwave failed on this request; its log says why")

    def _answer(self, request: OtlpRequest, encoding: Encoding, sender: Identity) -> OtlpAnswer:
        signal = Signal(request.signal)
        body = read_body(
            request.stream,
            content_length=request.content_length,
            content_encoding=request.content_encoding,
            limits=self._limits,
        )
        if signal is Signal.TRACES and not _WANTED_SCOPES.spans:
            # Spans carry content: where no dialect reads them, they are dropped undecoded.
            return _ok(*success(encoding))
        receipt = self._receive(signal, encoding, body, sender)
        if not receipt.rejected:
            return _ok(*success(encoding))
        message = explain(receipt.rejected, accepted=receipt.accepted)
        _log.info("%s: %d items rejected: %s", signal, len(receipt.rejected), _reasons(receipt))
        count = len(receipt.rejected)
        return _ok(*partial(encoding, signal, rejected=count, message=message))

    def _receive(
        self, signal: Signal, encoding: Encoding, body: bytes, sender: Identity
    ) -> Receipt:
        decoder = otlp_json if encoding is Encoding.JSON else protobuf
        limits = self._limits
        match signal:
            case Signal.LOGS:
                logs = self._logs(encoding, body)
                return self._intake.receive_logs(logs, sender=sender, body=body)
            case Signal.METRICS:
                points = decoder.decode_metrics(
                    body, limits=limits, wanted_scopes=_WANTED_SCOPES.points
                )
                return self._intake.receive_metrics(points, sender=sender, body=body)
            case Signal.TRACES:
                spans = decoder.decode_spans(
                    body, limits=limits, wanted_scopes=_WANTED_SCOPES.spans
                )
                return self._intake.receive_spans(spans, sender=sender, body=body)

    def _logs(self, encoding: Encoding, body: bytes) -> tuple[ResourceLogs, ...]:
        if encoding is Encoding.JSON:
            return otlp_json.decode_logs(
                body, limits=self._limits, wanted_scopes=_WANTED_SCOPES.logs
            )
        return protobuf.decode_logs(
            body,
            limits=self._limits,
            wanted_scopes=_WANTED_SCOPES.logs,
            layouts=self._intake.layouts(),
        )


def _reasons(receipt: Receipt) -> str:
    """Return the reasons without details, which may quote an attribute of the sender."""
    return ", ".join(sorted({rejection.reason for rejection in receipt.rejected}))


def _headers_of(error: WireError) -> tuple[tuple[str, str], ...]:
    match error:
        case UnsupportedEncoding():
            return (_ENCODINGS,)
        case TooSlow():
            return (_RETRY_AFTER,)
        case _:
            return ()


def _ok(body: bytes, content_type: str) -> OtlpAnswer:
    return OtlpAnswer(200, content_type, body)


def _error(
    encoding: Encoding, http_status: int, message: str, *headers: tuple[str, str]
) -> OtlpAnswer:
    body, content_type = status(encoding, http_status, message)
    return OtlpAnswer(http_status, content_type, body, headers)
