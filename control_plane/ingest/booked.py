"""What a record adds to the evidence, and what vouches for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, TypeVar

from control_plane.commands.rollback import FoundViolation
from control_plane.stores import evidence_events as events
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION, Sighting
from control_plane.stores.evidence_points import PointEvent
from reducer.rollout.assignment import Assignment
from reducer.vocabulary import Invariant

CountedEvent: TypeAlias = events.PromptEvent | events.VolumeEvent | PointEvent | events.RefusedEvent

E = TypeVar("E", bound=CountedEvent)


class Backing(NamedTuple):
    """A verified assignment id: what it says, and the cell of what it vouches for."""

    assigned: Assignment
    cell: Cell


class Booked(NamedTuple):
    """What one record adds: events, the owner's sighting, and the invariants it violates.

    A record about several guards adds one event for each, with an identity of its own. Violations
    that nothing vouches for are only counted, by the events themselves.
    """

    events: tuple[CountedEvent, ...]
    sighting: Sighting | None = None
    violations: tuple[FoundViolation, ...] = ()

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """The sighting, if there is one."""
        return () if self.sighting is None else (self.sighting,)

    def of_untrusted(self) -> "Booked":
        """Return what the record of an untrusted producer adds: its violations are counted too."""
        if not self.violations:
            return self
        first, *rest = self.events
        broken = [each.invariant for each in self.violations]
        return Booked((counting(first, UNTRUSTED_VIOLATION, broken), *rest), self.sighting)


def counting(event: E, counter: str, broken: Sequence[Invariant]) -> E:
    """Return the event with what the invariants count as when it is new."""
    told = tuple(f"{counter}:{each}" for each in broken)
    return replace(event, health=(*event.health, *told)) if told else event
