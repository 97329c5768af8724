"""Cohorts: their modes, and setting one in a single call."""

from flask import Response

from guardwave.control_plane.commands.cohorts import CohortAnswer as Outcome
from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Answer,
    CohortAnswer,
    CohortBody,
    CohortPath,
    IfMatch,
    Page,
    PageQuery,
    PromotionAnswer,
    RolloutAnswer,
    RolloutPath,
    WriteQuery,
    answers,
    cohort_answers,
    promotion_answer,
    resource,
    respond,
    rollout_answer,
    slice_after,
)
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.reducer.vocabulary import Role

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
    shown, following = slice_after(
        found, lambda answer: str(answer.cohort), after=query.cursor, limit=query.limit
    )
    return respond(answers.page(list(shown), following), etag=rollout_etag(rollout))


@blueprint.get(f"{RULE}/cohorts/<cohort>", responses={200: CohortAnswer})
def read_cohort(path: CohortPath) -> Response:
    """Read one cohort of the rollout's phase."""
    requests.require(Role.VIEWER, path.environment)
    rollout = load_rollout(requests.context(), path.environment, path.guard)
    found = cohort_answers(rollout)
    wanted = next((answer for answer in found if answer.cohort == path.cohort), None)
    if wanted is None:
        names = ", ".join(answer.cohort for answer in found)
        raise NotFound(f"in phase {rollout.phase} there is no cohort {path.cohort}, only {names}")
    return respond(wanted, etag=rollout_etag(rollout))


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
