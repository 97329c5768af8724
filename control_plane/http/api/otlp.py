"""OTLP over HTTP: the pre-router's door as a Flask route, for servers without a pre-router."""

from flask import Blueprint, Response, abort, current_app, request

from guardwave.control_plane.core.otlp_request import OtlpAnswer, OtlpDoor, request_of, signal_of

EXTENSION = "guardwave_otlp"


def otlp_blueprint(prefix: str = "") -> Blueprint:
    """Return the routes of the three signals, also below the prefix when there is one."""
    blueprint = Blueprint("otlp", __name__)
    for parent in sorted({"", prefix}):
        blueprint.add_url_rule(
            f"{parent}/v1/<signal>",
            endpoint=f"receive{parent.replace('/', '_').replace('.', '_')}",
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
