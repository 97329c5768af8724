"""What one call of the store takes of a request: the store serves nobody else during a call."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from control_plane.stores.evidence_events import Event, Sighting

# Of the dearest, each of a new prompt of a new owner, 500 take some 50 ms.
PORTION = 500

Told: TypeAlias = tuple[Sequence[Event], Sighting | None]


class Portion(NamedTuple):
    """Events in the order in which they came, and the sightings of their owners."""

    events: tuple[Event, ...]
    sightings: frozenset[Sighting]


def portions(told: Iterable[Told], *, most: int = PORTION) -> Iterator[Portion]:
    """Yield what each call takes, at least one portion even of nothing.

    What one record adds stays together, so a portion holds fewer than `most` events and one record
    more. A sighting goes with the first of its events: what it takes from an owner is never later
    than what its events add.
    """
    events: list[Event] = []
    sightings: set[Sighting] = set()
    known: set[Sighting] = set()
    for added, sighting in told:
        if len(events) >= most:
            yield Portion(tuple(events), frozenset(sightings))
            events, sightings = [], set()
        events += added
        if sighting is not None and sighting not in known:
            known.add(sighting)
            sightings.add(sighting)
    yield Portion(tuple(events), frozenset(sightings))
