"""What a host tells the pipeline, and what the pipeline answers for all guards together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id.events import HistorySeeded
from reducer.guards.identical_call.events import Budget, Turn
from reducer.guards.mistakes import check_evidence, check_flag, check_responses, mistaken
from reducer.guards.pipeline.state import Pipeline, check_modes
from reducer.guards.repeated_failure.outcome import Observation
from reducer.guards.repeated_failure.receipts import SettledBatch
from reducer.guards.side_effect.events import (
    FirstUseToKeep,
    check_call,
    check_channel,
    check_layers,
    check_request,
    check_text,
    check_time,
)
from reducer.guards.side_effect.ladder import UNDECLARED, ToolDeclaration
from reducer.guards.side_effect.repeat import DuplicateError, FirstUse, Incident, Question
from reducer.guards.side_effect.semantic import Candidate
from reducer.guards.transition import Transition
from reducer.vocabulary import ExecutionStatus, LoopType, Mode, Route, TerminalStatus


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began. `modes` by guard, as in `Pipeline.start`."""

    modes: Mapping[str, Mode]
    route: Route = Route.INTERACTIVE_FOREGROUND

    def __post_init__(self) -> None:
        check_modes(self.modes, self.route)


@dataclass(frozen=True, slots=True)
class TurnStarting:
    """The model is about to be called, for a turn or once more after its call failed."""

    budget: Budget = Budget.NONE


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call that the model asked for, with what the host knows of its tool and of its past.

    `xid`, `first_use` and `candidate` are the identity layers of the side-effect guard
    (side_effect.Proposed); without them it compares arguments alone.
    """

    call: ToolCall
    declaration: ToolDeclaration = UNDECLARED
    xid: str | None = None
    first_use: FirstUse | None = None
    candidate: Candidate | None = None

    def __post_init__(self) -> None:
        check_call(self.call)
        check_layers(self.declaration, self.first_use, self.xid, self.candidate)


@dataclass(frozen=True, slots=True)
class BatchProposed:
    """The model answered, nothing ran yet; without any call it has concluded.

    `responses` holds the proposals per model response, mostly of one. `request` is the host's id
    of the prompt, shared with its sub-agents; `thread` spans prompts; `channel` is where the
    prompt came from. `now_ms` counts milliseconds since 1970-01-01 UTC.
    """

    responses: tuple[tuple[Proposal, ...], ...]
    request: str
    now_ms: int
    thread: str | None = None
    channel: str | None = None

    def __post_init__(self) -> None:
        check_responses(self.responses, Proposal, _RESPONSES)
        check_request(self.request)
        check_time(self.now_ms)
        check_text("thread", self.thread)
        check_channel(self.channel)


_RESPONSES = (
    "pass a tuple of Proposal (reducer.guards.pipeline) for each model response, "
    "as in BatchProposed(((Proposal(call),),), ...)"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered the question about the call of this key."""

    key: str
    is_approved: bool
    now_ms: int

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise mistaken("key", self.key, "pass the CallFate.key of the call that waits")
        check_flag("is_approved", self.is_approved)
        check_time(self.now_ms)


@dataclass(frozen=True, slots=True)
class BatchSettled:
    """Every call of the batch settled. Its observations and receipts bear the calls' keys.

    `evidence` maps a key to an opaque digest of what its call brought (docs/guards).
    """

    batch: SettledBatch
    now_ms: int
    evidence: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.batch, SettledBatch):
            remedy = "pass what settle (reducer.guards.repeated_failure) gives"
            raise mistaken("batch", self.batch, remedy)
        check_time(self.now_ms)
        check_evidence(self.evidence)


Event: TypeAlias = (
    PromptStarted | HistorySeeded | TurnStarting | BatchProposed | Answered | BatchSettled
)


class Fate(StrEnum):
    """What the host does with one call."""

    RUN = "run"
    ANSWER = "answer"
    ASK = "ask"
    DROP = "drop"


class CallFate(NamedTuple):
    """What becomes of one call.

    `key` names the call to this pipeline and is unique in the session. `call_id` is the name under
    which the call and its answer stand in the transcript, None when the model sent none and no
    guard renames. `text` answers a call that does not run. `question` is put to a person before
    the call runs. A dropped call gets no answer.
    """

    fate: Fate
    key: str
    call_id: str | None
    tool: str
    text: str | None = None
    question: Question | None = None
    incident: Incident | None = None
    error: DuplicateError | None = None
    is_provider_duplicate: bool = False

    def not_run(self, *, tool_type: str | None = None) -> Observation:
        """Return the observation of a call that was answered without running."""
        return Observation(
            self.key,
            self.tool,
            tool_type=tool_type,
            terminal_status=TerminalStatus.ERROR,
            execution_status=ExecutionStatus.NOT_STARTED,
            is_provider_duplicate=self.is_provider_duplicate,
        )


class Stop(NamedTuple):
    """Why the turn ends now. `loop` is the protection that ended it, reported once.

    None there means that the run's budget is used up, which is no loop. `text` is the fixed system
    context for the model, None where the guard has none.
    """

    loop: LoopType | None
    text: str | None = None


class PipelineStep(NamedTuple):
    """The state after an event, what to report, and what the host does.

    `turn` is how the next model turn is asked for. `fates` are of the proposed calls, in order, or
    of the one that a person answered about and of those whose questions that answer decided too.
    `reminder` is system context to append before the next model turn. `first_uses` are for the
    host's store. `diagnostics` are for the operator.
    """

    state: Pipeline
    transitions: tuple[Transition, ...] = ()
    turn: Turn | None = None
    fates: tuple[CallFate, ...] = ()
    reminder: str | None = None
    stop: Stop | None = None
    first_uses: tuple[FirstUseToKeep, ...] = ()
    diagnostics: tuple[str, ...] = ()
