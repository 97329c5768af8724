"""Evidence delta: what one record adds to the evidence, and the assignment that verifies it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from guardwave.control_plane.commands.rollback import FoundViolation
from guardwave.control_plane.stores.evidence.delta import request as events
from guardwave.control_plane.stores.evidence.delta.points import PointEvent
from guardwave.control_plane.stores.evidence.delta.request import UNTRUSTED_VIOLATION, OwnerActivity
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.catalogue import CATALOGUE
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.pseudonym import pack
from guardwave.reducer.vocabulary import Invariant

CountedEvent: TypeAlias = (
    events.PromptEvent | events.VolumeEvent | PointEvent | events.RejectedEvent
)

E = TypeVar("E", bound=CountedEvent)

UNNAMED_GUARD = "unnamed"
# A body repeats ids, prompts and owners: each is computed once.
REMEMBERED = 16_384


class VerifiedAssignment(NamedTuple):
    """An assignment id whose tag was checked: its content, and the stratum of its evidence."""

    assignment: Assignment
    stratum: Stratum


class EvidenceDelta(NamedTuple):
    """Events, owner activity and violations that one record adds.

    A record about several guards adds one event for each, with an identity of its own. Violations
    without a verified assignment are only counted, by the events themselves.
    """

    events: tuple[CountedEvent, ...]
    owner_activity: OwnerActivity | None = None
    violations: tuple[FoundViolation, ...] = ()

    @property
    def activity(self) -> tuple[OwnerActivity, ...]:
        """The owner's activity, as a tuple of one or none."""
        return () if self.owner_activity is None else (self.owner_activity,)

    def from_untrusted(self) -> "EvidenceDelta":
        """Return the delta for an untrusted producer: its violations are only counted."""
        if not self.violations:
            return self
        first, *rest = self.events
        broken = [violation.invariant for violation in self.violations]
        return EvidenceDelta(
            (with_counters(first, UNTRUSTED_VIOLATION, broken), *rest), self.owner_activity
        )


def with_counters(event: E, counter: str, broken: Sequence[Invariant]) -> E:
    """Return the event with a counter for each invariant, raised when the event is new."""
    counters = tuple(f"{counter}:{invariant}" for invariant in broken)
    return replace(event, health=(*event.health, *counters)) if counters else event


def known_guard(guard: str | None) -> str:
    """Return the guard that volume is counted under: one of the catalogue, or "unnamed"."""
    return UNNAMED_GUARD if guard is None or guard not in CATALOGUE else guard


@lru_cache(REMEMBERED)
def owner_bucket(pseudonym: str) -> int:
    """Return the owner bucket of a well-formed pseudonym."""
    return pack(pseudonym)[0]
