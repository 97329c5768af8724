"""Audit pages: the entries of an environment's audit chain, as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.stores.audit import StoredEntry

_END_OF_TIME_MS = 1 << 48


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One audit entry: the members of its canonical JSON, its hash, and its place in the chain."""

    place: str
    hash: str
    members: Mapping[str, str | int | None]

    @property
    def sequence(self) -> int:
        """The entry's number in the chain, from 1."""
        number = self.members["sequence"]
        assert isinstance(number, int)  # as commits write it
        return number


def audit_lines(
    context: Context, environment: str, *, after: str | None, limit: int
) -> tuple[tuple[AuditLine, ...], str | None]:
    """Return up to `limit` entries, oldest first, and the place after which the next ones are.

    `after` is such a place, or the sequence number of the last entry read; None is the beginning.

    Raises:
        NotFound: no such environment.
    """
    load_environment(context, environment)
    if after is not None and "-" not in after:
        return _after_sequence(context, environment, int(after), limit)
    found = context.environments.audit_after(environment, after=after, count=limit + 1)
    lines = tuple(_line(*row) for row in found[:limit])
    return lines, lines[-1].place if len(found) > limit else None


def _after_sequence(
    context: Context, environment: str, sequence: int, limit: int
) -> tuple[tuple[AuditLine, ...], str | None]:
    """Read from the entry after `sequence` on; its place is found by bisection.

    Places begin with the store's clock in milliseconds and grow with the sequence numbers.
    """
    early, late = 0, _END_OF_TIME_MS
    while late - early > 1:
        middle = (early + late) // 2
        found = _lines(context, environment, f"{middle}-0", 1)
        if found and found[0].sequence <= sequence + 1:
            early = middle
        else:
            late = middle
    place: str | None = f"{early}-0" if early else None
    lines: list[AuditLine] = []
    while len(lines) <= limit:
        found = _lines(context, environment, place, limit + 1)
        if not found:
            break
        place = found[-1].place
        lines += [entry for entry in found if entry.sequence > sequence]
    return tuple(lines[:limit]), lines[limit - 1].place if len(lines) > limit else None


def _lines(
    context: Context, environment: str, place: str | None, count: int
) -> tuple[AuditLine, ...]:
    found = context.environments.audit_after(environment, after=place, count=count)
    return tuple(_line(*row) for row in found)


def _line(place: str, entry: StoredEntry) -> AuditLine:
    return AuditLine(place, entry.hash, orjson.loads(entry.text))
