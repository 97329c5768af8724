"""Cohorts: who gets which mode, and setting it in one call."""

from flask import Response

from control_plane.commands.changes import load_environment, load_rollout
from control_plane.commands.cohorts import CohortAnswer as Outcome
from control_plane.commands.cohorts import CohortChange, set_cohort_mode
from control_plane.errors import NotFound
from control_plane.etags import rollout_etag
from control_plane.http import answers, requests
from control_plane.http.answers import Answer, Page, respond
from control_plane.http.bodies import CohortBody
from control_plane.http.gate_answers import PromotionAnswer, promotion_answer
from control_plane.http.parameters import (
    CohortPath,
    IfMatch,
    PageQuery,
    RolloutPath,
    WriteQuery,
)
from control_plane.http.resources import WRITE_ERRORS, resource
from control_plane.http.rollout_answers import (
    CohortAnswer,
    RolloutAnswer,
    cohort_answers,
    rollout_answer,
)
from control_plane.http.rollouts import RULE
from control_plane.queries.cursors import part
from reducer.vocabulary import Role

blueprint = resource("cohorts", "Groups of owners that get the same mode.")


class CohortChanged(Answer):
    """What a call did, or with `dry_run` would do. A promotion is decided by the worker."""

    changed: bool
    dry_run: bool
    rollout: RolloutAnswer
    promotion: PromotionAnswer | None


@blueprint.get(f"{RULE}/cohorts", responses={200: Page[CohortAnswer]})
def list_cohorts(path: RolloutPath, query: PageQuery) -> Response:
    """List the cohorts of the rollout's phase, each with its mode."""
    requests.require(Role.VIEWER, path.environment)
    rollout = load_rollout(requests.context(), path.environment, path.guard)
    found = cohort_answers(rollout)
    shown, following = part(
        found, lambda each: str(each.cohort), after=query.cursor, limit=query.limit
    )
    return respond(answers.page(list(shown), following), etag=rollout_etag(rollout))


@blueprint.get(f"{RULE}/cohorts/<cohort>", responses={200: CohortAnswer})
def read_cohort(path: CohortPath) -> Response:
    """Read one cohort of the rollout's phase."""
    requests.require(Role.VIEWER, path.environment)
    rollout = load_rollout(requests.context(), path.environment, path.guard)
    found = cohort_answers(rollout)
    named = next((each for each in found if each.cohort == path.cohort), None)
    if named is None:
        there = ", ".join(each.cohort for each in found)
        raise NotFound(f"in phase {rollout.phase} there is no cohort {path.cohort}, only {there}")
    return respond(named, etag=rollout_etag(rollout))


@blueprint.put(
    f"{RULE}/cohorts/<cohort>",
    responses={200: CohortChanged, 202: CohortChanged, **WRITE_ERRORS},
)
def put_cohort(path: CohortPath, query: WriteQuery, header: IfMatch, body: CohortBody) -> Response:
    """Set a cohort's mode: lower at once; higher only as a promotion that names an evaluation.

    With `gate_evaluation` and `digest` the answer is 202 and Location names the promotion.
    """
    actor = requests.require(Role.OPERATOR, path.environment)
    outcome = set_cohort_mode(
        requests.context(),
        path.environment,
        path.guard,
        path.cohort,
        change=CohortChange(body.mode, body.share_bps, body.gate_evaluation, body.digest),
        actor=actor,
        reason=body.reason,
        if_match=header.if_match,
        is_dry_run=query.dry_run,
    )
    return _answer(path, outcome, is_dry_run=query.dry_run)


def _answer(path: CohortPath, outcome: Outcome, *, is_dry_run: bool) -> Response:
    environment = load_environment(requests.context(), path.environment)
    promotion = (
        None if outcome.promotion is None else promotion_answer(path.environment, outcome.promotion)
    )
    is_pending = promotion is not None and not is_dry_run
    changed = CohortChanged(
        changed=outcome.changed,
        dry_run=is_dry_run,
        rollout=rollout_answer(environment, outcome.rollout),
        promotion=promotion,
    )
    return respond(
        changed,
        status=202 if is_pending else 200,
        etag=None if is_dry_run else rollout_etag(outcome.rollout),
        location=promotion.links["self"] if promotion is not None and is_pending else None,
    )
