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
    sightings: set[Sighting] = set()
    known: set[Sighting] = set()
    count = 0
    for added, seen in _cut(additions, most):
        if count >= most:
            yield Portion(tuple(events), frozenset(sightings))
            events, sightings, count = [], set(), 0
        events += added
        for event in added:
            count += len(event.events) if isinstance(event, PromptEvents) else 1
        for sighting in seen:
            if sighting not in known:
                known.add(sighting)
                sightings.add(sighting)
    yield Portion(tuple(events), frozenset(sightings))


def _cut(additions: Iterable[Addition], most: int) -> Iterator[Addition]:
    """Yield what is told, the events of a prompt in pieces where they are too many."""
    for added, seen in additions:
        match added:
            case (PromptEvents(prompt, events),) if len(events) > most:
                for start in range(0, len(events), most):
                    yield (PromptEvents(prompt, events[start : start + most]),), seen
            case _:
                yield added, seen
