"""Guard page: one rollout in full, and the forms that lower a mode or evaluate a gate."""

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from guardwave.control_plane.commands import cohorts as commands
from guardwave.control_plane.commands import evaluations
from guardwave.control_plane.core.errors import GuardwaveError, InvalidField
from guardwave.control_plane.core.state import EvaluationStatus
from guardwave.control_plane.queries import overview as queries
from guardwave.control_plane.rollouts.access import actor_of
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.drafts import take_draft
from guardwave.dashboards.forms import FormReading, Problem, problem_of
from guardwave.dashboards.sessions import can_change, context, require
from guardwave.reducer.rollout.state import gate_for
from guardwave.reducer.vocabulary import Gate, Role

DAYS_UNFOLDED = 10
EVALUATIONS_UNFOLDED = 3


@blueprint.get("/environments/<environment>/guards/<guard>")
def guard(environment: str, guard: str) -> str:
    """Show a rollout: phase, cohorts, wave, days, and its gate evaluations."""
    require(Role.VIEWER, environment)
    changed = request.args.get("changed")
    draft = take_draft()
    if draft is None:
        return _render(environment, guard, changed_cohort=changed)
    cohort = draft.action.rsplit("/", 1)[-1]
    return _render(environment, guard, form=draft.form, cohort=cohort)


@blueprint.post("/environments/<environment>/guards/<guard>/cohorts/<cohort>")
def set_cohort(environment: str, guard: str, cohort: str) -> Response | tuple[str, int]:
    """Set one cohort's mode: lower, or from off to shadow on the rollout that the page showed."""
    operator = require(Role.OPERATOR, environment)
    form = FormReading()
    reason, mode = form.reason_to_lower(), form.mode("mode")
    if form.errors:
        return _render(environment, guard, form=form, cohort=cohort), 400
    try:
        commands.set_cohort_mode(
            context(),
            environment,
            guard,
            cohort,
            change=commands.CohortChange(mode=mode),
            actor=actor_of(operator),
            reason=reason,
            if_match=form.text("etag") or None,
        )
    except GuardwaveError as error:
        refusal = problem_of(error, f"cohort-{cohort}", environment, guard)
        page = _render(environment, guard, form=form, cohort=cohort, refusal=refusal)
        return page, error.status
    address = url_for(
        ".guard",
        environment=environment,
        guard=guard,
        changed=cohort,
        cut=1 if form.is_truncated else None,
    )
    return redirect(f"{address}#cohorts", code=303)


@blueprint.post("/environments/<environment>/guards/<guard>/gates")
def evaluate(environment: str, guard: str) -> Response | tuple[str, int]:
    """Request an evaluation of the phase's gate, which the worker computes."""
    operator = require(Role.OPERATOR, environment)
    word = request.form.get("gate", "")
    gate = next((gate for gate in Gate if gate.value == word), None)
    if gate is None:
        raise InvalidField(
            f"gate is {word or 'missing'}; it is one of {', '.join(Gate)}", pointer="/gate"
        )
    try:
        asked = evaluations.request_evaluation(
            context(), environment, guard, gate=gate, actor=actor_of(operator)
        )
    except GuardwaveError as error:
        refusal = problem_of(error, "evaluations", environment, guard)
        return _render(environment, guard, refusal=refusal), error.status
    address = url_for(".guard", environment=environment, guard=guard, asked=asked.id)
    return redirect(f"{address}#evaluations", code=303)


@blueprint.get("/fragments/environments/<environment>/guards/<guard>/evaluations/<int:asked>")
def asked_fragment(environment: str, guard: str, asked: int) -> tuple[str, int]:
    """Return the line that a requested evaluation is ready, or nothing until it is.

    htmx swaps nothing on 204, and stops polling after 286.
    """
    require(Role.VIEWER, environment)
    status = queries.evaluation_status(context(), environment, guard, asked)
    if status is EvaluationStatus.PENDING:
        return "", 204
    page = render_template(
        "fragments/asked.html",
        environment=environment,
        guard=guard,
        requested_evaluation=asked,
        status=status,
    )
    return page, 286


def _render(
    environment: str,
    guard: str,
    *,
    form: FormReading | None = None,
    cohort: str | None = None,
    refusal: Problem | None = None,
    changed_cohort: str | None = None,
) -> str:
    page = queries.guard_page(context(), environment, guard)
    requested = request.args.get("asked", type=int)
    form = form or FormReading()
    refused = () if refusal is None else (refusal,)
    fields = {name: f"{name}-{cohort}" for name in ("reason", "mode")}
    return render_template(
        "guard.html",
        page=page,
        frame=page.frame,
        form=form,
        form_cohort=cohort,
        problems=(*refused, *form.problems(fields)),
        is_truncated="cut" in request.args,
        changed_cohort=next(
            (line for line in page.card.cohorts if line.cohort == changed_cohort), None
        ),
        can_change=can_change(environment),
        due_gate=gate_for(page.card.phase),
        days_unfolded=DAYS_UNFOLDED,
        evaluations_unfolded=EVALUATIONS_UNFOLDED,
        requested_evaluation=requested,
        requested_status=None
        if requested is None
        else queries.evaluation_status(context(), environment, guard, requested),
    )
