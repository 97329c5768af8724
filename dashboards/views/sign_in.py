"""Sign-in page: a session from a token or a one-time link, and its end."""

from flask import redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from guardwave.control_plane.rollouts.access import Identity, sign_in_with_code
from guardwave.control_plane.rollouts.access import sign_in as identify
from guardwave.dashboards.blueprint import blueprint
from guardwave.dashboards.drafts import has_draft
from guardwave.dashboards.sessions import PAGE_ROLES, context, forget, remember
from guardwave.dashboards.theme import local_path

_UNKNOWN_TOKEN = (
    "This token is unknown or revoked. It looks like gw_<id>_<secret> and is shown once, when "
    "it is created."
)
_USED_LINK = (
    "This sign-in link was already used or has expired. A link works once; sign in with a token."
)


@blueprint.get("/sign-in")
def sign_in_form() -> Response | tuple[str, int]:
    """Show the form, or follow a one-time link."""
    code = request.args.get("code")
    if code is None:
        return _form("", 200)
    identity = sign_in_with_code(context(), code)
    return _form("", 401, refusal=_USED_LINK) if identity is None else _begin(identity)


@blueprint.post("/sign-in")
def sign_in() -> Response | tuple[str, int]:
    """Begin a session with a token."""
    token = request.form.get("token", "").strip()
    if not token:
        return _form("Paste a token to sign in.", 400)
    identity = identify(context(), token)
    return _form(_UNKNOWN_TOKEN, 401) if identity is None else _begin(identity)


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
            f"Sign in with a token of one of these roles: {', '.join(PAGE_ROLES)}.",
            403,
        )
    remember(identity)
    return redirect(local_path(request.values.get("next")) or url_for(".overview"), code=303)


def _form(error: str, status: int, *, refusal: str = "") -> tuple[str, int]:
    """Return the form with an error about its token, or with another refusal."""
    back = local_path(request.values.get("next")) or ""
    return render_template(
        "sign_in.html", error=error, refusal=refusal, back=back, has_draft=has_draft()
    ), status
