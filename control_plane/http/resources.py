"""How each resource's blueprint is made: its tag, its errors, its security."""

from flask_openapi.blueprint import APIBlueprint

from control_plane.http.answers import problems

PREFIX = "/api/v1"
SECURITY_SCHEME = "token"

# Errors that reads can answer, and those that writes can answer beside them.
READ_ERRORS = problems(400, 401, 403, 404, 406, 500, 503)
WRITE_ERRORS = problems(409, 412, 413, 415, 422, 428)


def resource(name: str, description: str) -> APIBlueprint:
    """Return the blueprint of one resource, to be nested below `/api/v1`."""
    return APIBlueprint(
        name,
        __name__,
        abp_tags=[{"name": name, "description": description}],
        abp_security=[{SECURITY_SCHEME: []}],
        abp_responses=READ_ERRORS,
        operation_id_callback=_operation_id,
    )


def _operation_id(*, bp_name: str, name: str, **_place: str) -> str:
    """Return a short id; views are named uniquely within their resource."""
    return f"{bp_name}.{name}"


def environment_address(environment: str) -> str:
    """Return the address of an environment."""
    return f"{PREFIX}/environments/{environment}"


def rollout_address(environment: str, guard: str) -> str:
    """Return the address of a rollout."""
    return f"{environment_address(environment)}/guards/{guard}"
