"""Evidence batch: the events and counters of one request, as the store's ingest function reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from guardwave.control_plane.stores.codec import pack
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey, check_count
from guardwave.control_plane.stores.evidence.delta.points import PointEvent
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    FIRST_DAY,
    EventRow,
    LoopDelta,
    PackedPrompts,
    PromptDelta,
    PromptEvents,
    PromptKey,
    SharedAttributes,
    TransitionDelta,
    delta_numbers,
    kind_and_numbers,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import SessionDelta
from guardwave.control_plane.stores.evidence.delta.strata import Stratum


class RejectedItems(NamedTuple):
    """Items of one service version that were rejected for the same reason.

    `counter` is `refused` or `quarantined`, `:`, and the reason. `digests` are their identities of
    63 bits. On `record_day` they count as records that do not conform; None where they are no
    records of the contract check. `instance` is a digest of the process that sent late or future
    items, for its clock may be wrong.
    """

    version: str
    counter: str
    digests: Sequence[int]
    record_day: date | None = None
    instance: str = ""

    def packed(self) -> list[object]:
        """Return them as the store's ingest function reads them."""
        day = "" if self.record_day is None else self.record_day.isoformat()
        digests = [str(digest) for digest in self.digests]
        return [self.version, self.counter, day, digests, self.instance]


# Places in an owner-day row, as evidence.lua has them; those of outcomes are with the parts.
STARTED_PLACE, ENDED_PLACE = 1, 16

# Counters of intake, each followed by `:` and an invariant; they have no other effect.
UNTRUSTED_VIOLATION = "untrusted_violation"
UNVERIFIED_VIOLATION = "unvouched_violation"
_MOST_SHARED = 4096


@dataclass(frozen=True, slots=True)
class PromptEvent:
    """One event of a prompt that carries a verified assignment id for each guard in `strata`.

    Start, end and disruption are of the whole prompt, whichever of its guards they name; a
    transition and a loop are of one guard. `health` names counters of intake that it raises by one
    when it is new. `generation` is that of its assignment id. `is_conforming` is None for a part of
    a prompt, a loop and an opened session, which are no records of the contract check.

    Raises:
        ValueError: no guard, a guard named twice, or a transition or a loop of several guards.
    """

    dedupe_key: DedupeKey
    prompt: PromptKey
    day: date
    strata: tuple[Stratum, ...]
    is_conforming: bool | None
    delta: PromptDelta
    health: tuple[str, ...] = ()
    generation: int = 0

    def __post_init__(self) -> None:
        if len(self.strata) == 1:
            return
        guards = {stratum.guard for stratum in self.strata}
        if not guards or len(guards) < len(self.strata):
            raise ValueError(f"strata={self.strata}; name each guard of the event once")
        if isinstance(self.delta, TransitionDelta | LoopDelta) and len(guards) > 1:
            kind = "transition" if isinstance(self.delta, TransitionDelta) else "loop"
            raise ValueError(f"a {kind} of {len(guards)} guards; send one event for each")

    def shared_attributes(self) -> SharedAttributes:
        """Return the attributes that do not depend on prompt and time, with its numbers."""
        return replace(self._without_numbers(), numbers=delta_numbers(self.delta))

    def row(self) -> EventRow:
        """Return the event as a row of its prompt, with all of its numbers in the row."""
        day, numbers = self.day.toordinal() - FIRST_DAY, delta_numbers(self.delta)
        return EventRow(
            self._without_numbers(), self.dedupe_key.digest, self.dedupe_key.second, day, numbers
        )

    def _without_numbers(self) -> SharedAttributes:
        return _shared_attributes(
            kind_and_numbers(self.delta)[0],
            self.strata,
            is_conforming=self.is_conforming,
            health=self.health,
            generation=self.generation,
        )

    def packed(self) -> list[object]:
        """Return the event as the store reads it when it is of no prompt, but opens a session."""
        kind, numbers = kind_and_numbers(self.delta)
        guards = [[stratum.guard, stratum.name, stratum.treatment] for stratum in self.strata]
        return [
            kind,
            str(self.dedupe_key.digest),
            self.dedupe_key.bucket,
            self.prompt.suffix,
            self.prompt.pseudonym,
            self.prompt.owner_bucket,
            self.day.isoformat(),
            self.dedupe_key.second,
            guards,
            -1 if self.is_conforming is None else int(self.is_conforming),
            numbers,
            self.health,
            self.generation,
        ]


@dataclass(frozen=True, slots=True)
class VolumeEvent:
    """A count by stratum and day, without an owner; `counter` is its name.

    `is_conforming` is None for a metric point, which is no record of the contract check. `health`
    is as for a prompt's event.

    Raises:
        ValueError: `by` is negative or beyond 2**53 - 1.
    """

    dedupe_key: DedupeKey
    day: date
    stratum: Stratum
    counter: str
    by: int = 1
    is_conforming: bool | None = None
    health: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("by", self.by)

    def packed(self) -> list[object]:
        """Return the event as the Lua library reads it."""
        conforming = -1 if self.is_conforming is None else int(self.is_conforming)
        target = [self.stratum.name, self.counter]
        head = [
            "v",
            str(self.dedupe_key.digest),
            self.dedupe_key.bucket,
            "",
            "",
            0,
            self.day.isoformat(),
        ]
        return [*head, self.dedupe_key.second, target, conforming, [self.by], self.health]


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """A violation of a rejected item: it raises counters of intake, and nothing else.

    Also a violation of an accepted point, which later points of its stream repeat.
    """

    dedupe_key: DedupeKey
    health: tuple[str, ...] = ()

    def packed(self) -> list[object]:
        """Return the event as the Lua library reads it."""
        head = ["r", str(self.dedupe_key.digest), self.dedupe_key.bucket, "", "", 0, ""]
        return [*head, self.dedupe_key.second, [], -1, [], self.health]


class OwnerActivity(NamedTuple):
    """Activity of an owner on a day: its version and producer, from an accepted record."""

    pseudonym: str
    version: str
    producer: str
    day: date
    oldest_kept: date
    is_of_prompt: bool

    def packed(self) -> list[object]:
        """Return the activity as the Lua library reads it."""
        days = [_iso(self.day), _iso(self.oldest_kept)]
        return [self.pseudonym, self.version, self.producer, *days, int(self.is_of_prompt)]


# Every prompt gives an activity, on the same few days.
_iso = lru_cache(maxsize=64)(date.isoformat)


@lru_cache(_MOST_SHARED)
def _shared_attributes(
    kind: str,
    strata: tuple[Stratum, ...],
    *,
    is_conforming: bool | None,
    health: tuple[str, ...],
    generation: int,
) -> SharedAttributes:
    guards = tuple((stratum.guard, stratum.name, stratum.treatment) for stratum in strata)
    conforming = -1 if is_conforming is None else int(is_conforming)
    return SharedAttributes(kind, guards, conforming, (), health, generation)


Event = PromptEvents | PromptEvent | VolumeEvent | PointEvent | RejectedEvent


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """All that one request adds in one shard.

    `health` and `sources` (by version) count an item each time it comes; `rejected` counts each
    item once. `producer` is the token that sent it, `now_second` when it came, on the environment's
    clock.
    """

    events: tuple[Event, ...]
    activity: frozenset[OwnerActivity] = frozenset()
    health: Mapping[str, int] = field(default_factory=dict)
    last_record_second: int = 0
    now_second: int = 0
    producer: str = ""
    is_trusted: bool = False
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rejected: tuple[RejectedItems, ...] = ()

    def packed(self) -> bytes:
        """Return the batch as the Lua library reads it."""
        packed, others = PackedPrompts(), list[list[object]]()
        for event in self.events:
            match event:
                case PromptEvents():
                    packed.add(event)
                case PromptEvent(delta=delta) if not isinstance(delta, SessionDelta):
                    packed.add(PromptEvents.of(event.prompt, (event.row(),)))
                case _:
                    others.append(event.packed())
        payload = {
            "likes": packed.shared,
            "prompts": packed.prompts,
            "events": others,
            "sightings": [owner.packed() for owner in self.activity],
            "health": dict(self.health),
            "last": self.last_record_second,
            "now": self.now_second,
            "producer": self.producer,
            "trusted": int(self.is_trusted),
            "sources": {version: dict(counts) for version, counts in self.sources.items()},
            "refused": [items.packed() for items in self.rejected],
        }
        return pack(payload)
