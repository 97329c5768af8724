"""What the duplicate-call-id guard is told, and what it says about each call."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reducer.guards.calls import ToolCall
from reducer.guards.mistakes import check_each, check_flag, check_responses, mistaken
from reducer.vocabulary import Mode, Route


class CallAction(StrEnum):
    """What a host does with one call."""

    EXECUTE = "execute"
    SYNTHETIC = "synthetic"
    DROP = "drop"
    BATCH_DROPPED = "batch_dropped"


class TurnOutcome(StrEnum):
    """How the turn goes on: the breaker fails it where a person waits, else ends it quietly."""

    CONTINUE = "continue"
    LOOP_DETECTED_ERROR = "loop_detected_error"
    END_TURN = "end_turn"


class CallVerdict(NamedTuple):
    """What becomes of one call.

    `raw_id` is the provider's id, None when it sent none. `call_id` is the name under which the
    call and its answer stand in the transcript: None for a call that gets no answer, and in off
    and shadow the provider's own id, since those change nothing.
    """

    raw_id: str | None
    action: CallAction
    call_id: str | None


@dataclass(frozen=True, slots=True)
class HistoryCall:
    """A call of the transcript, under the id that stands there."""

    call: ToolCall
    is_answered: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.call, ToolCall):
            raise mistaken("call", self.call, "pass a ToolCall (reducer.guards.calls)")
        check_flag("is_answered", self.is_answered)


@dataclass(frozen=True, slots=True)
class HistorySeeded:
    """The session's transcript, oldest call first: after a start, a restart or a reconnect."""

    entries: tuple[HistoryCall, ...]

    def __post_init__(self) -> None:
        remedy = "pass a tuple of HistoryCall (reducer.guards.duplicate_call_id)"
        check_each("entries", self.entries, HistoryCall, remedy)


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began. Its mode and route are those before unless they are given."""

    mode: Mode | None = None
    route: Route | None = None


@dataclass(frozen=True, slots=True)
class BatchProposed:
    """The calls of one batch in order, per model response, before any of them runs."""

    responses: tuple[tuple[ToolCall, ...], ...]

    def __post_init__(self) -> None:
        check_responses(self.responses, ToolCall, _RESPONSES)

    @classmethod
    def of(cls, *calls: ToolCall) -> "BatchProposed":
        """Return the batch of a single model response."""
        return cls((calls,))


_RESPONSES = (
    "pass a tuple of ToolCall (reducer.guards.calls) for each model response, "
    "as in BatchProposed(((call,),))"
)
