"""Error links: the pages an error page leads to, if they exist and the person may see them."""

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

from flask import g, request, url_for

from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.page_models import Frame
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.dashboards.addresses import page_path
from guardwave.dashboards.sessions import can_see, context


class ErrorLink(NamedTuple):
    """A link: its label and its address."""

    label: str
    address: str


def current_frame() -> Frame | None:
    """Return the frame of a page, None without a sign-in or while the store is unreachable."""
    if g.get("identity") is None:
        return None
    try:
        return cards.frame(context())
    except GuardwaveError:
        return None


def error_links(status: int) -> tuple[ErrorLink, ...]:
    """Return the links for an error of this status, nearest first."""
    if g.get("identity") is None:
        return ()
    links: list[ErrorLink] = []
    if status == 403:
        address = f"{url_for('pages.sign_in_form')}?{urlencode({'next': page_path()})}"
        links.append(ErrorLink("Sign in with another token", address))
    # A page that does not exist, or cannot be read now, gets no link.
    with suppress(GuardwaveError):
        links.extend(_to_guard())
    with suppress(GuardwaveError):
        links.extend(_to_environment())
    return tuple(links)


def _to_guard() -> list[ErrorLink]:
    name, guard = _path_argument("environment"), _path_argument("guard")
    if not guard or not can_see(name):
        return []
    load_rollout(context(), name, guard)
    return [ErrorLink(f"{guard} in {name}", url_for("pages.guard", environment=name, guard=guard))]


def _to_environment() -> list[ErrorLink]:
    name = _path_argument("environment")
    if not name or not can_see(name):
        return []
    environment = load_environment(context(), name)
    link = ErrorLink(name, url_for("pages.environment", environment=name))
    if environment.latch is None:
        return [link]
    acknowledgement = url_for("pages.rollback", environment=name, _anchor="acknowledgement")
    return [ErrorLink(f"See why {name} is held in shadow", acknowledgement), link]


def _path_argument(name: str) -> str:
    return str((request.view_args or {}).get(name, ""))
