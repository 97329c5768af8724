"""Waves: periods of fixed assignment with their days, and starting the phase's wave again."""

from flask import Response

from guardwave.control_plane.commands.waves import start_wave
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Keyed,
    NewWave,
    NumberedPageQuery,
    NumberedPath,
    Page,
    RolloutPath,
    WaveAnswer,
    answers,
    numbers_below,
    resource,
    respond,
    wave_answer,
)
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.reducer.vocabulary import Role

blueprint = resource("waves", "Periods of fixed assignment and one version pin.")


@blueprint.get(f"{RULE}/waves", responses={200: Page[WaveAnswer]})
def list_waves(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the rollout's waves, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    rollout = load_rollout(context, path.environment, path.guard)
    shown, following = numbers_below(rollout.last_wave, before=query.cursor, limit=query.limit)
    found = (context.environments.wave(path.environment, path.guard, number) for number in shown)
    items = [wave_answer(rollout, wave) for wave in found if wave is not None]
    return respond(answers.page(items, following))


@blueprint.get(f"{RULE}/waves/<int:id>", responses={200: WaveAnswer})
def read_wave(path: NumberedPath) -> Response:
    """Read one wave: pin, roster, looks, and each day with the reason why it does not count."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    rollout = load_rollout(context, path.environment, path.guard)
    wave = context.environments.wave(path.environment, path.guard, path.id)
    if wave is None:
        raise NotFound(
            f"{path.guard} in {path.environment} has no wave {path.id}; the newest is "
            f"{rollout.last_wave}"
        )
    return respond(wave_answer(rollout, wave))


@blueprint.post(f"{RULE}/waves", responses={201: WaveAnswer, **WRITE_ERRORS})
@idempotent
def post_wave(path: RolloutPath, header: Keyed, body: NewWave) -> Response:
    """Start the phase's wave again; needs If-Match.

    In shadow any version may be pinned. Above it the pin is kept or narrowed: a version whose gates
    were not passed is 409 `step-skipped`.
    """
    actor = requests.require(Role.OPERATOR, path.environment)
    rollout, wave = start_wave(
        requests.context(),
        path.environment,
        path.guard,
        version_pin=body.version_pin,
        looks=body.looks,
        actor=actor,
        reason=body.reason,
        if_match=header.if_match,
    )
    answer = wave_answer(rollout, wave)
    return respond(answer, status=201, etag=rollout_etag(rollout), location=answer.links["self"])
