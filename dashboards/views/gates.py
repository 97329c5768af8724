"""Gate page: one evaluation with its checks, plot and table, and the promotion it allows."""

from flask import redirect, render_template, url_for
from werkzeug.wrappers import Response

from guardwave.control_plane.commands import promotions
from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.queries import gates as queries
from guardwave.control_plane.rollouts.access import actor_of
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.drafts import take_draft
from guardwave.dashboards.forms import FormReading, problem_of
from guardwave.dashboards.plots import forest_plot, verdict_counts
from guardwave.dashboards.sessions import can_change, context, require
from guardwave.reducer.vocabulary import Role

_EVALUATION = "/environments/<environment>/guards/<guard>/gates/<int:evaluation>"
# The ids that the page gives the fields of its form.
_FIELDS = {"reason": "promote-reason", "confirm": "confirm"}


@blueprint.get(_EVALUATION)
def gate(environment: str, guard: str, evaluation: int) -> str:
    """Show a gate evaluation. It never changes, so this page is not polled."""
    require(Role.VIEWER, environment)
    draft = take_draft()
    return _render(environment, guard, evaluation, form=None if draft is None else draft.form)


@blueprint.post(f"{_EVALUATION}/promotions")
def promote(environment: str, guard: str, evaluation: int) -> Response | tuple[str, int]:
    """Request the promotion that this evaluation allows, by its id and digest."""
    operator = require(Role.OPERATOR, environment)
    form = FormReading()
    reason, to = form.reason(), form.mode("to")
    digest, share_bps = form.text("digest"), form.basis_points("share_bps")
    form.confirmation("confirm", environment)
    if form.errors:
        return _render(environment, guard, evaluation, form=form), 400
    promotion = PromotionRequest(
        gate_evaluation=evaluation, digest=digest, to=to, share_bps=share_bps
    )
    try:
        promotions.request_promotion(
            context(),
            environment,
            guard,
            request=promotion,
            actor=actor_of(operator),
            reason=reason,
        )
    except GuardwaveError as error:
        return _render(environment, guard, evaluation, form=form, refusal=error), error.status
    address = url_for(".gate", environment=environment, guard=guard, evaluation=evaluation)
    return redirect(f"{address}#promotion", code=303)


def _render(
    environment: str,
    guard: str,
    evaluation: int,
    *,
    form: FormReading | None = None,
    refusal: GuardwaveError | None = None,
) -> str:
    page = queries.gate_page(context(), environment, guard, evaluation)
    form = form or FormReading()
    refused = () if refusal is None else (problem_of(refusal, "promotion", environment, guard),)
    return render_template(
        "gate.html",
        page=page,
        frame=page.frame,
        plot=forest_plot(page.evaluation),
        verdict_counts=verdict_counts(page.evaluation),
        form=form,
        problems=(*refused, *form.problems(_FIELDS)),
        can_change=can_change(environment),
    )
