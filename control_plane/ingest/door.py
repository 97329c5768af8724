"""The OTLP door: one request in, one answer in its own encoding out."""

import logging

from control_plane.access import Identity
from control_plane.data_plane.credential_cache import CredentialCache
from control_plane.errors import GuardwaveError, StoreUnavailable, trace_of
from control_plane.ingest import otlp_json, otlp_proto
from control_plane.ingest.answers import Signal, explain, partial, status, success
from control_plane.ingest.dialects.registry import wanted
from control_plane.ingest.intake import Intake, Receipt
from control_plane.ingest.otlp import ResourceLogs
from control_plane.ingest.wire import (
    ACCEPTED_CONTENT_ENCODINGS,
    TooSlow,
    UnsupportedEncoding,
    WireError,
    encoding_of,
    read_body,
)
from control_plane.otlp_door import Encoding, Limits, OtlpAnswer, OtlpRequest
from reducer.vocabulary import Role

_ENCODINGS = ("Accept-Encoding", ACCEPTED_CONTENT_ENCODINGS)
_RETRY_AFTER = ("Retry-After", "1")
_CHALLENGE = ("WWW-Authenticate", 'Bearer realm="guardwave"')

_WANTED = wanted()

_log = logging.getLogger("guardwave.intake")


class Door:
    """Answers OTLP requests; called by the pre-router and by the Flask route alike."""

    def __init__(
        self, intake: Intake, credentials: CredentialCache, *, limits: Limits | None = None
    ) -> None:
        self._intake = intake
        self._credentials = credentials
        self._limits = limits or Limits()

    def __call__(self, request: OtlpRequest) -> OtlpAnswer:
        """Answer one request; every refusal is a Status body in the request's own encoding.

        What cannot be answered because the store is away is 503 with Retry-After 1: every other
        4xx or 5xx makes a client drop its data (OTLP/HTTP, Retryable Response Codes).
        """
        try:
            encoding = encoding_of(request.content_type)
        except UnsupportedEncoding as refusal:
            return _refused(Encoding.JSON, refusal.status, str(refusal))
        try:
            sender = self._credentials.bearer(request.authorization)
            if sender is None:
                text = "send Authorization: Bearer with a token of role ingest"
                return _refused(encoding, 401, text, _CHALLENGE)
            if sender.role is not Role.INGEST:
                text = f"this token has the role {sender.role}; telemetry needs one of role ingest"
                return _refused(encoding, 403, text)
            return self._answer(request, encoding, sender)
        except WireError as refusal:
            return _refused(encoding, refusal.status, str(refusal), *_headers_of(refusal))
        except StoreUnavailable as away:
            return _refused(encoding, 503, str(away), _RETRY_AFTER)
        except GuardwaveError as refusal:
            return _refused(encoding, refusal.status, str(refusal))
        except Exception as fault:  # noqa: BLE001  # ours: answered in the protocol, and logged
            _log.error("%s: the request was not taken in: %s", request.signal, trace_of(fault))
            return _refused(encoding, 500, "guardwave failed on this request; its log says why")

    def _answer(self, request: OtlpRequest, encoding: Encoding, sender: Identity) -> OtlpAnswer:
        signal = Signal(request.signal)
        body = read_body(
            request.stream,
            content_length=request.content_length,
            content_encoding=request.content_encoding,
            limits=self._limits,
        )
        if signal is Signal.TRACES and not _WANTED.spans:
            # Spans carry content: where no dialect reads them, they are forgotten undecoded.
            return _answered(*success(encoding))
        receipt = self._take(signal, encoding, body, sender)
        if not receipt.rejected:
            return _answered(*success(encoding))
        message = explain(receipt.rejected, accepted=receipt.accepted)
        _log.info("%s: %d items rejected: %s", signal, len(receipt.rejected), _reasons(receipt))
        count = len(receipt.rejected)
        return _answered(*partial(encoding, signal, rejected=count, message=message))

    def _take(self, signal: Signal, encoding: Encoding, body: bytes, sender: Identity) -> Receipt:
        decoder = otlp_json if encoding is Encoding.JSON else otlp_proto
        limits = self._limits
        match signal:
            case Signal.LOGS:
                logs = self._logs(encoding, body)
                return self._intake.receive_logs(logs, sender=sender, body=body)
            case Signal.METRICS:
                points = decoder.decode_metrics(body, limits=limits, wanted=_WANTED.points)
                return self._intake.receive_metrics(points, sender=sender, body=body)
            case Signal.TRACES:
                spans = decoder.decode_spans(body, limits=limits, wanted=_WANTED.spans)
                return self._intake.receive_spans(spans, sender=sender, body=body)

    def _logs(self, encoding: Encoding, body: bytes) -> tuple[ResourceLogs, ...]:
        if encoding is Encoding.JSON:
            return otlp_json.decode_logs(body, limits=self._limits, wanted=_WANTED.logs)
        return otlp_proto.decode_logs(
            body, limits=self._limits, wanted=_WANTED.logs, known=self._intake.known()
        )


def _reasons(receipt: Receipt) -> str:
    """Name the reasons alone: details may quote what a sender put into an attribute."""
    return ", ".join(sorted({each.reason for each in receipt.rejected}))


def _headers_of(refusal: WireError) -> tuple[tuple[str, str], ...]:
    match refusal:
        case UnsupportedEncoding():
            return (_ENCODINGS,)
        case TooSlow():
            return (_RETRY_AFTER,)
        case _:
            return ()


def _answered(body: bytes, content_type: str) -> OtlpAnswer:
    return OtlpAnswer(200, content_type, body)


def _refused(
    encoding: Encoding, http_status: int, message: str, *headers: tuple[str, str]
) -> OtlpAnswer:
    body, content_type = status(encoding, http_status, message)
    return OtlpAnswer(http_status, content_type, body, headers)
