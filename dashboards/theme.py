"""Light, dark, or as the system says: remembered in a cookie, so that no page flashes."""

from enum import StrEnum
from urllib.parse import urlsplit

from flask import request

COOKIE = "theme"
COOKIE_SECONDS = 31_536_000


class Theme(StrEnum):
    """How a person wants the pages to look."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def chosen_theme() -> Theme:
    """Return what the cookie remembers; an unknown word is the system's choice."""
    return parse_theme(request.cookies.get(COOKIE)) or Theme.SYSTEM


def parse_theme(word: str | None) -> Theme | None:
    """Return the theme of a word, None for any other word."""
    return next((theme for theme in Theme if theme.value == word), None)


def own_path(address: str | None) -> str | None:
    """Return an address to go back to if it is a path of this server, else None."""
    if not address or not address.startswith("/") or "\\" in address:
        return None
    parts = urlsplit(address)
    # "//host/path" has a netloc and would leave this server.
    return None if parts.scheme or parts.netloc else address
