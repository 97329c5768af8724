"""Pipeline events: the input from a host, and the answer of all guards together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from guardwave.reducer.guards.argument_errors import (
    argument_error,
    check_evidence,
    check_flag,
    check_responses,
)
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import HistorySeeded
from guardwave.reducer.guards.identical_call import Budget, Turn
from guardwave.reducer.guards.repeated_failure import Observation, SettledBatch
from guardwave.reducer.guards.side_effect import (
    UNDECLARED,
    Candidate,
    DuplicateError,
    FirstUse,
    FirstUseToKeep,
    Incident,
    Question,
    ToolDeclaration,
    check_call,
    check_channel,
    check_layers,
    check_request,
    check_text,
    check_time,
)
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.pipeline.state import Pipeline, check_modes
from guardwave.reducer.vocabulary import ExecutionStatus, LoopType, Mode, Route, TerminalStatus


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began; `modes` is a mapping from guard to mode, as in `Pipeline.start`."""

    modes: Mapping[str, Mode]
    route: Route = Route.INTERACTIVE_FOREGROUND

    def __post_init__(self) -> None:
        check_modes(self.modes, self.route)


@dataclass(frozen=True, slots=True)
class TurnStarting:
    """The host is about to call the model, for a new turn or again after a failed call."""

    budget: Budget = Budget.NONE


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call that the model asked for, with the host's knowledge of its tool and its past.

    `xid`, `first_use` and `candidate` are the identity layers of the side-effect guard
    (`side_effect.Proposed`). Without them it only compares arguments.
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
    """The model answered and nothing ran yet; without any call it has concluded.

    `responses` holds the proposals of each model response, usually one. `request` is the host's id
    of the prompt, shared with its sub-agents. `thread` spans prompts, `channel` is the origin of
    the prompt. `now_ms` counts milliseconds since 1970-01-01 UTC.
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
    "pass a tuple of Proposal (guardwave.guards.pipeline) for each model response, "
    "as in BatchProposed(((Proposal(call),),), ...)"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered the question about the call with this key."""

    key: str
    is_approved: bool
    now_ms: int

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise argument_error(
                "key",
                self.key,
                "pass the CallDisposition.key (guardwave.guards.pipeline) of the waiting call",
            )
        check_flag("is_approved", self.is_approved)
        check_time(self.now_ms)


@dataclass(frozen=True, slots=True)
class BatchSettled:
    """Every call of the batch settled. Its observations and receipts carry the calls' keys.

    `evidence` maps a key to an opaque digest of the call's result (`docs/guards`).
    """

    batch: SettledBatch
    now_ms: int
    evidence: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.batch, SettledBatch):
            remedy = "pass the result of settle (guardwave.guards.repeated_failure)"
            raise argument_error("batch", self.batch, remedy)
        check_time(self.now_ms)
        check_evidence(self.evidence)


Event: TypeAlias = (
    PromptStarted | HistorySeeded | TurnStarting | BatchProposed | Answered | BatchSettled
)


class HostAction(StrEnum):
    """The action of the host for one call."""

    RUN = "run"
    ANSWER = "answer"
    ASK = "ask"
    DROP = "drop"


class CallDisposition(NamedTuple):
    """The decision of the guards about one call.

    `key` names the call to this pipeline and is unique in the session. `call_id` is the name of
    the call and its answer in the transcript, None when the model sent none and no guard renames.
    `text` answers a call that does not run. A person must answer `question` before the call runs.
    A dropped call gets no answer.
    """

    action: HostAction
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
    """The end of the turn. `loop` is the protection that ended it, to be reported once.

    It is None when the run's budget is used up, which is no loop. `text` is the fixed system
    context for the model, None where the guard has none.
    """

    loop: LoopType | None
    text: str | None = None


class PipelineStep(NamedTuple):
    """The state after an event, the transitions to report, and the instructions for the host.

    `turn` is the form of the next model turn. `dispositions` are those of the proposed calls, in
    order; after an answer they are those of its call and of the calls whose questions it settled
    too. `reminder` is system context to append before the next model turn. `first_uses` go into
    the host's store, `diagnostics` to the operator.
    """

    state: Pipeline
    transitions: tuple[Transition, ...] = ()
    turn: Turn | None = None
    dispositions: tuple[CallDisposition, ...] = ()
    reminder: str | None = None
    stop: Stop | None = None
    first_uses: tuple[FirstUseToKeep, ...] = ()
    diagnostics: tuple[str, ...] = ()
