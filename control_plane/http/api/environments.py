"""Environments: the list of them, one of them, and creating one."""

from datetime import datetime

from flask import Response

from guardwave.control_plane.commands.environments import create_environment
from guardwave.control_plane.core.errors import Forbidden
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Answer,
    Condition,
    EnvironmentPath,
    IfMatch,
    NewEnvironment,
    Page,
    PageQuery,
    answers,
    environment_address,
    resource,
    respond,
    rollout_address,
    slice_after,
)
from guardwave.control_plane.queries import cards, conditions
from guardwave.control_plane.queries.page_models import TelemetryState
from guardwave.control_plane.rollouts.access import is_permitted
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.reducer.vocabulary import Role

blueprint = resource("environments", "Separate worlds of evidence.")


class LatchAnswer(Answer):
    """Holds the environment in shadow until somebody acknowledges the rollback."""

    rollback: int
    reason: str
    at: datetime
    newest_violation: int


class TelemetryAnswer(Answer):
    """Whether records arrive. Counts are since the environment was created.

    Violations without a valid assignment id, and those of untrusted producers, change nothing.
    """

    state: TelemetryState
    last_record_age_seconds: float | None
    accepted: int
    refused: int
    unvouched_violations: int
    untrusted_violations: int


class EnvironmentAnswer(Answer):
    """One environment. Its ETag moves with every change of it or of its rollouts."""

    name: str
    requires: list[str]
    guards: list[str]
    latch: LatchAnswer | None
    telemetry: TelemetryAnswer
    conditions: list[Condition]
    links: dict[str, str | dict[str, str]]


@blueprint.get("/environments", responses={200: Page[EnvironmentAnswer]})
def list_environments(query: PageQuery) -> Response:
    """List the environments that the token may read, by name."""
    who = requests.identity()
    if not is_permitted(who, Role.VIEWER, None):
        raise Forbidden(f"a token of role {who.role} reads no environments; use a viewer's")
    context = requests.context()
    names = [name for name in context.environments.names() if is_permitted(who, Role.VIEWER, name)]
    shown, following = slice_after(names, str, after=query.cursor, limit=query.limit)
    found = (context.environments.load(name) for name in shown)
    items = [environment_answer(environment) for environment in found if environment is not None]
    return respond(answers.page(items, following))


@blueprint.get("/environments/<environment>", responses={200: EnvironmentAnswer})
def read_environment(path: EnvironmentPath) -> Response:
    """Read one environment: what it requires, its latch, its telemetry."""
    requests.require(Role.VIEWER, path.environment)
    found = load_environment(requests.context(), path.environment)
    return respond(environment_answer(found), etag=environment_etag(found))


@blueprint.put(
    "/environments/<environment>",
    responses={200: EnvironmentAnswer, 201: EnvironmentAnswer, **WRITE_ERRORS},
)
def put_environment(path: EnvironmentPath, header: IfMatch, body: NewEnvironment) -> Response:
    """Create an environment with keys of its own; repeating it changes nothing."""
    actor = requests.require(Role.ADMIN, path.environment)
    context = requests.context()
    held = context.environments.load(path.environment)
    requests.honour_if_match(header.if_match, None if held is None else environment_etag(held))
    found, is_new = create_environment(
        context, path.environment, requires=body.requires, actor=actor, reason=body.reason
    )
    return respond(
        environment_answer(found),
        status=201 if is_new else 200,
        etag=environment_etag(found),
        location=environment_address(found.name) if is_new else None,
    )


def environment_answer(environment: Environment) -> EnvironmentAnswer:
    """Return the answer for an environment, without its keys: they stay in the control plane."""
    context = requests.context()
    address = environment_address(environment.name)
    policy = context.policies.of(environment.name)
    held = environment.latch
    telemetry = cards.telemetry(context, environment.name)
    return EnvironmentAnswer(
        name=environment.name,
        requires=sorted({*environment.requires, *policy.requires}),
        guards=list(environment.guards),
        latch=None
        if held is None
        else LatchAnswer(
            rollback=held.rollback,
            reason=held.reason,
            at=held.at,
            newest_violation=held.newest_violation,
        ),
        telemetry=TelemetryAnswer(
            state=telemetry.state,
            last_record_age_seconds=telemetry.last_record_age_seconds,
            accepted=telemetry.accepted,
            refused=telemetry.refused,
            unvouched_violations=telemetry.unvouched_violations,
            untrusted_violations=telemetry.untrusted_violations,
        ),
        conditions=answers.conditions((conditions.latch_condition(environment),)),
        links={
            "self": address,
            "rollbacks": f"{address}/rollbacks",
            "telemetry": f"{address}/telemetry",
            "guards": {
                guard: rollout_address(environment.name, guard) for guard in environment.guards
            },
        },
    )
