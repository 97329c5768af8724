"""What a host tells the side-effect guard, and what the guard answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from reducer.guards.calls import ToolCall
from reducer.guards.mistakes import check_flag, mistaken
from reducer.guards.modes import check_mode, check_route
from reducer.guards.side_effect.ladder import UNDECLARED, ToolDeclaration
from reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Question,
    Repeat,
)
from reducer.guards.side_effect.semantic import Candidate
from reducer.guards.side_effect.state import GUARD, CallStatus, SideEffectDuplicate
from reducer.guards.transition import Transition
from reducer.vocabulary import ExecutionStatus, Mode, Route

MOST_CHANNEL = 64


class Verdict(StrEnum):
    """What the host does with a call."""

    EXECUTE = "execute"
    EXECUTE_WITH_INCIDENT = "execute_with_incident"
    REFLECT = "reflect"
    BLOCK = "block"
    SUSPEND = "suspend"
    REFUSE = "refuse"
    REFUSED = "refused"
    REPLAY = "replay"
    EXEMPT = "exempt"
    UNASKED = "unasked"

    @property
    def runs(self) -> bool:
        """Whether the call runs now."""
        return self in _RUNNING


_RUNNING = frozenset({Verdict.EXECUTE, Verdict.EXECUTE_WITH_INCIDENT, Verdict.EXEMPT})


@dataclass(frozen=True, slots=True)
class Proposed:
    """The model asked for a call; nothing ran yet. Calls of one step come one after the other.

    `request` holds the calls of an agent and of its sub-agents, `thread` spans requests. `call`
    bears the host's own id, unique within the request. `now_ms` is milliseconds since 1970-01-01
    UTC. `is_approved` says that a person approved this very call before. `first_use` is what the
    host's store held under `xid`, `candidate` what its finder proposed.
    """

    call: ToolCall
    request: str
    now_ms: int
    thread: str | None = None
    declaration: ToolDeclaration = UNDECLARED
    is_approved: bool = False
    channel: str | None = None
    xid: str | None = None
    first_use: FirstUse | None = None
    candidate: Candidate | None = None

    def __post_init__(self) -> None:
        check_call(self.call)
        check_text("call_id", self.call.call_id)
        check_request(self.request)
        check_time(self.now_ms)
        check_text("thread", self.thread)
        check_channel(self.channel)
        check_layers(self.declaration, self.first_use, self.xid, self.candidate)


@dataclass(frozen=True, slots=True)
class Settled:
    """A call's execution settled, with the status frozen at that moment; None when not known."""

    call_id: str
    request: str
    execution_status: ExecutionStatus | None
    now_ms: int

    def __post_init__(self) -> None:
        status = self.execution_status
        if not (status is None or isinstance(status, ExecutionStatus)):
            # A plain text would be taken for a failure, and the next repeat for the first run.
            remedy = "pass an ExecutionStatus (reducer.vocabulary), or None for one not known"
            raise mistaken("execution_status", status, remedy)
        check_request(self.request)
        check_time(self.now_ms)


@dataclass(frozen=True, slots=True)
class Decided:
    """A person answered the question about a call."""

    call_id: str
    request: str
    is_approved: bool
    now_ms: int

    def __post_init__(self) -> None:
        check_request(self.request)
        check_time(self.now_ms)
        check_flag("is_approved", self.is_approved)


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began: its mode and route hold from here on, what was done stays known.

    A disabled enforcement ends.
    """

    mode: Mode
    route: Route = Route.INTERACTIVE_FOREGROUND

    def __post_init__(self) -> None:
        check_mode(GUARD, self.mode)
        check_route(self.route)


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request ended: its calls, refusals and open questions are dropped."""

    request: str

    def __post_init__(self) -> None:
        check_request(self.request)


@dataclass(frozen=True, slots=True)
class ThreadEnded:
    """A thread ended: what was done in it is dropped."""

    thread: str

    def __post_init__(self) -> None:
        if not isinstance(self.thread, str):
            raise mistaken("thread", self.thread, "pass the host's id of the thread as a text")


Event: TypeAlias = Proposed | Settled | Decided | PromptStarted | RequestEnded | ThreadEnded


class FirstUseToKeep(NamedTuple):
    """What the host writes into its store under `xid`, unless an unexpired use is there."""

    xid: str
    use: FirstUse


class SideEffectStep(NamedTuple):
    """The new state, and what the host does.

    `verdict` is None for an event that is about no decision. `text` is for the model in place of
    a result. `question` is a new one to put. `resolved` are other calls of the request whose open
    questions a refusal answered too. `diagnostic` is for the operator.
    """

    state: SideEffectDuplicate
    verdict: Verdict | None = None
    transitions: tuple[Transition, ...] = ()
    record: CallStatus | None = None
    repeat: Repeat | None = None
    incident: Incident | None = None
    question: Question | None = None
    error: DuplicateError | None = None
    text: str | None = None
    resolved: tuple[str, ...] = ()
    first_use: FirstUseToKeep | None = None
    diagnostic: str | None = None


def check_call(call: object) -> None:
    """Raise ValueError for what is no call, or one whose tool is no text."""
    if not isinstance(call, ToolCall):
        raise mistaken("call", call, "pass a ToolCall (reducer.guards.calls)")
    if not isinstance(call.tool, str):
        raise mistaken("tool", call.tool, "pass its resolved name as a text")


def check_text(field: str, found: object) -> None:
    """Raise ValueError for what is neither a text nor None."""
    if not (found is None or isinstance(found, str)):
        raise mistaken(field, found, "pass a text, or None for none")


def check_request(request: object) -> None:
    """Raise ValueError for a request without a name."""
    if not isinstance(request, str):
        raise mistaken("request", request, "pass the host's id of the request as a text")
    if not request.strip():
        raise ValueError("request is blank; name the request, or all of them would be compared")


def check_channel(channel: object) -> None:
    """Raise ValueError for what is neither a short printable word nor None."""
    if channel is None:
        return
    if not (
        isinstance(channel, str) and 1 <= len(channel) <= MOST_CHANNEL and channel.isprintable()
    ):
        raise ValueError(
            f"channel is no text of 1 to {MOST_CHANNEL} printable characters; name it by a word"
        )


def check_time(now_ms: object) -> None:
    """Raise ValueError for what is no whole number of milliseconds."""
    if type(now_ms) is not int:
        remedy = "pass whole milliseconds since 1970-01-01 UTC (time.time_ns() // 1_000_000)"
        raise mistaken("now_ms", now_ms, remedy)


def check_layers(declaration: object, first_use: object, xid: object, candidate: object) -> None:
    """Raise ValueError for what the identity layers of a call can't be read from."""
    if not isinstance(declaration, ToolDeclaration):
        remedy = "pass a ToolDeclaration (reducer.guards.side_effect)"
        raise mistaken("declaration", declaration, remedy)
    check_text("xid", xid)
    if not (first_use is None or isinstance(first_use, FirstUse)):
        remedy = "pass a FirstUse (reducer.guards.side_effect), or None for none"
        raise mistaken("first_use", first_use, remedy)
    if first_use is not None and xid is None:
        raise ValueError("first_use is given without the xid it was read under; pass both")
    if not (candidate is None or isinstance(candidate, Candidate)):
        remedy = "pass a Candidate (reducer.guards.side_effect), or None for none"
        raise mistaken("candidate", candidate, remedy)
