"""Gate evaluations: requested here, made by the worker, immutable once done."""

from flask import Response, request

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.core.etags import rollout_etag
from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    BundleAnswer,
    EvaluationAnswer,
    EvaluationSummary,
    Keyed,
    NewEvaluation,
    NumberedPageQuery,
    NumberedPath,
    Page,
    RolloutPath,
    answers,
    evaluation_answer,
    evaluation_summary,
    numbers_below,
    resource,
    respond,
)
from guardwave.control_plane.rollouts.loading import load_rollout
from guardwave.reducer.vocabulary import Role

blueprint = resource("gate-evaluations", "The checks between a phase and the next, evaluated.")


@blueprint.get(f"{RULE}/gate-evaluations", responses={200: Page[EvaluationSummary]})
def list_evaluations(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the rollout's gate evaluations, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    newest = context.gates.evaluation_count(path.environment, path.guard)
    shown, following = numbers_below(newest, before=query.cursor, limit=query.limit)
    found = context.gates.evaluations(
        path.environment, path.guard, before=shown.start + 1, at_most=query.limit
    )
    items = [evaluation_summary(path.environment, evaluation) for evaluation in found]
    return respond(answers.page(items, following))


@blueprint.get(f"{RULE}/gate-evaluations/<int:id>", responses={200: EvaluationAnswer})
def read_evaluation(path: NumberedPath) -> Response:
    """Read one gate evaluation with its whole report."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    found = context.gates.evaluation(path.environment, path.guard, path.id)
    if found is None:
        raise NotFound(f"{path.guard} in {path.environment} has no gate evaluation {path.id}")
    return respond(evaluation_answer(path.environment, found))


@blueprint.get(f"{RULE}/gate-evaluations/<int:id>/bundle", responses={200: BundleAnswer})
def read_bundle(path: NumberedPath) -> Response:
    """Read the evidence bundle of one gate evaluation, from which `guardwave replay` judges it.

    It is kept and sent compressed; a client that takes no gzip gets it as it would be without.
    """
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    place = (path.environment, path.guard, path.id)
    if context.gates.bundle_size(*place) == 0:
        raise NotFound(
            f"gate evaluation {path.id} of {path.guard} in {path.environment} has no evidence "
            "bundle; one that came to a verdict has"
        )
    parts = context.gates.bundle_parts(*place)
    is_packed = request.accept_encodings["gzip"] > 0
    response = Response(parts if is_packed else answers.gunzip(parts), mimetype="application/json")
    response.headers["Vary"] = "Accept-Encoding"
    if is_packed:
        response.headers["Content-Encoding"] = "gzip"
    return response


@blueprint.post(f"{RULE}/gate-evaluations", responses={202: EvaluationAnswer, **WRITE_ERRORS})
@idempotent
def post_evaluation(path: RolloutPath, header: Keyed, body: NewEvaluation) -> Response:
    """Ask for an evaluation of the phase's gate; Location names where its result will be."""
    actor = requests.require(Role.OPERATOR, path.environment)
    context = requests.context()
    rollout = load_rollout(context, path.environment, path.guard)
    requests.honour_if_match(header.if_match, rollout_etag(rollout))
    evaluation = request_evaluation(
        context, path.environment, path.guard, gate=body.gate, actor=actor
    )
    answer = evaluation_answer(path.environment, evaluation)
    return respond(answer, status=202, location=answer.links["self"])
