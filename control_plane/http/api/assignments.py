"""Assignments: the route, and the functions it shares with the pre-router before Flask."""

from collections.abc import Mapping

from flask import Response, current_app, request
from flask_openapi.blueprint import APIBlueprint
from pydantic import Field, RootModel

from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.data_plane import EXTENSION, DataPlane
from guardwave.control_plane.data_plane.assignment_request import OWNER_PATTERN, AssignmentRequest
from guardwave.control_plane.data_plane.assignments import (
    AssignmentAnswer,
    AssignmentView,
    answer_assignment,
    check_caller,
)
from guardwave.control_plane.http.schema import (
    PREFIX,
    SECURITY_SCHEME,
    Parameters,
    RolloutPath,
    problems,
)

# The pre-router's error, kept in the WSGI environment: deciding again could wait for the store.
PREROUTER_ERROR = "guardwave.refusal"

# Not below the API's blueprint, which asks the store for the caller on every request.
blueprint = APIBlueprint(
    "assignments",
    __name__,
    url_prefix=PREFIX,
    abp_tags=[{"name": "assignments", "description": "Which mode an owner has now, and why."}],
    abp_security=[{SECURITY_SCHEME: []}],
    abp_responses=problems(400, 401, 403, 404, 503),
)


class OwnerAssignmentPath(RolloutPath):
    """An owner under a rollout. What is refused of it is not repeated: the name says so."""

    owner: str = Field(pattern=f"^{OWNER_PATTERN}$")


class AssignmentQuery(Parameters):
    """What the host says of itself. Without a version the answer is shadow at most."""

    version: str | None = Field(
        None, alias="service.version", description="The host's service.version."
    )
    route: str | None = Field(
        None,
        description="Where the prompt came from: interactive_foreground (default), cron, "
        "notification, background or channel. Any but the first, and unknown ones, get no more "
        "than shadow.",
    )


class AssignmentDocument(RootModel[AssignmentView]):
    """Which mode the owner has now, and why."""


def plane() -> DataPlane:
    """Return this worker's data plane."""
    wired: DataPlane = current_app.extensions[EXTENSION]
    return wired


@blueprint.get(
    "/environments/<environment>/guards/<guard>/assignments/<owner>",
    operation_id="assignments.read_assignment",
    responses={200: AssignmentDocument},
)
def read_assignment(
    path: OwnerAssignmentPath,
    query: AssignmentQuery,  # noqa: ARG001  # checked here, read from the WSGI environment as the pre-router does
) -> Response:
    """Read an owner's assignment. Read-only, and it explains itself.

    Keep the answer for `ttl_s` at most, send its ETag with the next question, and echo
    `assignment_id` in telemetry.
    """
    question = assignment_request(request.environ, path.environment, path.guard, path.owner)
    answer = answer_assignment(plane(), question)
    return Response(
        b"" if answer.is_unchanged else answer.body, status_of(answer), headers_of(answer)
    )


@blueprint.before_request
def check_request() -> None:
    """Check the caller before the view checks the question.

    Raises:
        GuardwaveError: the pre-router's error, or the caller may not ask.
    """
    error = request.environ.get(PREROUTER_ERROR)
    if isinstance(error, GuardwaveError):
        raise error
    place = request.view_args or {}
    plane().refresher.ensure_running()
    check_caller(plane(), request.headers.get("Authorization"), place.get("environment", ""))


def assignment_request(
    environ: Mapping[str, str], environment: str, guard: str, owner: str
) -> AssignmentRequest:
    """Return the assignment request that is in a WSGI request."""
    return AssignmentRequest(
        environment,
        guard,
        owner,
        query=environ.get("QUERY_STRING", ""),
        authorization=environ.get("HTTP_AUTHORIZATION"),
        if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
    )


def status_of(answer: AssignmentAnswer) -> int:
    """Return 304 when the host already has this answer, else 200."""
    return 304 if answer.is_unchanged else 200


def headers_of(answer: AssignmentAnswer) -> list[tuple[str, str]]:
    """Return the headers, which forbid caches on the way to store the answer."""
    headers = [
        ("ETag", answer.etag),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    if not answer.is_unchanged:
        headers.append(("Content-Type", "application/json"))
        headers.append(("Content-Length", str(len(answer.body))))
    return headers
