"""What intake accepts: one frozen value per kind of record, its fields in the domain's words.

Every `time_ns` is nanoseconds since 1970 UTC on the environment's clock. None means that the
host did not report the field, which is not the same as zero.
"""

from dataclasses import dataclass
from typing import TypeAlias

from control_plane.stores.evidence_parts import Part
from control_plane.stores.evidence_points import Histogram
from reducer.vocabulary import (
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
    """Which process of which service, version and environment sent a record.

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
    """What every event of a prompt says.

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
    """A prompt ended. `transitions` is how many transition records it sent, over all guards."""

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
    """After its end a prompt turned out not to have served its user."""

    kind: DisruptionKind
    offset_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(PromptEvent):
    """One decision of one guard about one settled batch.

    `sequence` is None from a host that numbers none of them; `told_apart_by` is then what tells
    one of a prompt from another.
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
    told_apart_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart(PromptEvent):
    """One of the parts in which a host tells of a prompt that it never tells of as a whole.

    `told_apart_by` is what tells it from the prompt's others of its kind. `began_ns` is when the
    prompt began, 0 when the part does not tell. A part that says that the prompt is over may name
    the session that it was of; its digest is filled in when the part is booked.
    """

    part: Part
    told_apart_by: str = ""
    began_ns: int = 0
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(PromptEvent):
    """A session was opened, for the first time or again; it stands in the place of the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDetected(PromptEvent):
    """A guard stopped a turn that was going round in circles."""

    guard: str | None
    loop_type: LoopType


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagEvaluation:
    """A host asked which mode a guard has; counted, and never evidence.

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

    A delta is what came since the point before, a cumulative point all since its start. `stream`
    is the identity of what it is a point of, 0 where each point stands for itself. `labels` are
    the contract's other attributes, sorted, without the prefix `agent.guard.`. `guard` is None
    only for hosts of before contract 1, which did not always name it, `mode` where only the
    assignment id tells it. `is_unnumbered` marks counters of a host that numbers no transitions.
    With `is_overflow` the SDK counted beyond its limit of attribute sets, and told none of them:
    guard and mode may be missing too.
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
    """One point of the duration histogram: how many prompts it holds; otherwise as a counter's.

    `buckets` are None for a histogram with bounds of its own, which is volume and no evidence.
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
class Exposed:
    """A refused item that violates what is `broken`, content if nothing else; it is no record.

    `time_ns` is the sender's own and may be anything. `guard` is the one that the item named.
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
