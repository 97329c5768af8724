"""OTLP over HTTP through Flask: the same door as the pre-router's, for servers without it."""

import orjson
from flask import Blueprint, Response, abort, current_app, request

# googleapis-common-protos ships no type information
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # see above

from control_plane.otlp_door import (
    SIGNALS,
    Encoding,
    OtlpAnswer,
    OtlpDoor,
    request_of,
    signal_of,
)

EXTENSION = "guardwave_otlp"

# google.rpc.Code for what can be wrong before a door is found; anything else is UNKNOWN.
_RPC_CODES = {404: 5, 405: 12, 413: 8}
_PATH_ENDS = tuple(f"/v1/{signal}" for signal in SIGNALS)


def otlp_blueprint(prefix: str = "") -> Blueprint:
    """Return the routes of the three signals, also below the prefix when there is one."""
    blueprint = Blueprint("otlp", __name__)
    for at in sorted({"", prefix}):
        blueprint.add_url_rule(
            f"{at}/v1/<signal>",
            endpoint=f"receive{at.replace('/', '_').replace('.', '_')}",
            view_func=_receive,
            methods=["POST"],
            strict_slashes=False,
        )
    return blueprint


def _receive(signal: str) -> Response:
    if signal_of(f"/v1/{signal}") is None:
        abort(404)
    door: OtlpDoor = current_app.extensions[EXTENSION]
    answer: OtlpAnswer = door(request_of(request.environ, signal))
    response = Response(answer.body, answer.status, content_type=answer.content_type)
    response.headers.extend(answer.headers)
    return response


def is_for_telemetry() -> bool:
    """Whether an exporter sent the request, be it to an address or by a method without a door."""
    is_of_api = request.method != "POST" and request.path.startswith("/api/")
    return request.path.removesuffix("/").endswith(_PATH_ENDS) and not is_of_api


def refusal(status: int, message: str) -> Response:
    """Return a google.rpc.Status in the request's own encoding, which is all an exporter reads.

    A 405 names the one method that there is (RFC 9110, 15.5.6).
    """
    answer = _refusal(status, message)
    if status == 405:
        answer.headers["Allow"] = "POST"
    return answer


def _refusal(status: int, message: str) -> Response:
    code = _RPC_CODES.get(status, 2)
    if Encoding.of(request.content_type) is Encoding.PROTOBUF:
        body: bytes = Status(code=code, message=message).SerializeToString()
        return Response(body, status, content_type=Encoding.PROTOBUF)
    said = orjson.dumps({"code": code, "message": message})
    return Response(said, status, content_type=Encoding.JSON)
