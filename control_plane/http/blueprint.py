"""API blueprint: every resource below `/api/v1`, and the checks each request passes."""

from flask import Blueprint, Response, current_app
from flask_openapi.blueprint import APIBlueprint
from flask_openapi.openapi import OpenAPI

from guardwave.control_plane.http.api import (
    audit,
    cohorts,
    environments,
    evidence,
    gate_evaluations,
    owners,
    plans,
    promotions,
    rollbacks,
    rollouts,
    telemetry,
    tokens,
    violations,
    volume,
    waves,
)
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import PREFIX

blueprint = Blueprint("document", __name__)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Answer the OpenAPI document. It names no environment, so it needs no token."""
    assert isinstance(current_app, OpenAPI)  # the app factory makes no other
    return Response(current_app.json.dumps(current_app.api_doc), mimetype="application/json")


RESOURCES = (
    environments,
    telemetry,
    owners,
    rollouts,
    cohorts,
    waves,
    evidence,
    volume,
    violations,
    gate_evaluations,
    promotions,
    plans,
    rollbacks,
    audit,
    tokens,
)


def api_blueprint() -> APIBlueprint:
    """Return the API as one blueprint, to be registered once on one app."""
    api = APIBlueprint("api", __name__, url_prefix=PREFIX)
    api.before_request(requests.check_caller)
    api.before_request(requests.check_accept)
    api.before_request(requests.check_query)
    api.before_request(requests.check_body)
    api.after_request(requests.keep_private)
    for module in RESOURCES:
        api.register_api(module.blueprint)
    api.register_blueprint(blueprint)
    return api
