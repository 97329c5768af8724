"""Sessions: the identity behind a request, from the store's session that the cookie names."""

from urllib.parse import urlencode

from flask import current_app, g, redirect, request, session, url_for
from werkzeug.wrappers import Response

from guardwave.control_plane.core.errors import Forbidden, NotSignedIn
from guardwave.control_plane.rollouts.access import (
    Identity,
    begin_session,
    end_session,
    identity_in_session,
    is_permitted,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.dashboards.addresses import page_address
from guardwave.dashboards.drafts import carry_draft_over, keep_draft
from guardwave.dashboards.problems import accepts_page_redirect
from guardwave.reducer.vocabulary import Role

PAGE_ROLES = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
_SESSION_KEY = "session"
_OPEN_ENDPOINTS = frozenset(
    {"pages.sign_in", "pages.sign_in_form", "pages.static_file", "pages.set_theme"}
)


def context() -> Context:
    """Return the context that the app factory built for queries and commands."""
    shared: Context = current_app.extensions["guardwave"]
    return shared


def remember(identity: Identity) -> None:
    """Begin a session for an identity, and end the session that the cookie named before."""
    forget()
    session[_SESSION_KEY] = begin_session(context(), identity)


def forget() -> None:
    """End the session, for every copy of its cookie."""
    session_id = session.get(_SESSION_KEY)
    if isinstance(session_id, str):
        end_session(context(), session_id)
    carry_draft_over()


def ask_for_sign_in() -> Response | None:
    """Redirect to the sign-in page without a sign-in, or if the token was revoked.

    Raises:
        NotSignedIn: the client is a program or a polling page, which cannot use a form.
    """
    session_id = session.get(_SESSION_KEY)
    g.identity = None
    if isinstance(session_id, str):
        g.identity = identity_in_session(context(), session_id)
    if g.identity is not None or request.endpoint in _OPEN_ENDPOINTS:
        return None
    if "/fragments/" in request.path:
        raise NotSignedIn("the session ended; reload the page and sign in again")
    if not accepts_page_redirect():
        raise NotSignedIn("pages need a browser session; programs use /api/v1 with a token")
    if request.method == "POST":
        keep_draft()
    address = url_for("pages.sign_in_form")
    if page_address() != url_for("pages.overview"):
        address += "?" + urlencode({"next": page_address()})
    return redirect(address, code=303)


def identity() -> Identity:
    """Return the identity that is signed in."""
    present: Identity = g.identity
    return present


def can_see(environment: str) -> bool:
    """Return whether the signed-in token may read an environment."""
    return is_permitted(identity(), Role.VIEWER, environment)


def visible_environments(environments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the environments that the signed-in token may read, in their order."""
    return tuple(name for name in environments if can_see(name))


def can_change(environment: str) -> bool:
    """Return whether the signed-in token may change an environment's rollouts."""
    return is_permitted(identity(), Role.OPERATOR, environment)


def require(role: Role, environment: str) -> Identity:
    """Return the identity if its token has the role in this environment, else raise Forbidden."""
    caller = identity()
    if not is_permitted(caller, role, environment):
        raise Forbidden(
            f"the token “{caller.name}” has the role {caller.role} of "
            f"{caller.environment or 'every environment'}; this needs the role {role} of "
            f"{environment}: sign in with such a token"
        )
    return caller
