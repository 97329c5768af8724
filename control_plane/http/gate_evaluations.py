"""Gate evaluations: asked for here, made by the worker, immutable once done."""

from flask import Response, request

from control_plane.commands.changes import load_rollout
from control_plane.commands.evaluations import request_evaluation
from control_plane.errors import NotFound
from control_plane.etags import rollout_etag
from control_plane.http import answers, requests
from control_plane.http.answers import Page, respond
from control_plane.http.bodies import NewEvaluation
from control_plane.http.gate_answers import (
    BundleAnswer,
    EvaluationAnswer,
    EvaluationSummary,
    evaluation_answer,
    evaluation_summary,
)
from control_plane.http.idempotency import idempotent
from control_plane.http.parameters import (
    Keyed,
    NumberedPageQuery,
    NumberedPath,
    RolloutPath,
)
from control_plane.http.resources import WRITE_ERRORS, resource
from control_plane.http.rollouts import RULE
from control_plane.queries.cursors import numbers
from reducer.vocabulary import Role

blueprint = resource("gate-evaluations", "The checks between a phase and the next, evaluated.")


@blueprint.get(f"{RULE}/gate-evaluations", responses={200: Page[EvaluationSummary]})
def list_evaluations(path: RolloutPath, query: NumberedPageQuery) -> Response:
    """List the rollout's gate evaluations, newest first."""
    requests.require(Role.VIEWER, path.environment)
    context = requests.context()
    load_rollout(context, path.environment, path.guard)
    newest = context.gates.evaluation_count(path.environment, path.guard)
    shown, following = numbers(newest, before=query.cursor, limit=query.limit)
    found = context.gates.evaluations(
        path.environment, path.guard, before=shown.start + 1, at_most=query.limit
    )
    items = [evaluation_summary(path.environment, each) for each in found]
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
    response = Response(
        parts if is_packed else answers.unpacked(parts), mimetype="application/json"
    )
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
    asked = request_evaluation(context, path.environment, path.guard, gate=body.gate, actor=actor)
    answer = evaluation_answer(path.environment, asked)
    return respond(answer, status=202, location=answer.links["self"])
