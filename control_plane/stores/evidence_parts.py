"""A prompt told in parts: what a host says that never says in one record how a prompt ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from control_plane.stores.seen import check_count
from reducer.vocabulary import Outcome

# Places in an owner-day row; the Lua library holds the same list.
OUTCOME_PLACES: Mapping[Outcome, int] = {
    Outcome.CANCELLED: 2,
    Outcome.COMPLETED: 3,
    Outcome.FAILED: 4,
    Outcome.GUARD_STOPPED: 5,
    Outcome.LIMIT: 6,
}

PackedPart: TypeAlias = list[int | str]


@dataclass(frozen=True, slots=True)
class Began:
    """The prompt began at this millisecond since 1970."""

    at_ms: int

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["began", self.at_ms]


@dataclass(frozen=True, slots=True)
class Answered:
    """The model answered one request with so many tokens; `is_turn` is one of the prompt's own.

    `tokens` is None when the host did not report them: the prompt's end then does not conform.

    Raises:
        ValueError: the tokens are negative or beyond 2**53 - 1.
    """

    tokens: int | None
    is_turn: bool

    def __post_init__(self) -> None:
        check_count("tokens", self.tokens or 0)

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["answered", -1 if self.tokens is None else self.tokens, int(self.is_turn)]


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request to the model failed for good."""

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["failed"]


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call settled at this millisecond since 1970."""

    at_ms: int

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["called", self.at_ms]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A protection of the host ended the prompt, which then has this outcome."""

    outcome: Outcome

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["stopped", OUTCOME_PLACES[self.outcome]]


@dataclass(frozen=True, slots=True)
class Finished:
    """The prompt is over, however it ended, after so many begun turns.

    `session` is the digest of the session that it was part of, "" when that is not known.

    Raises:
        ValueError: a number is negative or too large.
    """

    at_ms: int
    hour: int
    turns: int
    session: str = ""

    def __post_init__(self) -> None:
        check_count("hour", self.hour, most=23)
        check_count("turns", self.turns)

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["finished", self.at_ms, self.hour, self.turns, self.session]


@dataclass(frozen=True, slots=True)
class Closed:
    """A span over the whole prompt: when it ended, how, and the bucket of its duration.

    `hour` is that of its start. An outcome of `failed` gives way to what a protection ended it as.

    Raises:
        ValueError: there is no such hour.
    """

    at_ms: int
    hour: int
    outcome: Outcome
    duration_bucket: int | None
    session: str = ""

    def __post_init__(self) -> None:
        check_count("hour", self.hour, most=23)

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        # Lua arrays cannot hold nil: false says "not reported" there.
        bucket = False if self.duration_bucket is None else self.duration_bucket
        return ["closed", self.at_ms, self.hour, OUTCOME_PLACES[self.outcome], bucket, self.session]


@dataclass(frozen=True, slots=True)
class Opened:
    """A session was opened, for the first time or again, at this millisecond since 1970."""

    at_ms: int


# Parts of which a prompt has several: what they tell is added up.
ADDED_UP = (Answered, RequestFailed, Called)
Part: TypeAlias = Began | Answered | RequestFailed | Called | Stopped | Finished | Closed
