"""Side-effect events: the input from a host with its checks, and the answer of the guard."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from guardwave.reducer.guards.argument_errors import argument_error, check_flag
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.modes import check_mode, check_route
from guardwave.reducer.guards.side_effect.ladder import UNDECLARED, ToolDeclaration
from guardwave.reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Question,
    Repeat,
)
from guardwave.reducer.guards.side_effect.state import GUARD, CallStatus, SideEffectDuplicate
from guardwave.reducer.guards.side_effect.xid import Candidate
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import ExecutionStatus, Mode, Route

MOST_CHANNEL = 64


class Verdict(StrEnum):
    """The verdict on a call, which the host carries out."""

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
    """The model asked for a call and nothing ran yet. Calls of one step come one after the other.

    `request` is the id of a request of an agent and its sub-agents, `thread` spans requests. `call`
    carries the host's own id, unique within the request. `now_ms` counts milliseconds since
    1970-01-01 UTC. `is_approved` means that a person approved this very call before. `first_use` is
    the entry of the host's store under `xid`, `candidate` the proposal of the host's finder.
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
    """A call's execution settled, with the status frozen at that moment, or None if unknown."""

    call_id: str
    request: str
    execution_status: ExecutionStatus | None
    now_ms: int

    def __post_init__(self) -> None:
        status = self.execution_status
        if not (status is None or isinstance(status, ExecutionStatus)):
            # A plain text would count as a failure, and the next repeat as the first run.
            remedy = "pass an ExecutionStatus (guardwave.guards), or None for an unknown one"
            raise argument_error("execution_status", status, remedy)
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
    """A new prompt began with its mode and route. The guard remembers earlier calls.

    It ends a disabled enforcement.
    """

    mode: Mode
    route: Route = Route.INTERACTIVE_FOREGROUND

    def __post_init__(self) -> None:
        check_mode(GUARD, self.mode)
        check_route(self.route)


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request ended. The guard forgets its calls, refusals and open questions."""

    request: str

    def __post_init__(self) -> None:
        check_request(self.request)


@dataclass(frozen=True, slots=True)
class ThreadEnded:
    """A thread ended. The guard forgets the first runs in it."""

    thread: str

    def __post_init__(self) -> None:
        if not isinstance(self.thread, str):
            raise argument_error(
                "thread", self.thread, "pass the host's id of the thread as a text"
            )


Event: TypeAlias = Proposed | Settled | Decided | PromptStarted | RequestEnded | ThreadEnded


class FirstUseToKeep(NamedTuple):
    """An entry for the host's store under `xid`, unless an unexpired use is there."""

    xid: str
    use: FirstUse


class SideEffectStep(NamedTuple):
    """The new state, and the answer for the host.

    `verdict` is None for an event without a decision. `text` goes to the model in place of a
    result. `question` is a new question for a person. `resolved` are other calls of the request
    whose open questions a refusal answered too. `diagnostic` is for the operator.
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
    """Raise ValueError unless the value is a call whose tool is a text."""
    if not isinstance(call, ToolCall):
        raise argument_error("call", call, "pass a ToolCall (guardwave.guards)")
    if not isinstance(call.tool, str):
        raise argument_error("tool", call.tool, "pass its resolved name as a text")


def check_text(field: str, found: object) -> None:
    """Raise ValueError unless the value is a text or None."""
    if not (found is None or isinstance(found, str)):
        raise argument_error(field, found, "pass a text, or None for none")


def check_request(request: object) -> None:
    """Raise ValueError unless the request has a name."""
    if not isinstance(request, str):
        raise argument_error("request", request, "pass the host's id of the request as a text")
    if not request.strip():
        raise ValueError("request is blank; name the request, or all of them would be compared")


def check_channel(channel: object) -> None:
    """Raise ValueError unless the channel is a short printable word or None."""
    if channel is None:
        return
    if not (
        isinstance(channel, str) and 1 <= len(channel) <= MOST_CHANNEL and channel.isprintable()
    ):
        raise ValueError(
            f"channel is not a text of 1 to {MOST_CHANNEL} printable characters; name it by a word"
        )


def check_time(now_ms: object) -> None:
    """Raise ValueError unless the time is a whole number of milliseconds."""
    if type(now_ms) is not int:
        remedy = "pass whole milliseconds since 1970-01-01 UTC (time.time_ns() // 1_000_000)"
        raise argument_error("now_ms", now_ms, remedy)


def check_layers(declaration: object, first_use: object, xid: object, candidate: object) -> None:
    """Raise ValueError unless the identity layers of a call are readable."""
    if not isinstance(declaration, ToolDeclaration):
        remedy = "pass a ToolDeclaration (guardwave.guards.side_effect)"
        raise argument_error("declaration", declaration, remedy)
    check_text("xid", xid)
    if not (first_use is None or isinstance(first_use, FirstUse)):
        remedy = "pass a FirstUse (guardwave.guards.side_effect), or None for none"
        raise argument_error("first_use", first_use, remedy)
    if first_use is not None and xid is None:
        raise ValueError("first_use is given without the xid it was read under; pass both")
    if not (candidate is None or isinstance(candidate, Candidate)):
        remedy = "pass a Candidate (guardwave.guards.side_effect), or None for none"
        raise argument_error("candidate", candidate, remedy)
