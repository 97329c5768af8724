"""Log records of qwen-code: one reader per event name.

No record reports how a prompt ended. All records of a prompt share a trace id, and the last one has
no prompt id, so the trace identifies the prompt.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from guardwave.control_plane.ingest.contract import (
    SiftedAttributes,
    accepted_time,
    fields,
    limits,
    sift_attributes,
    utc_hour,
)
from guardwave.control_plane.ingest.dialects import qwen_code_vocabulary as words
from guardwave.control_plane.ingest.dialects.dialect import ItemContext
from guardwave.control_plane.ingest.evidence import MILLISECOND_NS
from guardwave.control_plane.ingest.model.identity import canonical
from guardwave.control_plane.ingest.model.otlp_values import Attributes, LogItem, Value
from guardwave.control_plane.ingest.model.records import (
    LogRecord,
    LoopDetected,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.control_plane.stores.evidence.delta.prompt_parts import (
    AnswerPart,
    BeginPart,
    CallPart,
    FailurePart,
    FinishPart,
    Part,
    StopPart,
)
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import ExecutionStatus, LoopType, Route

_EXECUTED = frozenset({ExecutionStatus.SUCCESS, ExecutionStatus.ERROR})


class HostRecord(NamedTuple):
    """One log record on its way in: when it happened, and the attributes that may be read."""

    item: LogItem
    context: ItemContext
    time_ns: int
    known: Attributes

    @property
    def at_ms(self) -> int:
        """When it happened, in milliseconds since 1970."""
        return self.time_ns // MILLISECOND_NS

    @property
    def prompt(self) -> str:
        """The identifier of the prompt."""
        return prompt_of(self.item.trace_id, self.known.get(words.PROMPT_ID))

    @property
    def session_id(self) -> str:
        """The id of the session, "" when it is missing."""
        return _text(self.known, words.SESSION_ID) or ""

    def part(self, part: Part, *, key: str = "") -> PromptPart:
        """Return a part of the prompt; `key` and its time identify it among its kind."""
        return PromptPart(
            origin=self.context.origin,
            time_ns=self.time_ns,
            prompt_id=self.prompt,
            assignment_ids=self.context.origin.assignment_ids,
            part=part,
            discriminator=f"{self.time_ns} {key}",
            session_id=self.session_id,
        )


Records = tuple[LogRecord, ...]


class EventType(NamedTuple):
    """An event of the client: the attributes that are read, and how they become records."""

    allowed: AbstractSet[str]
    read: Callable[[HostRecord], Records]


def prompt_of(trace_id: bytes, prompt_id: Value) -> str:
    """Return the identifier of the prompt of a record or a span: its trace, else its prompt id.

    Raises:
        ItemRejected: it has neither.
    """
    if any(trace_id):
        return f"trace {trace_id.hex()}"
    found = fields.text({words.PROMPT_ID: prompt_id}, words.PROMPT_ID, most_bytes=_ID_BYTES)
    if found is None:
        raise ItemRejected(
            RejectReason.BAD_ATTRIBUTE, "there is neither a trace id nor the attribute prompt_id"
        )
    return found


_ID_BYTES = contract.PROMPT_ID_BYTES


def _text(attributes: Attributes, key: str) -> str | None:
    return fields.text(attributes, key, most_bytes=_ID_BYTES)


def read_event(item: LogItem, event: EventType, context: ItemContext) -> tuple[Records, int]:
    """Return the records of a known event, and how many of its attributes were dropped.

    Raises:
        ItemRejected: it counts for nothing.
    """
    happened = item.time_ns or item.observed_time_ns
    time_ns = accepted_time(happened, now_ns=context.now_ns, clock=context.clock)
    known = {key: value for key, value in item.attributes.items() if key in event.allowed}
    records = event.read(HostRecord(item, context, time_ns, known))
    return records, len(item.attributes) - len(known)


def sift_guard_record(item: LogItem) -> SiftedAttributes:
    """Apply the allow-list to a guard's record."""
    return sift_attributes(item.attributes, _GUARD_ATTRIBUTES)


def _session(record: HostRecord) -> Records:
    session_id = fields.required(_text(record.known, words.SESSION_ID), words.SESSION_ID)
    origin = record.context.origin
    return (
        SessionOpened(
            origin=origin,
            time_ns=record.time_ns,
            prompt_id=session_id,
            assignment_ids=origin.assignment_ids,
        ),
    )


def _start(record: HostRecord) -> Records:
    origin = record.context.origin
    start = PromptStart(
        origin=origin,
        time_ns=record.time_ns,
        prompt_id=record.prompt,
        assignment_ids=origin.assignment_ids,
        route=Route.INTERACTIVE_FOREGROUND,
    )
    return start, record.part(BeginPart(record.at_ms))


def _answer(record: HostRecord) -> Records:
    counts = [
        fields.count(record.known, key, most=contract.TOKEN_LIMIT)
        for key in (words.INPUT_TOKENS, words.OUTPUT_TOKENS)
    ]
    reported = [count for count in counts if count is not None]
    tokens = min(sum(reported), contract.TOKEN_LIMIT) if len(reported) == 2 else None
    is_turn = record.known.get(words.SUBAGENT) is None
    key = canonical(record.known.get(words.RESPONSE_ID))
    return (record.part(AnswerPart(tokens, is_turn), key=key),)


def _failure(record: HostRecord) -> Records:
    return (record.part(FailurePart()),)


def _call(record: HostRecord) -> Records:
    status = fields.word(record.known, words.EXECUTION_STATUS, limits.EXECUTION_STATUSES)
    if status not in _EXECUTED:
        return ()
    return (record.part(CallPart(record.at_ms), key=canonical(record.known.get(words.CALL_ID))),)


def _finish(record: HostRecord) -> Records:
    turns = fields.required(fields.count(record.known, words.TURNS), words.TURNS)
    return (record.part(FinishPart(record.at_ms, utc_hour(record.time_ns), turns)),)


def _loop(record: HostRecord) -> Records:
    loop = words.LOOP_TYPES.get(_text(record.known, words.LOOP_TYPE) or "")
    part = record.part(StopPart(words.loop_outcome(loop)))
    if loop is None:
        return (part,)
    detected = LoopDetected(
        origin=part.origin,
        time_ns=part.time_ns,
        prompt_id=part.prompt_id,
        assignment_ids=part.assignment_ids,
        guard=words.GUARD if loop is LoopType.REPEATED_TOOL_EXECUTION_FAILURE else None,
        loop_type=loop,
    )
    return part, detected


def _transition(record: HostRecord) -> Records:
    """Read a guard's record; its time and its words replace the sequence that it lacks."""
    found = sift_guard_record(record.item)
    given, word = found.known, fields.word
    ordinal = fields.count(given, words.ORDINAL)
    values = [canonical(given.get(key)) for key in words.GUARD_WORDS]
    route = word(given, "route", limits.ROUTES)
    mode = word(given, "mode", limits.MODES)
    decision = word(given, "decision", limits.DECISIONS)
    return (
        Transition(
            origin=record.context.origin,
            time_ns=record.time_ns,
            prompt_id=record.prompt,
            assignment_ids=record.context.origin.assignment_ids,
            deny_listed=found.deny_listed,
            guard=words.GUARD,
            sequence=None,
            ordinal=ordinal,
            route=Route.INTERACTIVE_FOREGROUND if route is None else route,
            mode=fields.required(mode, "mode", found.deny_listed),
            phase_from=word(given, "phase_before", limits.PHASES),
            phase_to=word(given, "phase_after", limits.PHASES),
            decision=fields.required(decision, "decision", found.deny_listed),
            reset_reason=word(given, "reset_reason", limits.RESET_REASONS),
            failure_bucket=word(given, "failure_count_bucket", limits.FAILURE_BUCKETS),
            batch_bucket=word(given, "batch_count_bucket", limits.BATCH_BUCKETS),
            batch_complete=None,
            tool_type=word(given, "tool_type", limits.TOOL_TYPES),
            terminal_status=word(given, "terminal_status", limits.TERMINAL_STATUSES),
            execution_status=word(given, words.EXECUTION_STATUS, limits.EXECUTION_STATUSES),
            error_type=fields.name(given, words.ERROR_TYPE, limits.ERROR_TYPE_NAME),
            history_preserved=None,
            discriminator=" ".join([str(record.time_ns), str(ordinal), *values]),
        ),
    )


_COMMON_ATTRIBUTES = {words.EVENT_NAME, words.EVENT_TIME, words.SESSION_ID}
_PROMPT_ATTRIBUTES = _COMMON_ATTRIBUTES | {words.PROMPT_ID}
_GUARD_ATTRIBUTES = _COMMON_ATTRIBUTES | set(words.GUARD_WORDS) | set(words.RECORD_WORDS)
GUARD_EVENT = "qwen-code.repeated_tool_failure_guard"

EVENTS: Mapping[str, EventType] = {
    "session.start": EventType(_COMMON_ATTRIBUTES, _session),
    "qwen-code.user_prompt": EventType(_PROMPT_ATTRIBUTES, _start),
    "qwen-code.api_response": EventType(
        _PROMPT_ATTRIBUTES
        | {words.INPUT_TOKENS, words.OUTPUT_TOKENS, words.RESPONSE_ID, words.SUBAGENT},
        _answer,
    ),
    "qwen-code.api_error": EventType(_PROMPT_ATTRIBUTES, _failure),
    "qwen-code.tool_call": EventType(
        _PROMPT_ATTRIBUTES | {words.CALL_ID, words.EXECUTION_STATUS}, _call
    ),
    "qwen-code.conversation_finished": EventType(_COMMON_ATTRIBUTES | {words.TURNS}, _finish),
    "loop_detected": EventType(_PROMPT_ATTRIBUTES | {words.LOOP_TYPE}, _loop),
    GUARD_EVENT: EventType(_GUARD_ATTRIBUTES, _transition),
}
