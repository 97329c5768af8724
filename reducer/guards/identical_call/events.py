"""What the identical-call guard is told, and the closed words of what it says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reducer.guards.calls import ToolCall
from reducer.guards.mistakes import check_each, check_evidence
from reducer.guards.texts import BUDGET_NOTE, REPETITION_NOTE
from reducer.vocabulary import Mode, Route


class TurnMode(StrEnum):
    """Whether the model may ask for tools in a turn."""

    NORMAL = "normal"
    SYNTHESIS_ONLY = "synthesis_only"


class SynthesisCause(StrEnum):
    """Why the model is asked to conclude."""

    BUDGET = "budget"
    REPETITION = "repetition"


class Budget(StrEnum):
    """Where the run stands in its own budget, as the host knows before a model turn."""

    NONE = "none"
    RESERVE = "reserve"
    EXHAUSTED = "exhausted"


class Failure(StrEnum):
    """Why a run failed. `budget_exceeded` in a synthesis turn means that it broke the reserve."""

    TOOL_LOOP_DETECTED = "tool_loop_detected"
    BUDGET_EXCEEDED = "budget_exceeded"


class RunAction(StrEnum):
    """What a host does next: nothing of note, run the whole batch, end the run, or fail it."""

    NONE = "none"
    DISPATCH = "dispatch"
    COMPLETE = "complete"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Turn:
    """How one model turn is asked for.

    A normal turn with a cause is one of warn: the note is added and the tools stay on.
    """

    mode: TurnMode = TurnMode.NORMAL
    cause: SynthesisCause | None = None

    @property
    def note(self) -> str | None:
        """The platform note of this turn: part of its request alone, kept nowhere."""
        match self.cause:
            case SynthesisCause.BUDGET:
                return BUDGET_NOTE
            case SynthesisCause.REPETITION:
                return REPETITION_NOTE
            case None:
                return None


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A new run began: it counts from zero. Its mode and route are those before unless given."""

    mode: Mode | None = None
    route: Route | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The model is about to be called, for a turn or once more after its call failed."""

    budget: Budget = Budget.NONE


@dataclass(frozen=True, slots=True)
class CallsProposed:
    """The model answered with these calls, none of which has run; with none it has concluded."""

    calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        check_each("calls", self.calls, ToolCall, "pass a tuple of ToolCall (reducer.guards.calls)")


@dataclass(frozen=True, slots=True)
class BatchSettled:
    """The batch is complete, at once, after an approval or after a crash.

    `evidence` maps a call's id to a key of what it brought: an opaque digest that changes when
    the content does. Only the digest of the key is kept.
    """

    evidence: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_evidence(self.evidence)


Event = RunStarted | TurnStarted | CallsProposed | BatchSettled
