"""Violations of invariants: recorded once each, and never changed."""

from datetime import datetime

from flask import Response

from control_plane.http import answers, requests
from control_plane.http.answers import Page, ReadAnswer, respond
from control_plane.http.parameters import NumberedPageQuery, RolloutPath
from control_plane.http.resources import resource
from control_plane.http.rollouts import RULE
from control_plane.queries.violations import recorded_violations
from reducer.vocabulary import Invariant, Mode, Role

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
    return respond(
        answers.page([ViolationAnswer.model_validate(each) for each in shown], following)
    )
