"""The audit chain of an environment, in parts, as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from control_plane.commands.changes import load_environment
from control_plane.context import Context


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One entry: the members of its canonical JSON, its hash, and its place in the chain."""

    place: str
    hash: str
    members: Mapping[str, str | int | None]


def audit_lines(
    context: Context, environment: str, *, after: str | None, limit: int
) -> tuple[tuple[AuditLine, ...], str | None]:
    """Return up to `limit` entries behind the place `after`, oldest first, and the next place.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    found = context.environments.audit_after(environment, after=after, count=limit + 1)
    lines = tuple(
        AuditLine(place, entry.hash, orjson.loads(entry.text)) for place, entry in found[:limit]
    )
    return lines, lines[-1].place if len(found) > limit else None
