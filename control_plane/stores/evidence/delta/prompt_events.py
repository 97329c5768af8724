"""Prompt events: events grouped by prompt, with the attributes that many share packed once."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, TypeAlias

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DEDUPE_BUCKET_S, check_count
from guardwave.control_plane.stores.evidence.delta.prompt_parts import (
    OUTCOME_PLACES,
    Part,
    SessionDelta,
)
from guardwave.reducer.vocabulary import DisruptionKind, Outcome

Numbers: TypeAlias = Sequence[int | str]

FIRST_DAY = date(1970, 1, 1).toordinal()


class PromptKey(NamedTuple):
    """Owner and digest of a prompt; its id is not stored."""

    pseudonym: str
    suffix: str
    owner_bucket: int


@dataclass(frozen=True, slots=True, eq=False)
class SharedAttributes:
    """Attributes shared by many events, of any prompt and time; compared by identity.

    `kind` is the event's letter in the Lua library, `guards` holds guard, name of the stratum and
    treatment of each, `conforming` is -1 for an event outside of the contract check. `numbers` are
    those of events that have none in their values.
    """

    kind: str
    guards: tuple[tuple[str, str, str], ...]
    conforming: int
    numbers: Numbers
    health: tuple[str, ...]
    generation: int

    def packed(self) -> list[object]:
        """Return the attributes as the store's ingest function reads them."""
        return [
            self.kind,
            self.guards,
            self.conforming,
            self.numbers,
            self.health,
            self.generation,
        ]


class EventRow(NamedTuple):
    """One event of a prompt: digest of its identity, second since 1970, UTC day from 1970.

    The digest counts modulo 2**64. `numbers` is None where the shared attributes have them.
    """

    shared: SharedAttributes
    digest: int
    second: int
    day: int
    numbers: Numbers | None = None


# An event's values are second, day and numbers; False stands for the numbers of its attributes.
EventValue: TypeAlias = int | Numbers
VALUES_PER_EVENT = 3


class PromptEvents(NamedTuple):
    """Events of one prompt in their order, stored in columns.

    `tokens` has TOKEN bytes of each, `values` VALUES_PER_EVENT of each: objects for each would be
    most of an event's cost.
    """

    pseudonym: str
    suffix: str
    owner_bucket: int
    shared: tuple[SharedAttributes, ...]
    tokens: bytes
    values: Sequence[EventValue]

    @property
    def prompt(self) -> PromptKey:
        """Key of the prompt."""
        return PromptKey(self.pseudonym, self.suffix, self.owner_bucket)

    @classmethod
    def of(cls, prompt: PromptKey, rows: Iterable[EventRow]) -> "PromptEvents":
        """Return the events of a prompt in columns."""
        attributes: list[SharedAttributes] = []
        tokens: list[int] = []
        values: list[EventValue] = []
        for shared, digest, second, day, numbers in rows:
            attributes.append(shared)
            tokens.append(digest & _TOKEN_BITS ^ minute_bits(second))
            values += (second, day, numbers or False)
        return cls(*prompt, tuple(attributes), packed_tokens(tokens), values)

    def split(self, most: int) -> "Iterable[PromptEvents]":
        """Yield the events in pieces of at most so many."""
        for start in range(0, len(self.shared), most):
            end = start + most
            yield self._replace(
                shared=self.shared[start:end],
                tokens=self.tokens[start * TOKEN : end * TOKEN],
                values=self.values[start * VALUES_PER_EVENT : end * VALUES_PER_EVENT],
            )


TOKEN = 8
# Odd, so that multiplying by it loses nothing: the minutes of one identity are far apart.
_MINUTE = 0x9E3779B97F4A7C15
_TOKEN_BITS = 2**64 - 1


def minute_bits(second: int) -> int:
    """Return the part of a token that depends on the minute of its event.

    A token is the exclusive or of this and the digest: prompts remember an identity by minute, as
    dedupe keys of other events are kept.
    """
    return second // DEDUPE_BUCKET_S * _MINUTE & _TOKEN_BITS


def packed_tokens(tokens: Sequence[int]) -> bytes:
    """Return the tokens, each from 0 to 2**64 - 1, one behind the other."""
    return struct.pack(f">{len(tokens)}Q", *tokens)


class PartialDigests:
    """Parts of the tokens of a row of events, to be combined with the part that they share.

    One operation on a long number replaces one for each event.
    """

    __slots__ = ("_bytes", "_digests", "_ones")

    def __init__(self, digests: Sequence[int]) -> None:
        self._bytes = TOKEN * len(digests)
        self._digests = int.from_bytes(packed_tokens(digests))
        self._ones = int.from_bytes(packed_tokens([1] * len(digests)))

    def tokens(self, shared: int) -> bytes:
        """Return the exclusive or of each with the shared part, from 0 to 2**64 - 1."""
        return (self._digests ^ shared * self._ones).to_bytes(self._bytes)


class PackedPrompts:
    """The events of a call by prompt, as the Lua library reads them."""

    __slots__ = ("_packed", "_places", "prompts", "shared")

    def __init__(self) -> None:
        self.shared: list[list[object]] = []
        self.prompts: list[object] = []
        self._places: dict[SharedAttributes, int] = {}
        # many prompts have the same attributes in the same order
        self._packed: dict[tuple[SharedAttributes, ...], bytes] = {}

    def add(self, events: PromptEvents) -> None:
        """Add events of a prompt; other events of it may be added before and after."""
        pseudonym, suffix, bucket, attributes, tokens, values = events
        places = self._packed.get(attributes)
        if places is None:
            places = self._pack(attributes)
        self.prompts += (suffix, pseudonym, bucket, places, tokens)
        self.prompts += values

    def _pack(self, attributes: tuple[SharedAttributes, ...]) -> bytes:
        """Return the places of the attributes, two bytes each."""
        places = [self._places.get(shared) or self._place_of(shared) for shared in attributes]
        self._packed[attributes] = packed = struct.pack(f">{len(places)}H", *places)
        return packed

    def _place_of(self, shared: SharedAttributes) -> int:
        self.shared.append(shared.packed())
        self._places[shared] = len(self.shared)
        return len(self.shared)


@dataclass(frozen=True, slots=True)
class StartDelta:
    """Begin of a prompt, in this hour (0 to 23) of its day.

    Raises:
        ValueError: there is no such hour.
    """

    hour: int

    def __post_init__(self) -> None:
        check_count("hour", self.hour, most=23)


@dataclass(frozen=True, slots=True)
class EndDelta:
    """End of a prompt; without `transitions` it is never covered.

    `duration_bucket` is the base-2 exponential bucket at scale 7 of its milliseconds. None means
    that the host did not report it, as for `tokens`, input and output together, and for `turns`.

    Raises:
        ValueError: a count is negative or beyond 2**53 - 1, or the outcome is `lost`, which no
            host reports.
    """

    outcome: Outcome
    tokens: int | None
    turns: int | None
    duration_bucket: int | None
    transitions: int | None
    calls_after_would_stop: int
    hour: int

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOME_PLACES:
            known = ", ".join(OUTCOME_PLACES)
            raise ValueError(f"outcome={self.outcome} of an end; use one of {known}")
        check_count("tokens", self.tokens or 0)
        check_count("turns", self.turns or 0)
        check_count("transitions", self.transitions or 0)
        check_count("calls_after_would_stop", self.calls_after_would_stop)
        check_count("hour", self.hour, most=23)


@dataclass(frozen=True, slots=True)
class TransitionDelta:
    """A guard's decision within a prompt. `sequence` counts over all guards of the prompt, from 1.

    `is_warning`: the model was warned. `ordinal` is the candidate that the decision is about, None
    where the host did not report it. A host that numbers nothing has no sequence: `at_ms`, since
    1970, replaces it, and `is_unwarned` marks a stop that reports itself that no warning came
    before it.

    Raises:
        ValueError: the sequence or the ordinal is negative or beyond 2**31 - 1, or there is neither
            sequence nor time.
    """

    sequence: int | None
    is_would_stop: bool
    is_stop: bool
    is_unreliable_input: bool
    is_warning: bool = False
    ordinal: int | None = None
    at_ms: int | None = None
    is_unwarned: bool = False

    def __post_init__(self) -> None:
        if self.sequence is None and self.at_ms is None:
            raise ValueError("sequence=None and at_ms=None; give one of them")
        check_count("sequence", self.sequence or 0, most=2**31 - 1)
        check_count("at_ms", self.at_ms or 0)
        check_count("ordinal", self.ordinal or 0, most=2**31 - 1)


@dataclass(frozen=True, slots=True)
class DisruptionDelta:
    """A user who disconnected or tried again after the end of the prompt."""

    kind: DisruptionKind


@dataclass(frozen=True, slots=True)
class LoopDelta:
    """A turn ended by another guard than that of the event's stratum, or by another protection."""


PromptDelta = (
    StartDelta | EndDelta | TransitionDelta | DisruptionDelta | LoopDelta | Part | SessionDelta
)


def kind_and_numbers(delta: PromptDelta) -> tuple[str, Numbers]:
    """Return the kind of an event, its letter in the Lua library, and its numbers."""
    match delta:
        case StartDelta(hour=hour):
            return "s", [hour]
        case EndDelta():
            return "e", [
                OUTCOME_PLACES[delta.outcome],
                # Lua arrays cannot hold nil: false and -1 mean "not reported" there.
                -1 if delta.tokens is None else delta.tokens,
                -1 if delta.turns is None else delta.turns,
                False if delta.duration_bucket is None else delta.duration_bucket,
                -1 if delta.transitions is None else delta.transitions,
                delta.calls_after_would_stop,
                delta.hour,
            ]
        case TransitionDelta():
            numbers = [
                -1 if delta.sequence is None else delta.sequence,
                int(delta.is_would_stop),
                int(delta.is_stop),
                int(delta.is_unreliable_input),
                int(delta.is_warning),
                -1 if delta.ordinal is None else delta.ordinal,
            ]
            if delta.sequence is not None:
                return "t", numbers
            return "t", [*numbers, delta.at_ms or 0, int(delta.is_unwarned)]
        case DisruptionDelta(kind=kind):
            return "d", [kind.value]
        case LoopDelta():
            return "l", []
        case SessionDelta(at_ms=at_ms):
            return "o", [at_ms]
        case _:
            return "p", delta.packed()


def delta_numbers(delta: PromptDelta) -> Numbers:
    """Return the numbers of an event as the store reads them."""
    return kind_and_numbers(delta)[1]
