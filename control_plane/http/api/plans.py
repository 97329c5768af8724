"""Plans: what the next wave could prove; requested here, made by the worker."""

from datetime import datetime

import orjson
from flask import Response
from pydantic import JsonValue

from guardwave.control_plane.commands.plans import PlanRequest, request_plan
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.core.state import Plan, PlanStatus
from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Answer,
    Condition,
    MaybeKeyed,
    NewPlan,
    NumberedPageQuery,
    NumberedPath,
    Page,
    RolloutPath,
    answers,
    numbers_below,
    resource,
    respond,
    rollout_address,
)
from guardwave.control_plane.queries import conditions
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.reducer.vocabulary import Gate, Role

blueprint = resource("plans", "What a wave could prove with this environment's owners.")


class PlanSummary(Answer):
    """One plan without its numbers."""

    id: int
    guard: str
    gate: Gate
    shares_bps: list[int]
    days: list[int]
    placebo_waves: int
    looks: int
    status: PlanStatus
    requested_at: datetime
    actor: str
    planned_at: datetime | None
    sentence: str | None
    conditions: list[Condition]
    links: dict[str, str]


class PlanAnswer(PlanSummary):
    """One plan. `result` holds power, owners needed and placebo waves; null until it is done."""

    result: dict[str, JsonValue] | None


@blueprint.get(f"{RULE}/plans", responses={200: Page[PlanSummary]})
def list_plans(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the rollout's plans, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    newest = context.plans.count(path.environment, path.guard)
    shown, following = numbers_below(newest, before=query.cursor, limit=query.limit)
    found = context.plans.newest(
        path.environment, path.guard, before=shown.start + 1, at_most=query.limit
    )
    items = [_summary(path.environment, plan) for plan in found]
    return respond(answers.page(items, following))


@blueprint.get(f"{RULE}/plans/<int:id>", responses={200: PlanAnswer})
def read_plan(path: NumberedPath) -> Response:
    """Read one plan with all its numbers."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    found = context.plans.plan(path.environment, path.guard, path.id)
    if found is None:
        raise NotFound(f"{path.guard} in {path.environment} has no plan {path.id}")
    return respond(_answer(path.environment, found))


@blueprint.post(f"{RULE}/plans", responses={202: PlanAnswer, **WRITE_ERRORS})
@idempotent
def post_plan(path: RolloutPath, header: MaybeKeyed, body: NewPlan) -> Response:
    """Ask for a plan of the next wave; Location names where it will be. It changes no rollout."""
    actor = requests.require(Role.OPERATOR, path.environment)
    context = requests.context()
    rollout = load_rollout(context, path.environment, path.guard)
    requests.honour_if_match(header.if_match, rollout_etag(rollout))
    plan = request_plan(
        context,
        path.environment,
        path.guard,
        request=PlanRequest(body.shares_bps, body.days, body.placebo_waves, body.looks),
        actor=actor,
    )
    answer = _answer(path.environment, plan)
    return respond(answer, status=202, location=answer.links["self"])


def _summary(environment: str, plan: Plan) -> PlanSummary:
    address = rollout_address(environment, plan.guard)
    return PlanSummary(
        id=plan.id,
        guard=plan.guard,
        gate=plan.gate,
        shares_bps=list(plan.shares_bps),
        days=list(plan.days),
        placebo_waves=plan.placebo_waves,
        looks=plan.looks,
        status=plan.status,
        requested_at=plan.requested_at,
        actor=plan.actor.id,
        planned_at=plan.planned_at,
        sentence=plan.sentence,
        conditions=answers.conditions(conditions.of_plan(plan)),
        links={"self": f"{address}/plans/{plan.id}", "rollout": address},
    )


def _answer(environment: str, plan: Plan) -> PlanAnswer:
    result = None if plan.result is None else orjson.loads(plan.result)
    return PlanAnswer(**dict(_summary(environment, plan)), result=result)
