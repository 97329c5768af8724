"""What a host tells the side-effect guard, and what the guard answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from reducer.guards.calls import ToolCall
from reducer.guards.side_effect.ladder import UNDECLARED, ToolDeclaration
from reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Question,
    Repeat,
)
from reducer.guards.side_effect.semantic import Candidate
from reducer.guards.side_effect.state import CallStatus, SideEffectDuplicate
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
        _check_call(self.call)
        check_request(self.request)
        check_time(self.now_ms)
        check_text("thread", self.thread)
        check_text("xid", self.xid)
        check_channel(self.channel)
        check_first_use(self.first_use, self.xid)


@dataclass(frozen=True, slots=True)
class Settled:
    """A call's execution settled, with the status frozen at that moment; None when not known."""

    call_id: str
    request: str
    execution_status: ExecutionStatus | None
    now_ms: int

    def __post_init__(self) -> None:
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
        if not isinstance(self.is_approved, bool):
            raise ValueError(f"is_approved is {self.is_approved!r}; pass True or False")


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began: its mode and route hold from here on, what was done stays known.

    A disabled enforcement ends.
    """

    mode: Mode
    route: Route = Route.INTERACTIVE_FOREGROUND


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request ended: its calls, refusals and open questions are dropped."""

    request: str


@dataclass(frozen=True, slots=True)
class ThreadEnded:
    """A thread ended: what was done in it is dropped."""

    thread: str


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


def _check_call(call: object) -> None:
    if not isinstance(call, ToolCall):
        raise ValueError(f"call is a {type(call).__name__}; pass a ToolCall")
    check_text("call_id", call.call_id)


def check_text(field: str, found: object) -> None:
    """Raise ValueError for what is neither a text nor None."""
    if not (found is None or isinstance(found, str)):
        raise ValueError(f"{field} is a {type(found).__name__}; pass a text, or None for none")


def check_request(request: object) -> None:
    """Raise ValueError for a request without a name."""
    if not isinstance(request, str) or not request.strip():
        raise ValueError(
            f"request is {request!r}; name the request, or all of them would be compared"
        )


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
        raise ValueError(f"now_ms is {now_ms!r}; pass whole milliseconds since 1970-01-01 UTC")


def check_first_use(first_use: FirstUse | None, xid: str | None) -> None:
    """Raise ValueError for a use that was read under no identity."""
    if first_use is not None and xid is None:
        raise ValueError("first_use is given without the xid it was read under; pass both")
