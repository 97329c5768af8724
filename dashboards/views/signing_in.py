"""Signing in with a token or a one-time link, and signing out."""

from flask import redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from control_plane.access import Identity, sign_in_with_code
from control_plane.access import sign_in as identify
from dashboards.blueprint import blueprint
from dashboards.drafts import draft_waits
from dashboards.sessions import PAGE_ROLES, context, forget, remember
from dashboards.theme import own_path

_UNKNOWN = (
    "This token is unknown or revoked. It looks like gw_<id>_<secret> and is shown once, when "
    "it is created."
)
_SPENT_LINK = (
    "This sign-in link was used already, or it is too old. Each works once; sign in with a token."
)


@blueprint.get("/sign-in")
def sign_in_form() -> Response | tuple[str, int]:
    """Show the form, or follow a one-time link."""
    code = request.args.get("code")
    if code is None:
        return _form("", 200)
    return _begin(sign_in_with_code(context(), code), _SPENT_LINK)


@blueprint.post("/sign-in")
def sign_in() -> Response | tuple[str, int]:
    """Begin a session with a token."""
    token = request.form.get("token", "").strip()
    if not token:
        return _form("Paste a token to sign in.", 400)
    return _begin(identify(context(), token), _UNKNOWN)


@blueprint.post("/sign-out")
def sign_out() -> Response:
    """End the session."""
    forget()
    session.clear()
    return redirect(url_for(".sign_in_form"), code=303)


def _begin(identity: Identity | None, refusal: str) -> Response | tuple[str, int]:
    if identity is None:
        return _form(refusal, 401)
    if identity.role not in PAGE_ROLES:
        return _form(
            f"The token {identity.name} has the role {identity.role}, which is for programs. "
            f"Sign in with one of {', '.join(PAGE_ROLES)}.",
            403,
        )
    remember(identity)
    return redirect(own_path(request.values.get("next")) or url_for(".overview"), code=303)


def _form(error: str, status: int) -> tuple[str, int]:
    back = own_path(request.values.get("next")) or ""
    return render_template(
        "sign_in.html", error=error, back=back, draft_waits=draft_waits()
    ), status
