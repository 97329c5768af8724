"""Identical-call events: the input of the guard, and the closed words of its answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from guardwave.reducer.guards.argument_errors import check_evidence, check_tuple
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.messages import BUDGET_NOTE, REPETITION_NOTE
from guardwave.reducer.vocabulary import Mode, Route


class TurnMode(StrEnum):
    """Whether the model may ask for tools in a turn."""

    NORMAL = "normal"
    SYNTHESIS_ONLY = "synthesis_only"


class SynthesisCause(StrEnum):
    """The reason to ask the model for a conclusion."""

    BUDGET = "budget"
    REPETITION = "repetition"


class Budget(StrEnum):
    """The state of the run's own budget, which the host knows before a model turn."""

    NONE = "none"
    RESERVE = "reserve"
    EXHAUSTED = "exhausted"


class Failure(StrEnum):
    """The reason why a run failed: a loop, or a budget (in a synthesis turn, its reserve)."""

    TOOL_LOOP_DETECTED = "tool_loop_detected"
    BUDGET_EXCEEDED = "budget_exceeded"


class RunAction(StrEnum):
    """The next action of the host: none, run the whole batch, end the run, or fail it."""

    NONE = "none"
    DISPATCH = "dispatch"
    COMPLETE = "complete"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Turn:
    """The form of one model turn.

    A normal turn with a cause is a turn of warn: it has the note and keeps its tools.
    """

    mode: TurnMode = TurnMode.NORMAL
    cause: SynthesisCause | None = None

    @property
    def note(self) -> str | None:
        """The platform note of this turn, which is part of its request only and never stored."""
        match self.cause:
            case SynthesisCause.BUDGET:
                return BUDGET_NOTE
            case SynthesisCause.REPETITION:
                return REPETITION_NOTE
            case None:
                return None


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A new run began and counts from zero. Without a mode or route it keeps the present one."""

    mode: Mode | None = None
    route: Route | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The host is about to call the model, for a new turn or again after a failed call."""

    budget: Budget = Budget.NONE


@dataclass(frozen=True, slots=True)
class CallsProposed:
    """The model answered with these calls and none has run; without calls it has concluded."""

    calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        check_tuple(
            "calls",
            self.calls,
            ToolCall,
            "pass a tuple of ToolCall (guardwave.guards)",
        )


@dataclass(frozen=True, slots=True)
class BatchSettled:
    """The batch is complete: at once, after an approval, or after a crash.

    `evidence` maps a call's id to an opaque digest of its result, which changes with the content.
    The state keeps only a digest of that digest.
    """

    evidence: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_evidence(self.evidence)


Event = RunStarted | TurnStarted | CallsProposed | BatchSettled
