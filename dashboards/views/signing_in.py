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
    found = sign_in_with_code(context(), code)
    return _form("", 401, refusal=_SPENT_LINK) if found is None else _begin(found)


@blueprint.post("/sign-in")
def sign_in() -> Response | tuple[str, int]:
    """Begin a session with a token."""
    token = request.form.get("token", "").strip()
    if not token:
        return _form("Paste a token to sign in.", 400)
    found = identify(context(), token)
    return _form(_UNKNOWN, 401) if found is None else _begin(found)


@blueprint.post("/sign-out")
def sign_out() -> Response:
    """End the session."""
    forget()
    session.clear()
    return redirect(url_for(".sign_in_form"), code=303)


def _begin(identity: Identity) -> Response | tuple[str, int]:
    if identity.role not in PAGE_ROLES:
        return _form(
            f"The token “{identity.name}” has the role {identity.role}, which is for programs. "
            f"Sign in with one of {', '.join(PAGE_ROLES)}.",
            403,
        )
    remember(identity)
    return redirect(own_path(request.values.get("next")) or url_for(".overview"), code=303)


def _form(error: str, status: int, *, refusal: str = "") -> tuple[str, int]:
    """Return the form, with what is wrong with its token, or a refusal of something else."""
    back = own_path(request.values.get("next")) or ""
    return render_template(
        "sign_in.html", error=error, refusal=refusal, back=back, draft_waits=draft_waits()
    ), status
