"""What one request adds to the evidence, in the form the store's ingest function reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import msgpack

from control_plane.stores.cells import Cell
from reducer.vocabulary import Outcome

# Places in an owner-day row; evidence.lua holds the same list.
OUTCOME_PLACES: Mapping[Outcome, int] = {
    Outcome.CANCELLED: 2,
    Outcome.COMPLETED: 3,
    Outcome.FAILED: 4,
    Outcome.GUARD_STOPPED: 5,
    Outcome.LIMIT: 6,
}

# Seen identities are kept in one set for each ten minutes of event time.
SEEN_BUCKET_S = 600


@dataclass(frozen=True, slots=True)
class Seen:
    """What makes an event the same event: a 63-bit digest, and its time in seconds since 1970."""

    digest: int
    second: int

    @property
    def bucket(self) -> int:
        """Which ten minutes of event time the digest is remembered with."""
        return self.second // SEEN_BUCKET_S


@dataclass(frozen=True, slots=True)
class PromptKey:
    """Which prompt of which owner. `suffix` is a digest: no prompt id is stored."""

    pseudonym: str
    suffix: str
    owner_bucket: int


@dataclass(frozen=True, slots=True)
class Started:
    """A prompt began, in this hour of its day."""

    hour: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A prompt ended. `duration_bucket` is the base-2 exponential bucket at scale 7.

    None says that the host did not report it; without `transitions` a prompt is never covered.
    """

    outcome: Outcome
    tokens: int
    turns: int
    duration_bucket: int | None
    transitions: int | None
    calls_after_would_stop: int
    hour: int


@dataclass(frozen=True, slots=True)
class Transitioned:
    """A guard decided within a prompt."""

    sequence: int
    is_would_stop: bool
    is_stop: bool
    is_unreliable_input: bool


@dataclass(frozen=True, slots=True)
class Disrupted:
    """After its end a prompt's user disconnected or tried again."""


PromptNews = Started | Ended | Transitioned | Disrupted


@dataclass(frozen=True, slots=True)
class PromptEvent:
    """One event of a prompt that carries a verified assignment id for each guard in `cells`."""

    seen: Seen
    prompt: PromptKey
    day: date
    cells: tuple[Cell, ...]
    is_conforming: bool
    news: PromptNews

    def packed(self) -> list[object]:
        """Return the event as evidence.lua reads it."""
        kind, numbers = _news(self.news)
        pairs = [[cell.guard, cell.name] for cell in self.cells]
        return [
            kind,
            str(self.seen.digest),
            self.seen.bucket,
            self.prompt.suffix,
            self.prompt.pseudonym,
            self.prompt.owner_bucket,
            self.day.isoformat(),
            self.seen.second,
            pairs,
            int(self.is_conforming),
            numbers,
        ]


@dataclass(frozen=True, slots=True)
class VolumeEvent:
    """Something counted by cell and day and not by owner. `counter` names what, in one string.

    `is_conforming` is None for a metric point, which is no record of the contract check.
    """

    seen: Seen
    day: date
    cell: Cell
    counter: str
    by: int = 1
    is_conforming: bool | None = None

    def packed(self) -> list[object]:
        """Return the event as evidence.lua reads it."""
        conforming = -1 if self.is_conforming is None else int(self.is_conforming)
        target = [self.cell.name, self.counter]
        head = ["v", str(self.seen.digest), self.seen.bucket, "", "", 0, self.day.isoformat()]
        return [*head, self.seen.second, target, conforming, [self.by]]


@dataclass(frozen=True, slots=True)
class QuarantinedEvent:
    """A record without environment or version: it counts as a record, and as nothing else."""

    seen: Seen
    day: date

    def packed(self) -> list[object]:
        """Return the event as evidence.lua reads it."""
        head = ["q", str(self.seen.digest), self.seen.bucket, "", "", 0, self.day.isoformat()]
        return [*head, self.seen.second, [], 0, []]


def _news(news: PromptNews) -> tuple[str, list[int]]:
    match news:
        case Started(hour=hour):
            return "s", [hour]
        case Ended():
            return "e", [
                OUTCOME_PLACES[news.outcome],
                news.tokens,
                news.turns,
                # Lua arrays cannot hold nil: false and -1 say "not reported" there.
                False if news.duration_bucket is None else news.duration_bucket,
                -1 if news.transitions is None else news.transitions,
                news.calls_after_would_stop,
                news.hour,
            ]
        case Transitioned():
            flags = (news.is_would_stop, news.is_stop, news.is_unreliable_input)
            return "t", [news.sequence, *(int(flag) for flag in flags)]
        case Disrupted():
            return "d", []


@dataclass(frozen=True, slots=True)
class Sighting:
    """An accepted record showed this owner with this version through this producer, on this day."""

    pseudonym: str
    version: str
    producer: str
    day: date
    oldest_kept: date
    is_of_prompt: bool

    def packed(self) -> list[object]:
        """Return the sighting as evidence.lua reads it."""
        days = [self.day.isoformat(), self.oldest_kept.isoformat()]
        return [self.pseudonym, self.version, self.producer, *days, int(self.is_of_prompt)]


Event = PromptEvent | VolumeEvent | QuarantinedEvent


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """All that one request adds in one shard. `health` counts what was refused, by reason."""

    events: tuple[Event, ...]
    sightings: frozenset[Sighting] = frozenset()
    health: Mapping[str, int] = field(default_factory=dict)
    last_record_second: int = 0

    def packed(self) -> bytes:
        """Return the batch as msgpack without the bin type, which the store's reader lacks."""
        payload = {
            "events": [event.packed() for event in self.events],
            "sightings": [sighting.packed() for sighting in self.sightings],
            "health": dict(self.health),
            "last": self.last_record_second,
        }
        return bytes(msgpack.packb(payload, use_bin_type=False))
