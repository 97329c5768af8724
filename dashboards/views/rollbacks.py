"""Rollback page: roll an environment back to shadow, or acknowledge an automatic rollback."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Self

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from guardwave.control_plane.commands import rollback as commands
from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.queries import rollbacks as queries
from guardwave.control_plane.queries.decision_models import RollbackPage
from guardwave.control_plane.rollouts.access import actor_of
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.drafts import take_draft
from guardwave.dashboards.forms import FormReading, Problem, problem_of
from guardwave.dashboards.sessions import can_change, context, require
from guardwave.reducer.vocabulary import Role


@dataclass(frozen=True, slots=True)
class SubmittedForms:
    """The page's two forms as they were sent, and the refusal of the acknowledgement."""

    rollback: FormReading = field(default_factory=FormReading)
    acknowledgement: FormReading = field(default_factory=FormReading)
    refusal: GuardwaveError | None = None

    @classmethod
    def of_draft(cls, environment: str) -> Self:
        """Return the forms, one of them with the draft from before the session ended."""
        draft = take_draft()
        if draft is None:
            return cls()
        if draft.action == url_for(".roll_back", environment=environment):
            return cls(rollback=draft.form)
        return cls(acknowledgement=draft.form)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The reasons why nothing was changed, each with the field to correct."""
        refused = () if self.refusal is None else (problem_of(self.refusal, "acknowledgement"),)
        return (
            *refused,
            *self.rollback.problems({"reason": "reason"}),
            *self.acknowledgement.problems({"reason": "acknowledgement-reason"}),
        )


@blueprint.get("/environments/<environment>/rollback")
def rollback(environment: str) -> str:
    """Show the effect of a rollback, and the last rollback."""
    require(Role.VIEWER, environment)
    return _render(environment, SubmittedForms.of_draft(environment))


@blueprint.post("/environments/<environment>/rollback")
def roll_back(environment: str) -> Response | tuple[str, int]:
    """Roll the environment back. It needs only a reason, because this is the safe direction."""
    operator = require(Role.OPERATOR, environment)
    form = FormReading()
    reason = form.reason_to_lower()
    if form.errors:
        return _render(environment, SubmittedForms(rollback=form)), 400
    record = commands.roll_back(context(), environment, actor=actor_of(operator), reason=reason)
    address = url_for(
        ".rollback",
        environment=environment,
        outcome="changed" if record.changed else "unchanged",
        cut=1 if form.is_truncated else None,
    )
    return redirect(address, code=303)


@blueprint.post("/environments/<environment>/rollbacks/<int:number>/acknowledgement")
def acknowledge(environment: str, number: int) -> Response | tuple[str, int]:
    """Release the latch, for the newest violation and the environment that the page showed."""
    operator = require(Role.OPERATOR, environment)
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
            actor=actor_of(operator),
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
    """Return the line that reports a changed effect; screen readers hear it once."""
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
    """Return a short digest of what a rollback would change, and of the latch and last rollback.

    Passing days are not part of it: they change nothing that a person decides here.
    """
    latch = page.latched.latch.newest_violation if page.latched else None
    moves = tuple(
        (consequence.guard, consequence.phase.value, consequence.moves)
        for consequence in page.consequences
    )
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
        is_truncated="cut" in request.args,
        can_change=can_change(environment),
    )
