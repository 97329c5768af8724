"""Rolling an environment back to shadow, and acknowledging what rolled it back by itself."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Self

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from control_plane.access import actor_of
from control_plane.commands import rollback as commands
from control_plane.errors import GuardwaveError
from control_plane.queries import rollbacks as queries
from control_plane.queries.pages_changes import RollbackPage
from dashboards.blueprint import blueprint
from dashboards.drafts import take_draft
from dashboards.forms import FormReading, Problem, problem_of
from dashboards.sessions import can_change, context, require
from reducer.vocabulary import Role


@dataclass(frozen=True, slots=True)
class SubmittedForms:
    """What was typed into the page's two forms, and why the acknowledgement was refused."""

    rollback: FormReading = field(default_factory=FormReading)
    acknowledgement: FormReading = field(default_factory=FormReading)
    refusal: GuardwaveError | None = None

    @classmethod
    def of_draft(cls, environment: str) -> Self:
        """Return the forms with what was typed into one of them before the session ended."""
        draft = take_draft()
        if draft is None:
            return cls()
        if draft.action == url_for(".roll_back", environment=environment):
            return cls(rollback=draft.form)
        return cls(acknowledgement=draft.form)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why nothing was changed, each with where to mend it."""
        refused = () if self.refusal is None else (problem_of(self.refusal, "acknowledgement"),)
        return (
            *refused,
            *self.rollback.problems({"reason": "reason"}),
            *self.acknowledgement.problems({"reason": "acknowledgement-reason"}),
        )


@blueprint.get("/environments/<environment>/rollback")
def rollback(environment: str) -> str:
    """Show what a rollback would do, and the last one."""
    require(Role.VIEWER, environment)
    return _render(environment, SubmittedForms.of_draft(environment))


@blueprint.post("/environments/<environment>/rollback")
def roll_back(environment: str) -> Response | tuple[str, int]:
    """Roll the environment back. Asks for nothing but a reason: this is the safe direction."""
    who = require(Role.OPERATOR, environment)
    form = FormReading()
    reason = form.reason_to_lower()
    if form.errors:
        return _render(environment, SubmittedForms(rollback=form)), 400
    record = commands.roll_back(context(), environment, actor=actor_of(who), reason=reason)
    address = url_for(
        ".rollback",
        environment=environment,
        outcome="changed" if record.changed else "unchanged",
        cut=1 if form.is_cut else None,
    )
    return redirect(address, code=303)


@blueprint.post("/environments/<environment>/rollbacks/<int:number>/acknowledgement")
def acknowledge(environment: str, number: int) -> Response | tuple[str, int]:
    """Release the latch, naming the newest violation and the environment as they were shown."""
    who = require(Role.OPERATOR, environment)
    form = FormReading()
    reason, last_violation = form.reason(), form.whole_number("last_violation")
    if form.errors:
        return _render(environment, SubmittedForms(acknowledgement=form)), 400
    try:
        commands.acknowledge(
            context(),
            environment,
            number,
            last_violation=last_violation,
            actor=actor_of(who),
            reason=reason,
            if_match=form.text("etag") or None,
        )
    except GuardwaveError as error:
        forms = SubmittedForms(acknowledgement=form, refusal=error)
        return _render(environment, forms), error.status
    address = url_for(".rollback", environment=environment, outcome="acknowledged")
    return redirect(address, code=303)


@blueprint.get("/fragments/environments/<environment>/rollback")
def before_rollback_fragment(environment: str) -> str:
    """Return the line that says whether what a rollback would do has changed, aloud once."""
    require(Role.VIEWER, environment)
    page = queries.rollback_page(context(), environment)
    state = state_of(page)
    is_news = request.args.get("told") not in {None, "", state}
    return render_template(
        "fragments/before_rollback.html",
        page=page,
        frame=page.frame,
        state=state,
        shown_state=request.args.get("state"),
        shown_at=request.args.get("at", type=datetime.fromisoformat),
        news=f"{environment} has changed since this page was shown." if is_news else "",
    )


def state_of(page: RollbackPage) -> str:
    """Return a short digest of what a rollback would do and what it would be asked after.

    Days that pass are not part of it: they change nothing that a person decides here.
    """
    latch = page.latched.latch.newest_violation if page.latched else None
    moves = tuple((each.guard, each.phase.value, each.moves) for each in page.consequences)
    last = page.last.rollback_id if page.last else 0
    return sha256(repr((moves, latch, last)).encode()).hexdigest()[:16]


def _render(environment: str, forms: SubmittedForms) -> str:
    page = queries.rollback_page(context(), environment)
    return render_template(
        "rollback.html",
        page=page,
        frame=page.frame,
        forms=forms,
        state=state_of(page),
        problems=forms.problems,
        outcome=request.args.get("outcome"),
        is_cut="cut" in request.args,
        can_change=can_change(environment),
    )
