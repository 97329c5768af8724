"""Events of prompts as they go to the store: what many share is told once, and each prompt once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Numbers: TypeAlias = Sequence[int | str]


@dataclass(frozen=True, slots=True)
class PromptKey:
    """Which prompt of which owner. `suffix` is a digest: no prompt id is stored."""

    pseudonym: str
    suffix: str
    owner_bucket: int


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    """What many events tell alike, of whichever prompt and time. Two are the same if they are one.

    `kind` is the letter that evidence_5_calls.lua knows it by, `guards` holds guard, name of the
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


class ToldEvent(NamedTuple):
    """One event of a prompt: 63-bit digest of its identity, second since 1970, day in ISO 8601.

    A plain tuple will do as well. `numbers` are its own; None where `like` has them.
    """

    like: Like
    digest: int
    second: int
    day: str
    numbers: Numbers | None = None


class PromptEvents(NamedTuple):
    """Events of one prompt, in the order in which they came."""

    prompt: PromptKey
    events: Sequence[ToldEvent | tuple[Like, int, int, str, Numbers | None]]
