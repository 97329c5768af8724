"""Rolling an environment back to shadow: a page that says what happens, a reason, one button."""

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from control_plane.access import actor_of
from control_plane.commands import rollback as commands
from control_plane.queries import rollbacks as queries
from dashboards.blueprint import blueprint
from dashboards.forms import FormReading
from dashboards.sessions import can_change, context, require
from reducer.vocabulary import Role


@blueprint.get("/environments/<environment>/rollback")
def rollback(environment: str) -> str:
    """Show what a rollback would do, and the last one."""
    require(Role.VIEWER, environment)
    return _render(environment, FormReading())


@blueprint.post("/environments/<environment>/rollback")
def roll_back(environment: str) -> Response | tuple[str, int]:
    """Roll the environment back. Asks for nothing but a reason: this is the safe direction."""
    who = require(Role.OPERATOR, environment)
    form = FormReading()
    reason = form.reason()
    if form.errors:
        return _render(environment, form), 400
    record = commands.roll_back(context(), environment, actor=actor_of(who), reason=reason)
    outcome = "changed" if record.changed else "unchanged"
    return redirect(url_for(".rollback", environment=environment, outcome=outcome), code=303)


def _render(environment: str, form: FormReading) -> str:
    page = queries.rollback_page(context(), environment)
    return render_template(
        "rollback.html",
        page=page,
        frame=page.frame,
        form=form,
        outcome=request.args.get("outcome"),
        can_change=can_change(environment),
    )
