"""Records: one frozen value for each kind that intake accepts, in the domain's words.

Every `time_ns` is nanoseconds since 1970 UTC on the environment's clock. None means that the
host did not report the field, which is not the same as zero.
"""

from dataclasses import dataclass
from typing import TypeAlias

from guardwave.control_plane.stores.evidence.delta.points import Histogram
from guardwave.control_plane.stores.evidence.delta.prompt_parts import Part
from guardwave.reducer.vocabulary import (
    Decision,
    DisruptionKind,
    ExecutionStatus,
    GuardPhase,
    Invariant,
    LoopType,
    Mode,
    Outcome,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The process, service, version and environment that sent a record.

    `assignment_ids` are those on the Resource. With `has_weak_identity` the process gave no
    instance id and `instance_id` is a digest of its Resource.
    """

    service_name: str
    service_version: str
    instance_id: str
    environment: str
    contract_version: int
    assignment_ids: tuple[str, ...]
    service_namespace: str = ""
    has_weak_identity: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEvent:
    """Fields of every event of a prompt.

    `assignment_ids` are the record's own or, without any, the Resource's; none is verified yet.
    `deny_listed` names attributes that must never be sent, `has_body` a body that is not empty:
    both are violations (`sensitive_field`).
    """

    origin: Origin
    time_ns: int
    prompt_id: str
    assignment_ids: tuple[str, ...]
    deny_listed: tuple[str, ...] = ()
    has_body: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptStart(PromptEvent):
    """A prompt began."""

    route: Route


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEnd(PromptEvent):
    """A prompt ended. `transitions` counts the transition records that it sent, over all guards."""

    outcome: Outcome
    duration_seconds: float | None
    turns: int | None
    tool_calls: int | None
    transitions: int | None
    input_tokens: int | None
    output_tokens: int | None
    calls_after_would_stop: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDisruption(PromptEvent):
    """A prompt turned out, after its end, not to have served its user."""

    kind: DisruptionKind
    offset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(PromptEvent):
    """One decision of one guard about one settled batch.

    `sequence` is None from a host that does not number them; `discriminator` then distinguishes
    the transitions of a prompt.
    """

    guard: str
    sequence: int | None
    ordinal: int | None
    route: Route
    mode: Mode
    phase_from: GuardPhase | None
    phase_to: GuardPhase | None
    decision: Decision
    reset_reason: ResetReason | None
    failure_bucket: str | None
    batch_bucket: str | None
    batch_complete: bool | None
    tool_type: ToolType | None
    terminal_status: TerminalStatus | None
    execution_status: ExecutionStatus | None
    error_type: str | None
    history_preserved: bool | None
    discriminator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart(PromptEvent):
    """One part of a prompt, from a host that never reports its prompts as a whole.

    `discriminator` distinguishes it from the prompt's other parts of its kind. `began_ns` is when
    the prompt began, 0 when the part does not report it. A part that ends the prompt may name its
    session; the evidence builder fills in the session's digest.
    """

    part: Part
    discriminator: str = ""
    began_ns: int = 0
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(PromptEvent):
    """A session was opened, for the first time or again; `prompt_id` holds the session's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDetected(PromptEvent):
    """A guard stopped a turn that repeated itself."""

    guard: str | None
    loop_type: LoopType


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagEvaluation:
    """A host asked for the mode of a guard; counted, and never evidence.

    Content on it is a violation as on every event of the contract.
    """

    origin: Origin
    time_ns: int
    guard: str
    mode: Mode
    deny_listed: tuple[str, ...] = ()
    has_body: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterPoint:
    """One point of a counter: `value` since `start_ns` (0 when unset).

    A delta counts since the point before, a cumulative point since its start. `stream` is the
    identity of its stream, 0 where each point stands for itself. `labels` are the contract's other
    attributes, sorted, without the prefix `agent.guard.`. `guard` is None only for hosts before
    contract 1, which did not always name it, `mode` where only the assignment id has it.
    `is_unnumbered` marks counters of a host that numbers no transitions. With `is_overflow` the SDK
    counted beyond its limit of attribute sets and left the attributes out: guard and mode may be
    missing too.
    """

    origin: Origin
    metric: str
    guard: str | None
    mode: Mode | None
    labels: tuple[tuple[str, str], ...]
    start_ns: int
    time_ns: int
    value: int
    identity: int
    deny_listed: tuple[str, ...] = ()
    stream: int = 0
    is_cumulative: bool = False
    is_unnumbered: bool = False
    is_overflow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationPoint:
    """One point of the duration histogram, over `count` prompts; other fields as a counter's.

    `buckets` are None for a histogram with explicit bounds, which is volume and no evidence.
    """

    origin: Origin
    metric: str
    guard: str | None
    mode: Mode | None
    start_ns: int
    time_ns: int
    count: int
    identity: int
    deny_listed: tuple[str, ...] = ()
    stream: int = 0
    is_cumulative: bool = False
    buckets: Histogram | None = None
    is_overflow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentLeak:
    """A rejected item that breaks the invariants `broken`, mostly by content it must not carry.

    It is no record. `time_ns` is the sender's own and may be anything. `guard` is the guard that
    the item named.
    """

    origin: Origin
    time_ns: int
    guard: str | None
    assignment_ids: tuple[str, ...]
    identity: int
    broken: tuple[Invariant, ...] = (Invariant.SENSITIVE_FIELD,)


LogRecord: TypeAlias = (
    PromptStart
    | PromptEnd
    | PromptDisruption
    | Transition
    | PromptPart
    | SessionOpened
    | LoopDetected
    | FlagEvaluation
)
MetricRecord: TypeAlias = CounterPoint | DurationPoint


Record: TypeAlias = LogRecord | MetricRecord
