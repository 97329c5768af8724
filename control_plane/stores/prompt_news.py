"""What an event tells of its prompt, and the numbers by which the store reads it."""

from dataclasses import dataclass

from control_plane.stores.evidence_parts import OUTCOME_PLACES, Opened, Part
from control_plane.stores.prompt_events import Numbers
from control_plane.stores.seen import check_count
from reducer.vocabulary import DisruptionKind, Outcome


@dataclass(frozen=True, slots=True)
class Started:
    """A prompt began, in this hour (0 to 23) of its day.

    Raises:
        ValueError: there is no such hour.
    """

    hour: int

    def __post_init__(self) -> None:
        check_count("hour", self.hour, most=23)


@dataclass(frozen=True, slots=True)
class Ended:
    """A prompt ended; without `transitions` it is never covered.

    `duration_bucket` is the base-2 exponential bucket at scale 7 of its milliseconds. None says
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
class Transitioned:
    """A guard decided within a prompt. `sequence` counts over all guards of the prompt, from 1.

    `is_warning` says that the model was warned, `ordinal` which candidate the decision is about;
    None says that the host did not tell. Of a host that numbers nothing the sequence is None:
    `at_ms`, since 1970, stands for it, and `is_unwarned` marks a stop that says itself that no
    warning came before it.

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
class Disrupted:
    """After its end a prompt's user disconnected or tried again."""

    kind: DisruptionKind


@dataclass(frozen=True, slots=True)
class Looped:
    """Another guard than that of the event's cell, or a protection without one, ended a turn."""


PromptNews = Started | Ended | Transitioned | Disrupted | Looped | Part | Opened


def kind_and_numbers(news: PromptNews) -> tuple[str, Numbers]:
    """Return the kind of an event, the letter that the store knows it by, and its numbers."""
    match news:
        case Started(hour=hour):
            return "s", [hour]
        case Ended():
            return "e", [
                OUTCOME_PLACES[news.outcome],
                # Lua arrays cannot hold nil: false and -1 say "not reported" there.
                -1 if news.tokens is None else news.tokens,
                -1 if news.turns is None else news.turns,
                False if news.duration_bucket is None else news.duration_bucket,
                -1 if news.transitions is None else news.transitions,
                news.calls_after_would_stop,
                news.hour,
            ]
        case Transitioned():
            numbers = [
                -1 if news.sequence is None else news.sequence,
                int(news.is_would_stop),
                int(news.is_stop),
                int(news.is_unreliable_input),
                int(news.is_warning),
                -1 if news.ordinal is None else news.ordinal,
            ]
            if news.sequence is not None:
                return "t", numbers
            return "t", [*numbers, news.at_ms or 0, int(news.is_unwarned)]
        case Disrupted(kind=kind):
            return "d", [kind.value]
        case Looped():
            return "l", []
        case Opened(at_ms=at_ms):
            return "o", [at_ms]
        case _:
            return "p", news.packed()


def numbers_of_news(news: PromptNews) -> Numbers:
    """Return the numbers of an event as the store reads them, for one that has its own."""
    return kind_and_numbers(news)[1]
