"""Likeness: an earlier call of the same thread that may be the same act, for a person to judge.

guardwave has no measure of likeness. The host's finder proposes, the guard only ever asks.
"""

from typing import NamedTuple, Protocol, TypeAlias

from reducer.guards.side_effect.repeat import FirstUse
from reducer.guards.side_effect.xid import field_values

Fields: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


class Candidate(NamedTuple):
    """An earlier successful run that a finder took for the same act, and the thread it was in."""

    thread: str
    use: FirstUse


class CandidateFinder(Protocol):
    """The host's search among earlier runs of one thread."""

    def find(self, thread: str, tool: str, fields: Fields) -> Candidate | None:
        """Return the most alike earlier run; None when none is alike enough.

        `fields` are (path, values) pairs in order of path, normalised as for an XID
        (xid.normalised).
        """
        ...


def find_candidate(
    finder: CandidateFinder,
    thread: str | None,
    *,
    tool: str,
    arguments: object,
    paths: tuple[str, ...],
) -> Candidate | None:
    """Return what the finder proposes for a call; nothing outside a thread or without a field."""
    if thread is None or not thread.strip():
        return None
    fields = field_values(arguments, paths)
    return finder.find(thread, tool, fields) if fields else None
