"""Duplicate-call-id events: the input of the guard, and its verdict on each call."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import (
    argument_error,
    check_flag,
    check_responses,
    check_tuple,
)
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.vocabulary import Mode, Route


class CallAction(StrEnum):
    """The action of the host for one call."""

    EXECUTE = "execute"
    SYNTHETIC = "synthetic"
    DROP = "drop"
    BATCH_DROPPED = "batch_dropped"


class TurnOutcome(StrEnum):
    """The end of the turn: the breaker fails it if a person waits, else ends it quietly."""

    CONTINUE = "continue"
    LOOP_DETECTED_ERROR = "loop_detected_error"
    END_TURN = "end_turn"


class CallVerdict(NamedTuple):
    """The verdict on one call.

    `raw_id` is the provider's id, None when it sent none. `call_id` is the name of the call and its
    answer in the transcript. It is None for a call without an answer; in off and shadow, which
    change nothing, it is the provider's own id.
    """

    raw_id: str | None
    action: CallAction
    call_id: str | None


@dataclass(frozen=True, slots=True)
class HistoryCall:
    """A call of the transcript, under its id there."""

    call: ToolCall
    is_answered: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.call, ToolCall):
            raise argument_error("call", self.call, "pass a ToolCall (guardwave.guards)")
        check_flag("is_answered", self.is_answered)


@dataclass(frozen=True, slots=True)
class HistorySeeded:
    """The session's transcript, oldest call first, after a start, a restart or a reconnect."""

    entries: tuple[HistoryCall, ...]

    def __post_init__(self) -> None:
        remedy = "pass a tuple of HistoryCall (guardwave.guards.duplicate_call_id)"
        check_tuple("entries", self.entries, HistoryCall, remedy)


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began. Without a mode or route it keeps the present one."""

    mode: Mode | None = None
    route: Route | None = None


@dataclass(frozen=True, slots=True)
class BatchProposed:
    """The calls of one batch in order, for each model response, before any of them runs."""

    responses: tuple[tuple[ToolCall, ...], ...]

    def __post_init__(self) -> None:
        check_responses(self.responses, ToolCall, _RESPONSES)

    @classmethod
    def of(cls, *calls: ToolCall) -> "BatchProposed":
        """Return the batch of a single model response."""
        return cls((calls,))


_RESPONSES = (
    "pass a tuple of ToolCall (guardwave.guards) for each model response, "
    "as in BatchProposed(((call,),))"
)
