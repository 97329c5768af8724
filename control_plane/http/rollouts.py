"""Rollouts: one guard in one environment."""

from flask import Response

from control_plane.commands.changes import load_environment, load_rollout
from control_plane.commands.environments import create_rollout
from control_plane.etags import rollout_etag
from control_plane.http import requests
from control_plane.http.answers import respond
from control_plane.http.bodies import NewRollout
from control_plane.http.parameters import IfMatch, RolloutPath
from control_plane.http.resources import WRITE_ERRORS, resource, rollout_address
from control_plane.http.rollout_answers import RolloutAnswer, rollout_answer
from reducer.vocabulary import Role

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
