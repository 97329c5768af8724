"""A proposed call as the guard decides about it: checked, and set apart from its batch."""

from typing import NamedTuple

from reducer.guards.side_effect.events import Proposed
from reducer.guards.side_effect.ladder import Ladder, ToolDeclaration
from reducer.guards.side_effect.repeat import FirstUse
from reducer.guards.side_effect.semantic import Candidate
from reducer.guards.side_effect.state import Place, place_of


class Occasion(NamedTuple):
    """What the calls of one batch share. `place` is where repeats of them are looked for."""

    now_ms: int
    thread: str | None
    channel: str | None
    place: Place


class Case(NamedTuple):
    """One call of the batch, with what side_effect.Proposed says of it."""

    occasion: Occasion
    call_id: str
    tool: str
    fingerprint: str | None
    declaration: ToolDeclaration
    is_approved: bool
    xid: str | None
    first_use: FirstUse | None
    candidate: Candidate | None


def occasion_of(
    ladder: Ladder, request: str, now_ms: int, *, thread: str | None, channel: str | None
) -> Occasion:
    """Return what the calls of a batch share; the events have checked it."""
    return Occasion(now_ms, thread, channel, place_of(ladder, request, thread))


def case_of(event: Proposed, occasion: Occasion, call_id: str) -> Case:
    """Return the call of an event, under the id it bears."""
    return Case(
        occasion,
        call_id,
        event.call.tool,
        event.call.fingerprint,
        event.declaration,
        event.is_approved,
        event.xid,
        event.first_use,
        event.candidate,
    )
