"""Theme: light, dark or the system's choice, kept in a cookie so that no page flashes."""

import re
from enum import StrEnum

from flask import request

COOKIE = "theme"
COOKIE_SECONDS = 31_536_000

# One slash, then anything printable but a backslash: "//host" and "/\\host" leave this server,
# and a line break would end the header.
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")


class Theme(StrEnum):
    """The colours of the pages."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def chosen_theme() -> Theme:
    """Return the theme of the cookie; an unknown word means the system's choice."""
    return parse_theme(request.cookies.get(COOKIE)) or Theme.SYSTEM


def parse_theme(word: str | None) -> Theme | None:
    """Return the theme of a word, None for any other word."""
    return next((theme for theme in Theme if theme.value == word), None)


def local_path(address: str | None) -> str | None:
    """Return an address to go back to if it is a path of this server, else None."""
    if address is None or _LOCAL_PATH.fullmatch(address) is None:
        return None
    return address
