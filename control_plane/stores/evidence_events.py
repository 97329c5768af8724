"""What one request adds to the evidence, in the form the store's ingest function reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from control_plane.stores.cells import Cell
from control_plane.stores.evidence_parts import Opened
from control_plane.stores.evidence_points import PointEvent
from control_plane.stores.packing import pack
from control_plane.stores.prompt_events import (
    FIRST_DAY,
    BookedEvent,
    Like,
    PackedPrompts,
    PromptEvents,
    PromptKey,
)
from control_plane.stores.prompt_news import (
    Looped,
    PromptNews,
    Transitioned,
    kind_and_numbers,
    numbers_of_news,
)
from control_plane.stores.refused_items import RefusedItems
from control_plane.stores.seen import Seen, check_count

# Places in an owner-day row, as evidence.lua has them; those of outcomes are with the parts.
STARTED_PLACE, ENDED_PLACE = 1, 16

# Counters of intake, each followed by `:` and an invariant. What they count changes nothing else.
UNTRUSTED_VIOLATION = "untrusted_violation"
UNVOUCHED_VIOLATION = "unvouched_violation"
_LIKES = 4096


@dataclass(frozen=True, slots=True)
class PromptEvent:
    """One event of a prompt that carries a verified assignment id for each guard in `cells`.

    Start, end and disruption are of the whole prompt, whichever of its guards they name; a
    transition and a loop are of one guard. `health` names counters of intake that it raises by one
    when it is new. `generation` is that of its assignment id. `is_conforming` is None for a part of
    a prompt, a loop and an opened session, which are no records of the contract check.

    Raises:
        ValueError: no guard, a guard named twice, or a transition or a loop of several guards.
    """

    seen: Seen
    prompt: PromptKey
    day: date
    cells: tuple[Cell, ...]
    is_conforming: bool | None
    news: PromptNews
    health: tuple[str, ...] = ()
    generation: int = 0

    def __post_init__(self) -> None:
        if len(self.cells) == 1:
            return
        guards = {cell.guard for cell in self.cells}
        if not guards or len(guards) < len(self.cells):
            raise ValueError(f"cells={self.cells}; name each guard of the event once")
        if isinstance(self.news, Transitioned | Looped) and len(guards) > 1:
            said = "transition" if isinstance(self.news, Transitioned) else "loop"
            raise ValueError(f"a {said} of {len(guards)} guards; send one event for each")

    def like(self) -> Like:
        """Return what the event tells, of whichever prompt and time."""
        return replace(self._alike(), numbers=numbers_of_news(self.news))

    def booked(self) -> BookedEvent:
        """Return the event as its prompt tells it, with all of its numbers its own."""
        day, numbers = self.day.toordinal() - FIRST_DAY, numbers_of_news(self.news)
        return BookedEvent(self._alike(), self.seen.digest, self.seen.second, day, numbers)

    def _alike(self) -> Like:
        return _like(
            kind_and_numbers(self.news)[0],
            self.cells,
            is_conforming=self.is_conforming,
            health=self.health,
            generation=self.generation,
        )

    def packed(self) -> list[object]:
        """Return the event as the store reads it where it is of no prompt: a session was opened."""
        kind, numbers = kind_and_numbers(self.news)
        guards = [[cell.guard, cell.name, cell.treatment] for cell in self.cells]
        return [
            kind,
            str(self.seen.digest),
            self.seen.bucket,
            self.prompt.suffix,
            self.prompt.pseudonym,
            self.prompt.owner_bucket,
            self.day.isoformat(),
            self.seen.second,
            guards,
            -1 if self.is_conforming is None else int(self.is_conforming),
            numbers,
            self.health,
            self.generation,
        ]


@dataclass(frozen=True, slots=True)
class VolumeEvent:
    """Something counted by cell and day and not by owner. `counter` names what, in one string.

    `is_conforming` is None for a metric point, which is no record of the contract check. `health`
    is as for a prompt's event.

    Raises:
        ValueError: `by` is negative or beyond 2**53 - 1.
    """

    seen: Seen
    day: date
    cell: Cell
    counter: str
    by: int = 1
    is_conforming: bool | None = None
    health: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("by", self.by)

    def packed(self) -> list[object]:
        """Return the event as evidence_5_calls.lua reads it."""
        conforming = -1 if self.is_conforming is None else int(self.is_conforming)
        target = [self.cell.name, self.counter]
        head = ["v", str(self.seen.digest), self.seen.bucket, "", "", 0, self.day.isoformat()]
        return [*head, self.seen.second, target, conforming, [self.by], self.health]


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """A refused item that showed a violation: it raises counters of intake, and nothing else.

    Or a violation that an accepted point shows, and later points of its stream show again.
    """

    seen: Seen
    health: tuple[str, ...] = ()

    def packed(self) -> list[object]:
        """Return the event as evidence_5_calls.lua reads it."""
        head = ["r", str(self.seen.digest), self.seen.bucket, "", "", 0, ""]
        return [*head, self.seen.second, [], -1, [], self.health]


class Sighting(NamedTuple):
    """An accepted record showed this owner with this version through this producer, on this day."""

    pseudonym: str
    version: str
    producer: str
    day: date
    oldest_kept: date
    is_of_prompt: bool

    def packed(self) -> list[object]:
        """Return the sighting as evidence_4_owners.lua reads it."""
        days = [_iso(self.day), _iso(self.oldest_kept)]
        return [self.pseudonym, self.version, self.producer, *days, int(self.is_of_prompt)]


# An owner is sighted with every prompt, on the same few days.
_iso = lru_cache(maxsize=64)(date.isoformat)


@lru_cache(_LIKES)
def _like(
    kind: str,
    cells: tuple[Cell, ...],
    *,
    is_conforming: bool | None,
    health: tuple[str, ...],
    generation: int,
) -> Like:
    guards = tuple((cell.guard, cell.name, cell.treatment) for cell in cells)
    conforming = -1 if is_conforming is None else int(is_conforming)
    return Like(kind, guards, conforming, (), health, generation)


Event = PromptEvents | PromptEvent | VolumeEvent | PointEvent | RefusedEvent


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """All that one request adds in one shard.

    `health` and `sources` (by version) count an item each time it comes; `refused` counts each item
    once. `producer` is the token that sent it, `now_second` when it came, on the environment's
    clock.
    """

    events: tuple[Event, ...]
    sightings: frozenset[Sighting] = frozenset()
    health: Mapping[str, int] = field(default_factory=dict)
    last_record_second: int = 0
    now_second: int = 0
    producer: str = ""
    is_trusted: bool = False
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    refused: tuple[RefusedItems, ...] = ()

    def packed(self) -> bytes:
        """Return the batch as evidence_5_calls.lua reads it."""
        packed, others = PackedPrompts(), list[list[object]]()
        for event in self.events:
            match event:
                case PromptEvents():
                    packed.add(event)
                case PromptEvent(news=news) if not isinstance(news, Opened):
                    packed.add(PromptEvents.of(event.prompt, (event.booked(),)))
                case _:
                    others.append(event.packed())
        payload = {
            "likes": packed.likes,
            "prompts": packed.prompts,
            "events": others,
            "sightings": [sighting.packed() for sighting in self.sightings],
            "health": dict(self.health),
            "last": self.last_record_second,
            "now": self.now_second,
            "producer": self.producer,
            "trusted": int(self.is_trusted),
            "sources": {version: dict(counts) for version, counts in self.sources.items()},
            "refused": [items.packed() for items in self.refused],
        }
        return pack(payload)
