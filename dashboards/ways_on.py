"""Where a page that is an error leads on: what of its address exists, and a person may see."""

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

from flask import g, request, url_for

from control_plane.commands.changes import load_environment, load_rollout
from control_plane.errors import GuardwaveError
from control_plane.queries import cards
from control_plane.queries.pages import Frame
from dashboards.addresses import page_path
from dashboards.sessions import can_see, context


class WayOn(NamedTuple):
    """A link: what it leads to, and its address."""

    label: str
    address: str


def frame_now() -> Frame | None:
    """Return what surrounds a page, None for who is not signed in or while the store is away."""
    if g.get("identity") is None:
        return None
    try:
        return cards.frame(context())
    except GuardwaveError:
        return None


def ways_on(status: int) -> tuple[WayOn, ...]:
    """Return where to go on from an error of this status, nearest first."""
    if g.get("identity") is None:
        return ()
    ways: list[WayOn] = []
    if status == 403:
        address = f"{url_for('pages.sign_in_form')}?{urlencode({'next': page_path()})}"
        ways.append(WayOn("Sign in with another token", address))
    # What does not exist, or cannot be read now, is no way on.
    with suppress(GuardwaveError):
        ways.extend(_to_guard())
    with suppress(GuardwaveError):
        ways.extend(_to_environment())
    return tuple(ways)


def _to_guard() -> list[WayOn]:
    name, guard = _given("environment"), _given("guard")
    if not guard or not can_see(name):
        return []
    load_rollout(context(), name, guard)
    return [WayOn(f"{guard} in {name}", url_for("pages.guard", environment=name, guard=guard))]


def _to_environment() -> list[WayOn]:
    name = _given("environment")
    if not name or not can_see(name):
        return []
    held = load_environment(context(), name)
    way = WayOn(name, url_for("pages.environment", environment=name))
    if held.latch is None:
        return [way]
    latched = url_for("pages.rollback", environment=name, _anchor="acknowledgement")
    return [WayOn(f"See why {name} is held in shadow", latched), way]


def _given(name: str) -> str:
    return str((request.view_args or {}).get(name, ""))
