"""Assignment request: a host's question, with the checks of its path and query."""

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from urllib.parse import parse_qsl

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.core.errors import InvalidField
from guardwave.reducer.vocabulary import Route

VERSION = "service.version"
ROUTE = "route"
OWNER_PATTERN = "[A-Za-z0-9._~:@-]{1,256}"

_OWNER = re.compile(OWNER_PATTERN)
_DAY_NS = 86_400 * NANOSECONDS
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class AssignmentRequest:
    """One request: path parts, raw query, and the two headers that matter."""

    environment: str
    guard: str
    owner: str
    query: str = ""
    authorization: str | None = None
    if_none_match: str | None = None


def check_owner_in_path(owner: str) -> None:
    """Check that a path can hold an owner id, without repeating the id in the error.

    Raises:
        InvalidField: it is too long or has other characters.
    """
    if _OWNER.fullmatch(owner) is None:
        raise InvalidField(
            "an owner id in a path has 1 to 256 of A-Z a-z 0-9 . _ ~ : @ -; this one has others",
            pointer="/owner",
        )


@lru_cache(maxsize=256)
def parse_query(query: str) -> tuple[str | None, Route | None]:
    """Return version and route; an unknown route is None, and gets shadow at most.

    Raises:
        InvalidField: a parameter is not known, or is given twice.
    """
    found: dict[str, str] = {}
    for name, text in parse_qsl(query, keep_blank_values=True, errors="replace"):
        if name not in {VERSION, ROUTE} or name in found:
            wrong = "is given twice" if name in found else "is not known here"
            raise InvalidField(
                f"the query parameter {name[:64]!r} {wrong}; {VERSION} and {ROUTE} are, once each",
                pointer=f"/{name[:64]}",
            )
        found[name] = text
    route = found.get(ROUTE, Route.INTERACTIVE_FOREGROUND)
    return found.get(VERSION) or None, Route.parse(route)


def day_of(moment_ns: int) -> date:
    """Return the UTC day of nanoseconds since 1970."""
    return _day(moment_ns // _DAY_NS)


@lru_cache(maxsize=4)
def _day(number: int) -> date:
    return date.fromordinal(_EPOCH + number)
