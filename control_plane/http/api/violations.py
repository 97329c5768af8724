"""Violations: the recorded ones of a guard; a record never changes."""

from datetime import datetime

from flask import Response

from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    NumberedPageQuery,
    Page,
    ReadAnswer,
    RolloutPath,
    answers,
    resource,
    respond,
)
from guardwave.control_plane.queries.violations import recorded_violations
from guardwave.reducer.vocabulary import Invariant, Mode, Role

blueprint = resource("violations", "What must never happen, and did.")


class ViolationAnswer(ReadAnswer):
    """One violated invariant, shown by records of trusted producers with valid assignment ids.

    `id` counts over all guards of the environment; `mode` and `generation` are those of the
    assignment id, `at` is when it was recorded. Without `latches` it counts in gates and never
    holds the environment: its host numbers no transitions.
    """

    id: int
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    at: datetime
    latches: bool


@blueprint.get(f"{RULE}/violations", responses={200: Page[ViolationAnswer]})
def list_violations(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the guard's violations, newest first."""
    requests.require(Role.VIEWER, path.environment)
    shown, following = recorded_violations(
        requests.context(), path.environment, path.guard, before=query.cursor, limit=query.limit
    )
    items = [ViolationAnswer.model_validate(violation) for violation in shown]
    return respond(answers.page(items, following))
