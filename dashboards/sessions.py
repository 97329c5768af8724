"""Who is looking: the cookie names a session of the store, and each request asks whose it is."""

from urllib.parse import urlencode

from flask import current_app, g, redirect, request, session, url_for
from werkzeug.wrappers import Response

from control_plane.access import (
    Identity,
    begin_session,
    end_session,
    identity_in_session,
    may,
)
from control_plane.context import Context
from control_plane.errors import Forbidden, NotSignedIn
from dashboards.addresses import page_address
from dashboards.drafts import carry_draft_over, keep_draft
from dashboards.problems import may_be_sent_to_a_page
from reducer.vocabulary import Role

PAGE_ROLES = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
_SESSION_KEY = "session"
_OPEN_ENDPOINTS = frozenset(
    {"pages.sign_in", "pages.sign_in_form", "pages.static_file", "pages.set_theme"}
)


def context() -> Context:
    """Return what the app factory wired together for the queries and commands."""
    wired: Context = current_app.extensions["guardwave"]
    return wired


def remember(identity: Identity) -> None:
    """Begin a session for an identity, ending whatever the cookie held before."""
    forget()
    session[_SESSION_KEY] = begin_session(context(), identity)


def forget() -> None:
    """End the session, for every copy of its cookie."""
    held = session.get(_SESSION_KEY)
    if isinstance(held, str):
        end_session(context(), held)
    carry_draft_over()


def ask_for_sign_in() -> Response | None:
    """Send whoever is not signed in, or whose token was revoked, to the sign-in page.

    Raises:
        NotSignedIn: it is a program or a polling page, which a form would not help.
    """
    held = session.get(_SESSION_KEY)
    g.identity = identity_in_session(context(), held) if isinstance(held, str) else None
    if g.identity is not None or request.endpoint in _OPEN_ENDPOINTS:
        return None
    if "/fragments/" in request.path:
        raise NotSignedIn("the session ended; reload the page and sign in again")
    if not may_be_sent_to_a_page():
        raise NotSignedIn("pages need a session in a browser; programs use /api/v1 with a token")
    if request.method == "POST":
        keep_draft()
    address = url_for("pages.sign_in_form")
    if page_address() != url_for("pages.overview"):
        address += "?" + urlencode({"next": page_address()})
    return redirect(address, code=303)


def identity() -> Identity:
    """Return who is signed in."""
    found: Identity = g.identity
    return found


def can_see(environment: str) -> bool:
    """Return whether the signed-in token may read an environment."""
    return may(identity(), Role.VIEWER, environment)


def visible(environments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the environments that the signed-in token may read, in their order."""
    return tuple(name for name in environments if can_see(name))


def can_change(environment: str) -> bool:
    """Return whether the signed-in token may change an environment's rollouts."""
    return may(identity(), Role.OPERATOR, environment)


def require(role: Role, environment: str) -> Identity:
    """Return the identity if its token has the role in this environment, else raise Forbidden."""
    who = identity()
    if not may(who, role, environment):
        raise Forbidden(
            f"the token “{who.name}” has the role {who.role} of "
            f"{who.environment or 'every environment'}; this needs the role {role} of "
            f"{environment}: sign in with such a token"
        )
    return who
