"""The control plane's API: every resource below `/api/v1`, and what all of them ask for."""

from flask_openapi.blueprint import APIBlueprint

from control_plane.http import (
    audit,
    cohorts,
    document,
    environments,
    evidence,
    gate_evaluations,
    owners,
    plans,
    promotions,
    requests,
    rollbacks,
    rollouts,
    telemetry,
    tokens,
    violations,
    volume,
    waves,
)
from control_plane.http.resources import PREFIX

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
    for each in RESOURCES:
        api.register_api(each.blueprint)
    api.register_blueprint(document.blueprint)
    return api
