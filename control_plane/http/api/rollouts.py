"""Rollouts: reading and creating that of one guard in one environment."""

from flask import Response

from guardwave.control_plane.commands.environments import create_rollout
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.http.middleware import requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    IfMatch,
    NewRollout,
    RolloutAnswer,
    RolloutPath,
    resource,
    respond,
    rollout_address,
    rollout_answer,
)
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.reducer.vocabulary import Role

blueprint = resource("rollouts", "A guard in an environment: phase, cohorts, wave, generation.")

RULE = "/environments/<environment>/guards/<guard>"


@blueprint.get(RULE, responses={200: RolloutAnswer})
def read_rollout(path: RolloutPath) -> Response:
    """Read one rollout: phase, cohorts, wave, and what the next step waits for."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    environment = load_environment(context, path.environment)
    rollout = load_rollout(context, path.environment, path.guard)
    return respond(rollout_answer(environment, rollout), etag=rollout_etag(rollout))


@blueprint.put(RULE, responses={200: RolloutAnswer, 201: RolloutAnswer, **WRITE_ERRORS})
def put_rollout(path: RolloutPath, header: IfMatch, body: NewRollout) -> Response:
    """Create a rollout in shadow, its shadow wave open; repeating it changes nothing."""
    actor = requests.require(Role.OPERATOR, path.environment)
    context = requests.context()
    held = context.environments.rollout(path.environment, path.guard)
    requests.honour_if_match(header.if_match, None if held is None else rollout_etag(held))
    rollout, is_new = create_rollout(
        context,
        path.environment,
        path.guard,
        version_pin=body.version_pin,
        actor=actor,
        reason=body.reason,
        evidence_source=body.evidence_source,
    )
    environment = load_environment(context, path.environment)
    return respond(
        rollout_answer(environment, rollout),
        status=201 if is_new else 200,
        etag=rollout_etag(rollout),
        location=rollout_address(path.environment, path.guard) if is_new else None,
    )
