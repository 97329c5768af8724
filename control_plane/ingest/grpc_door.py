"""OTLP over gRPC: each Export call is answered by the door of OTLP over HTTP."""

import io
from typing import NoReturn

import grpc

# googleapis-common-protos ships no type information
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # see above
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # see above

from guardwave.control_plane.core.otlp_request import (
    Encoding,
    Limits,
    OtlpAnswer,
    OtlpDoor,
    OtlpRequest,
)

# opentelemetry-proto, collector/{logs,metrics,trace}/v1: one service for each signal.
SIGNAL_OF_METHOD = {
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
}
CONNECTION_AGE_S = 300.0
# As long as a request over HTTP may take; exporters give one up after 10 s.
CONNECTION_GRACE_S = 15.0
STATUS_DETAILS = "grpc-status-details-bin"
# The exporter of the Python SDK looks here, and not into the details that OTLP names.
RETRY_INFO = "google.rpc.retryinfo-bin"

_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def channel_options(limits: Limits) -> tuple[tuple[str, int], ...]:
    """Return the options of a server that rejects messages over the limits, inflated ones too.

    gRPC itself answers such a message with RESOURCE_EXHAUSTED and without RetryInfo, which is final
    for OTLP clients, and stops inflating at the limit. SO_REUSEPORT is off: two servers on one port
    would silently get half of the telemetry each. Connections end after an age, which clients do
    not notice, so that a sender that never finishes a message does not keep its thread.
    """
    return (
        ("grpc.max_receive_message_length", limits.inflated_bytes),
        ("grpc.so_reuseport", 0),
        ("grpc.max_connection_age_ms", int(CONNECTION_AGE_S * 1000)),
        ("grpc.max_connection_age_grace_ms", int(CONNECTION_GRACE_S * 1000)),
    )


class GrpcDoor(grpc.GenericRpcHandler):
    """The three services of OTLP/gRPC; every other method is UNIMPLEMENTED."""

    def __init__(self, door: OtlpDoor) -> None:
        self._door = door

    def service(
        self, call: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        """Return the handler of this method, for gRPC's server; messages stay bytes."""
        signal = SIGNAL_OF_METHOD.get(call.method)
        if signal is None:
            return None

        def export(message: bytes, context: grpc.ServicerContext) -> bytes:
            answer = self._door(_request(signal, message, context))
            if answer.status != 200:
                _abort(answer, context)
            return answer.body

        return grpc.unary_unary_rpc_method_handler(export)


def _request(signal: str, message: bytes, context: grpc.ServicerContext) -> OtlpRequest:
    metadata = dict(context.invocation_metadata())
    authorization = metadata.get("authorization")
    return OtlpRequest(
        signal=signal,
        content_type=Encoding.PROTOBUF,
        # Inflated by gRPC.
        content_encoding=None,
        content_length=len(message),
        stream=io.BytesIO(message),
        authorization=authorization if isinstance(authorization, str) else None,
    )


def _abort(answer: OtlpAnswer, context: grpc.ServicerContext) -> NoReturn:
    """End the call with the google.rpc.Status that the HTTP answer holds.

    Over gRPC a client repeats RESOURCE_EXHAUSTED only with RetryInfo (OTLP/gRPC, Failures), so
    RetryInfo is sent where HTTP answers with Retry-After.
    """
    status = Status.FromString(answer.body)
    seconds = dict(answer.headers).get("Retry-After")
    trailing: list[tuple[str, bytes]] = []
    if seconds is not None:
        retry = RetryInfo()
        retry.retry_delay.seconds = int(seconds)
        status.details.add().Pack(retry)
        trailing.append((RETRY_INFO, retry.SerializeToString()))
    trailing.append((STATUS_DETAILS, status.SerializeToString()))
    context.set_trailing_metadata(tuple(trailing))
    context.abort(_CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message)
