"""Events of prompts as they go to the store: what many share is told once, and each prompt once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from control_plane.stores.seen import SEEN_BUCKET_S

Numbers: TypeAlias = Sequence[int | str]


class PromptKey(NamedTuple):
    """Which prompt of which owner. `suffix` is a digest: no prompt id is stored."""

    pseudonym: str
    suffix: str
    owner_bucket: int


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    """What many events tell alike, of whichever prompt and time. Two are the same if they are one.

    `kind` is the letter that evidence_4_prompts.lua knows it by, `guards` holds guard, name of the
    cell and treatment of each, `conforming` is -1 for what is no record of the contract check.
    `numbers` are those of events that have none of their own.
    """

    kind: str
    guards: tuple[tuple[str, str, str], ...]
    conforming: int
    numbers: Numbers
    health: tuple[str, ...]
    generation: int

    def packed(self) -> list[object]:
        """Return it as the store's ingest function reads it."""
        return [
            self.kind,
            self.guards,
            self.conforming,
            self.numbers,
            self.health,
            self.generation,
        ]


class BookedEvent(NamedTuple):
    """One event of a prompt: 63-bit digest of its identity, second since 1970, day in ISO 8601.

    `numbers` are its own; None where `like` has them.
    """

    like: Like
    digest: int
    second: int
    day: str
    numbers: Numbers | None = None


# A BookedEvent without its price: each record of a long run is one.
BookedTuple: TypeAlias = tuple[Like, int, int, str, Numbers | None]


class PromptEvents(NamedTuple):
    """Events of one prompt, in the order in which they came."""

    prompt: PromptKey
    events: Sequence[BookedTuple]


# Odd, so that multiplying by it loses nothing: the minutes of one identity are far apart.
_MINUTE = 0x9E3779B97F4A7C15
_TOKEN_BITS = 2**64 - 1


class PackedPrompts:
    """The events of a call by prompt, as evidence_4_prompts.lua reads them."""

    __slots__ = ("_day_places", "_like_places", "days", "likes", "prompts")

    def __init__(self) -> None:
        self.likes: list[list[object]] = []
        self.days: list[str] = []
        self.prompts: list[object] = []
        self._like_places: dict[Like, int] = {}
        self._day_places: dict[str, int] = {}

    def add(
        self,
        prompt: PromptKey,
        events: Sequence[BookedTuple],
    ) -> None:
        """Add events of a prompt; other events of it may be added before and after."""
        packed, likes, days = self.prompts, self._like_places, self._day_places
        minute = salt = 0
        packed += (prompt.suffix, prompt.pseudonym, prompt.owner_bucket, len(events))
        for like, digest, second, day, numbers in events:
            # An identity is remembered by minute, like those that are of no prompt.
            if second // SEEN_BUCKET_S != minute:
                minute = second // SEEN_BUCKET_S
                salt = minute * _MINUTE
            packed += (
                likes.get(like) or self._place_of_like(like),
                ((digest ^ salt) & _TOKEN_BITS).to_bytes(8, "big"),
                second,
                days.get(day) or self._place_of_day(day),
                numbers or False,
            )

    def _place_of_like(self, like: Like) -> int:
        self.likes.append(like.packed())
        self._like_places[like] = len(self.likes)
        return len(self.likes)

    def _place_of_day(self, day: str) -> int:
        self.days.append(day)
        self._day_places[day] = len(self.days)
        return len(self.days)
