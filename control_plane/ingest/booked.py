"""What a record adds to the evidence, and what vouches for it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from control_plane.commands.rollback import FoundViolation
from control_plane.stores import evidence_events as events
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION, Sighting
from control_plane.stores.evidence_points import PointEvent
from reducer.catalogue import CATALOGUE
from reducer.rollout.assignment import Assignment
from reducer.rollout.pseudonym import pack
from reducer.vocabulary import Invariant

CountedEvent: TypeAlias = events.PromptEvent | events.VolumeEvent | PointEvent | events.RefusedEvent

E = TypeVar("E", bound=CountedEvent)

UNNAMED_GUARD = "unnamed"
# What a body repeats is worked out once: its owners' ids, their prompts, and who was seen.
REMEMBERED = 16_384


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


def known_guard(guard: str | None) -> str:
    """Return the guard that volume is booked under: one of the catalogue, or none in particular."""
    return UNNAMED_GUARD if guard is None or guard not in CATALOGUE else guard


@lru_cache(REMEMBERED)
def owner_bucket(pseudonym: str) -> int:
    """Return the bucket of the owner that a well-formed pseudonym stands for."""
    return pack(pseudonym)[0]
