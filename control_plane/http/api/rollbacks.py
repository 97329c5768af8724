"""Rollbacks: the return to shadow, and the acknowledgement that releases a latch."""

from datetime import datetime

from flask import Response

from guardwave.control_plane.commands.rollback import acknowledge
from guardwave.control_plane.commands.rollback import roll_back as roll_back_now
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.state import ActorKind, Rollback
from guardwave.control_plane.http.api.environments import EnvironmentAnswer, environment_answer
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Answer,
    EnvironmentPath,
    MaybeKeyed,
    NewAcknowledgement,
    NewRollback,
    NumberedPageQuery,
    Page,
    RollbackPath,
    answers,
    environment_address,
    numbers_below,
    resource,
    respond,
)
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.reducer.vocabulary import Mode, Role

blueprint = resource("rollbacks", "Back to shadow, by a person or by the system.")


class LoweringAnswer(Answer):
    """What a rollback did to one guard."""

    guard: str
    before: Mode
    after: Mode
    generation: int


class RollbackAnswer(Answer):
    """One rollback: of `guards`, with what it lowered.

    `id` is null, and nothing can be read under it, in the one answer to a rollback that found
    nothing to do and no rollback of these guards before it.
    """

    id: int | None
    at: datetime
    actor: str
    is_automatic: bool
    reason: str
    changed: bool
    lowerings: list[LoweringAnswer]
    guards: list[str]
    violation: int | None
    links: dict[str, str]


class RollbackOutcome(RollbackAnswer):
    """What a rollback that was just asked for came to.

    `is_verified`: the store, read again, shows no mode above shadow. It speaks of that moment, so
    a rollback that is read later does not have it.
    """

    is_verified: bool


@blueprint.get("/environments/<environment>/rollbacks", responses={200: Page[RollbackAnswer]})
def list_rollbacks(path: EnvironmentPath, query: NumberedPageQuery) -> Response:
    """List the environment's rollbacks, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    environment = load_environment(context, path.environment)
    shown, following = numbers_below(environment.rollbacks, before=query.cursor, limit=query.limit)
    found = (context.incidents.rollback(path.environment, number) for number in shown)
    items = [_answer(path.environment, rollback) for rollback in found if rollback is not None]
    return respond(answers.page(items, following))


@blueprint.get("/environments/<environment>/rollbacks/<int:id>", responses={200: RollbackAnswer})
def read_rollback(path: RollbackPath) -> Response:
    """Read one rollback: who, why, and what it lowered."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_environment(context, path.environment)
    found = context.incidents.rollback(path.environment, path.id)
    if found is None:
        raise NotFound(f"{path.environment} has no rollback {path.id}")
    return respond(_answer(path.environment, found))


@blueprint.post(
    "/environments/<environment>/rollbacks",
    responses={200: RollbackOutcome, 201: RollbackOutcome},
)
def roll_back(path: EnvironmentPath, body: NewRollback) -> Response:
    """Return one guard, or all of the environment, to shadow, from any phase, at any generation.

    Neither If-Match nor Idempotency-Key nor Content-Type is looked at: nothing but a missing
    reason or right stands in the way. Pending promotions of these guards are refused with it, and
    each guard that is not off begins a new shadow wave. 200 with `changed: false` says that nothing
    was left to do: no promotion waited, and each guard was off, held by a latch, or had begun anew
    on this day.
    """
    actor = requests.require(Role.OPERATOR, path.environment)
    record = roll_back_now(
        requests.context(), path.environment, actor=actor, reason=body.reason, guard=body.guard
    )
    shown = _answer(path.environment, record)
    answer = RollbackOutcome(**dict(shown), is_verified=record.is_verified)
    if not record.changed:
        return respond(answer)
    return respond(answer, status=201, location=answer.links["self"])


@blueprint.post(
    "/environments/<environment>/rollbacks/<int:id>/acknowledgement",
    responses={200: EnvironmentAnswer, **WRITE_ERRORS},
)
@idempotent
def acknowledge_rollback(
    path: RollbackPath, header: MaybeKeyed, body: NewAcknowledgement
) -> Response:
    """Release the latch, naming the newest violation that was recorded; needs If-Match.

    A latch records 1,000 violations; later ones change nothing until it is released. Each guard
    that is not off begins a new shadow wave with it, so that no day under the latch counts.
    """
    actor = requests.require(Role.OPERATOR, path.environment)
    environment = acknowledge(
        requests.context(),
        path.environment,
        path.id,
        last_violation=body.last_violation,
        actor=actor,
        reason=body.reason,
        if_match=header.if_match,
    )
    return respond(environment_answer(environment), etag=environment_etag(environment))


def _answer(environment: str, rollback: Rollback) -> RollbackAnswer:
    address = environment_address(environment)
    itself = {"self": f"{address}/rollbacks/{rollback.id}"} if rollback.id else {}
    return RollbackAnswer(
        id=rollback.id or None,
        at=rollback.at,
        actor=rollback.actor.id,
        is_automatic=rollback.actor.kind is ActorKind.SYSTEM,
        reason=rollback.reason,
        changed=rollback.changed,
        lowerings=[
            LoweringAnswer(
                guard=lowering.guard,
                before=lowering.before,
                after=lowering.after,
                generation=lowering.generation,
            )
            for lowering in rollback.lowerings
        ],
        guards=list(rollback.guards),
        violation=rollback.violation,
        links={**itself, "environment": address},
    )
