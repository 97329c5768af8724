"""OTLP over HTTP through Flask: the same door as the pre-router's, for servers without it."""

from flask import Blueprint, Response, abort, current_app, request

from control_plane.otlp_door import OtlpAnswer, OtlpDoor, request_of, signal_of

EXTENSION = "guardwave_otlp"


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
