"""Assignments over HTTP: the route, and what it shares with the pre-router in front of Flask."""

from collections.abc import Mapping

from flask import Response, current_app, request
from flask_openapi.blueprint import APIBlueprint
from pydantic import Field, RootModel

from control_plane.data_plane import EXTENSION, DataPlane
from control_plane.errors import GuardwaveError
from control_plane.http.answers import problems
from control_plane.http.parameters import Parameters, RolloutPath
from control_plane.http.resources import PREFIX, SECURITY_SCHEME
from control_plane.queries.assignment_questions import OWNER_PATTERN, AssignmentRequest
from control_plane.queries.assignment_views import AssignmentView
from control_plane.queries.assignments import (
    AssignmentAnswer,
    answer_assignment,
    check_caller,
)

# Where the pre-router leaves a refusal; deciding again could wait for the store a second time.
REFUSAL = "guardwave.refusal"

# Not below the API's own blueprint: that one asks the store who calls, on every request.
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
    query: AssignmentQuery,  # noqa: ARG001  # checked and described; read again as the pre-router does
) -> Response:
    """Read an owner's assignment. Read-only, and it explains itself.

    Keep the answer for `ttl_s` at most, send its ETag with the next question, and echo
    `assignment_id` in telemetry.
    """
    asked = assignment_request(request.environ, path.environment, path.guard, path.owner)
    answer = answer_assignment(plane(), asked)
    return Response(
        b"" if answer.is_unchanged else answer.body, status_of(answer), headers_of(answer)
    )


@blueprint.before_request
def refuse() -> None:
    """Say who may ask before saying what is wrong with the question.

    Raises:
        GuardwaveError: what the pre-router was refused with, or why the caller may not ask.
    """
    refusal = request.environ.get(REFUSAL)
    if isinstance(refusal, GuardwaveError):
        raise refusal
    named = request.view_args or {}
    plane().refresher.ensure_running()
    check_caller(plane(), request.headers.get("Authorization"), named.get("environment", ""))


def assignment_request(
    environ: Mapping[str, str], environment: str, guard: str, owner: str
) -> AssignmentRequest:
    """Return the question that a WSGI request asks."""
    return AssignmentRequest(
        environment,
        guard,
        owner,
        query=environ.get("QUERY_STRING", ""),
        authorization=environ.get("HTTP_AUTHORIZATION"),
        if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
    )


def status_of(answer: AssignmentAnswer) -> int:
    """Return 304 when the asker holds the answer already, else 200."""
    return 304 if answer.is_unchanged else 200


def headers_of(answer: AssignmentAnswer) -> list[tuple[str, str]]:
    """Return the headers; no cache on the way may hold an answer back."""
    headers = [
        ("ETag", answer.etag),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    if not answer.is_unchanged:
        headers.append(("Content-Type", "application/json"))
        headers.append(("Content-Length", str(len(answer.body))))
    return headers
