"""Audit: every change with actor and reason, append-only, one hash chain per environment."""

from flask import Response
from pydantic import Field

from guardwave.control_plane.core.errors import RuleViolated
from guardwave.control_plane.core.state import Action, ActorKind
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    Answer,
    AuditQuery,
    Page,
    answers,
    problems,
    resource,
    respond,
)
from guardwave.control_plane.queries.audit import AuditLine, audit_lines
from guardwave.reducer.vocabulary import Role

blueprint = resource("audit", "Who changed what, when and why.")


class AuditEvent(Answer):
    """One entry, as stored. `hash` is the SHA-256, hexadecimal, over the other members.

    They are hashed as JSON in ASCII with sorted keys and no white space; `previous` is the hash of
    the entry before.
    """

    sequence: int
    at: str = Field(json_schema_extra={"format": "date-time"})
    actor: str
    actor_kind: ActorKind
    action: Action
    target: str
    reason: str
    generation_before: int | None
    generation_after: int | None
    gate_evaluation: int | None
    request_id: str | None
    previous: str = Field(description='"" for the first entry')
    hash: str


@blueprint.get("/audit-events", responses={200: Page[AuditEvent], **problems(422)})
def list_audit_events(query: AuditQuery) -> Response:
    """List the audit entries of one environment, oldest first; `next` goes on where this ends."""
    environment = query.environment or requests.identity().environment
    requests.require(Role.VIEWER, environment)
    if environment is None:
        raise RuleViolated(
            "environment is missing; each environment has an audit chain of its own, and this "
            "token reads all of them: name one"
        )
    lines, following = audit_lines(
        requests.context(), environment, after=query.after, limit=query.limit
    )
    items = [_answer(line) for line in lines]
    return respond(answers.page(items, following, parameter="after"))


def _answer(line: AuditLine) -> AuditEvent:
    return AuditEvent.model_validate({**line.members, "hash": line.hash})
