"""What one call of the store takes of a request: the store serves nobody else during a call."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from control_plane.stores.evidence_events import Event, Sighting
from control_plane.stores.prompt_events import PromptEvents

# Of the dearest, told to prompts whose guards have stopped them often already, 500 take 100 ms.
PORTION = 500

Addition: TypeAlias = tuple[Sequence[Event], Sequence[Sighting]]


class Portion(NamedTuple):
    """Events in the order in which they were booked, and the sightings of their owners."""

    events: tuple[Event, ...]
    sightings: frozenset[Sighting]


def portions(additions: Iterable[Addition], *, most: int = PORTION) -> Iterator[Portion]:
    """Yield what each call takes, at least one portion even of nothing.

    What is told together stays together, so a portion holds fewer than `most` events and what came
    last; a prompt's own are cut where they are more. A sighting goes with the first of its events:
    what it takes from an owner is never later than what its events add.
    """
    events: list[Event] = []
    # mostly the same objects again, and to know them by that is cheaper than to hash them
    shown: dict[int, Sighting] = {}
    known: set[Sighting] = set()
    count = 0
    for added, seen in _cut(additions, most):
        if count >= most:
            sightings = frozenset(shown.values())
            yield Portion(tuple(events), sightings - known)
            known |= sightings
            events, shown, count = [], {}, 0
        events += added
        for sighting in seen:
            shown[id(sighting)] = sighting
        for event in added:
            count += len(event.likes) if isinstance(event, PromptEvents) else 1
    yield Portion(tuple(events), frozenset(shown.values()) - known)


def _cut(additions: Iterable[Addition], most: int) -> Iterator[Addition]:
    """Yield what is told, the events of a prompt in pieces where they are too many."""
    for added, seen in additions:
        told = added[0] if len(added) == 1 else None
        if isinstance(told, PromptEvents) and len(told.likes) > most:
            for piece in told.cut(most):
                yield (piece,), seen
        else:
            yield added, seen
