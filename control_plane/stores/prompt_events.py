"""Events of prompts as they go to the store: what many share is told once, and each prompt once."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, TypeAlias

from control_plane.stores.seen import SEEN_BUCKET_S

Numbers: TypeAlias = Sequence[int | str]

FIRST_DAY = date(1970, 1, 1).toordinal()


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
    """One event of a prompt: digest of its identity, second since 1970, UTC day from 1970.

    The digest counts modulo 2**64. `numbers` are the event's own; None where `like` has them.
    """

    like: Like
    digest: int
    second: int
    day: int
    numbers: Numbers | None = None


# Second, day and numbers of an event, False for those of its like: what it has of its own.
Own: TypeAlias = int | Numbers
OWN_FIELDS = 3


class PromptEvents(NamedTuple):
    """Events of one prompt, in the order in which they came, each of them told in columns.

    `tokens` has TOKEN bytes of each, `own` the OWN_FIELDS of each: objects for each would be most
    of what an event costs.
    """

    pseudonym: str
    suffix: str
    owner_bucket: int
    likes: tuple[Like, ...]
    tokens: bytes
    own: Sequence[Own]

    @property
    def prompt(self) -> PromptKey:
        """Which prompt of which owner they are of."""
        return PromptKey(self.pseudonym, self.suffix, self.owner_bucket)

    @classmethod
    def of(cls, prompt: PromptKey, events: Iterable[BookedEvent]) -> "PromptEvents":
        """Return what the events tell."""
        likes: list[Like] = []
        tokens: list[int] = []
        own: list[Own] = []
        for like, digest, second, day, numbers in events:
            likes.append(like)
            tokens.append(digest & _TOKEN_BITS ^ minute_bits(second))
            own += (second, day, numbers or False)
        return cls(*prompt, tuple(likes), packed_tokens(tokens), own)

    def cut(self, most: int) -> "Iterable[PromptEvents]":
        """Yield the events in pieces of so many at most."""
        for start in range(0, len(self.likes), most):
            end = start + most
            yield self._replace(
                likes=self.likes[start:end],
                tokens=self.tokens[start * TOKEN : end * TOKEN],
                own=self.own[start * OWN_FIELDS : end * OWN_FIELDS],
            )


TOKEN = 8
# Odd, so that multiplying by it loses nothing: the minutes of one identity are far apart.
_MINUTE = 0x9E3779B97F4A7C15
_TOKEN_BITS = 2**64 - 1


def minute_bits(second: int) -> int:
    """Return what the token of an event of this second has of its minute.

    The token is the exclusive or of this and the digest: an identity is remembered by minute, like
    those that are of no prompt.
    """
    return second // SEEN_BUCKET_S * _MINUTE & _TOKEN_BITS


def packed_tokens(tokens: Sequence[int]) -> bytes:
    """Return the tokens, each from 0 to 2**64 - 1, one behind the other."""
    return struct.pack(f">{len(tokens)}Q", *tokens)


class Halves:
    """What the tokens of a row of events have of their own, to be joined with what they share.

    One operation on a long number does for all of them what would be one for each.
    """

    __slots__ = ("_bytes", "_halves", "_ones")

    def __init__(self, halves: Sequence[int]) -> None:
        self._bytes = TOKEN * len(halves)
        self._halves = int.from_bytes(packed_tokens(halves))
        self._ones = int.from_bytes(packed_tokens([1] * len(halves)))

    def tokens(self, shared: int) -> bytes:
        """Return the exclusive or of each and what they share, from 0 to 2**64 - 1."""
        return (self._halves ^ shared * self._ones).to_bytes(self._bytes)


class PackedPrompts:
    """The events of a call by prompt, as evidence_4_prompts.lua reads them."""

    __slots__ = ("_places", "_written", "likes", "prompts")

    def __init__(self) -> None:
        self.likes: list[list[object]] = []
        self.prompts: list[object] = []
        self._places: dict[Like, int] = {}
        self._written: dict[tuple[Like, ...], bytes] = {}

    def add(self, told: PromptEvents) -> None:
        """Add events of a prompt; other events of it may be added before and after."""
        pseudonym, suffix, bucket, likes, tokens, own = told
        places = self._written.get(likes)
        if places is None:
            places = self._write(likes)
        self.prompts += (suffix, pseudonym, bucket, places, tokens)
        self.prompts += own

    def _write(self, likes: tuple[Like, ...]) -> bytes:
        """Return the places of the likes; what one prompt tells, many tell in that order."""
        places = [self._places.get(like) or self._place_of(like) for like in likes]
        self._written[likes] = written = struct.pack(f">{len(places)}H", *places)
        return written

    def _place_of(self, like: Like) -> int:
        self.likes.append(like.packed())
        self._places[like] = len(self.likes)
        return len(self.likes)
