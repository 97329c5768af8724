"""Promotions: one step up, requested here on one gate evaluation, decided by the worker."""

from flask import Response

from guardwave.control_plane.commands.promotions import request_promotion
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Keyed,
    NewPromotion,
    NumberedPageQuery,
    NumberedPath,
    Page,
    PromotionAnswer,
    RolloutPath,
    WriteQuery,
    answers,
    promotion_answer,
    resource,
    respond,
)
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.reducer.vocabulary import Role

blueprint = resource("promotions", "Steps up the ladder, by a person, on evidence.")


@blueprint.get(f"{RULE}/promotions", responses={200: Page[PromotionAnswer]})
def list_promotions(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the rollout's promotions, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    found = context.gates.promotions(
        path.environment, path.guard, before=query.cursor, at_most=query.limit
    )
    items = [promotion_answer(path.environment, promotion) for promotion in found]
    following = str(found[-1].id) if found and found[-1].id > 1 else None
    return respond(answers.page(items, following))


@blueprint.get(f"{RULE}/promotions/<int:id>", responses={200: PromotionAnswer})
def read_promotion(path: NumberedPath) -> Response:
    """Read one promotion: pending, done, or refused with the reason."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    found = context.gates.promotion(path.environment, path.guard, path.id)
    if found is None:
        raise NotFound(f"{path.guard} in {path.environment} has no promotion {path.id}")
    return respond(promotion_answer(path.environment, found))


@blueprint.post(
    f"{RULE}/promotions",
    responses={200: PromotionAnswer, 202: PromotionAnswer, **WRITE_ERRORS},
)
@idempotent
def post_promotion(
    path: RolloutPath, query: WriteQuery, header: Keyed, body: NewPromotion
) -> Response:
    """Ask for one step up; Location names where its outcome will be."""
    actor = requests.require(Role.OPERATOR, path.environment)
    promotion = request_promotion(
        requests.context(),
        path.environment,
        path.guard,
        request=PromotionRequest(body.gate_evaluation, body.digest, body.to, body.share_bps),
        actor=actor,
        reason=body.reason,
        if_match=header.if_match,
        is_dry_run=query.dry_run,
    )
    answer = promotion_answer(path.environment, promotion)
    if query.dry_run:
        return respond(answer)
    return respond(answer, status=202, location=answer.links["self"])
