"""Prompt parts: events of a host that never reports a whole prompt in one record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import check_count
from guardwave.reducer.vocabulary import Outcome

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
class BeginPart:
    """Begin of the prompt, in milliseconds since 1970."""

    at_ms: int

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["began", self.at_ms]


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """An answer of the model, with its tokens; `is_turn` marks a turn of the prompt itself.

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
class FailurePart:
    """A failed request to the model, after all retries."""

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["failed"]


@dataclass(frozen=True, slots=True)
class CallPart:
    """A settled tool call, at this millisecond since 1970."""

    at_ms: int

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["called", self.at_ms]


@dataclass(frozen=True, slots=True)
class StopPart:
    """A stop by a protection of the host, with the outcome that the prompt then has."""

    outcome: Outcome

    def packed(self) -> PackedPart:
        """Return the part as the store's functions read it."""
        return ["stopped", OUTCOME_PLACES[self.outcome]]


@dataclass(frozen=True, slots=True)
class FinishPart:
    """End of the prompt with an unknown outcome, after so many begun turns.

    `session` is the digest of its session, "" when that is not known.

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
class SpanPart:
    """A span over the whole prompt: its end, its outcome and the bucket of its duration.

    `hour` is that of its start. An outcome of `failed` gives way to that of a `StopPart`.

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
        # Lua arrays cannot hold nil: false means "not reported" there.
        bucket = False if self.duration_bucket is None else self.duration_bucket
        return ["closed", self.at_ms, self.hour, OUTCOME_PLACES[self.outcome], bucket, self.session]


@dataclass(frozen=True, slots=True)
class SessionDelta:
    """Opening of a session, for the first time or again, at this millisecond since 1970."""

    at_ms: int


# Parts that a prompt has several of: their numbers are summed.
SUMMED_PARTS = (AnswerPart, FailurePart, CallPart)
Part: TypeAlias = BeginPart | AnswerPart | FailurePart | CallPart | StopPart | FinishPart | SpanPart
