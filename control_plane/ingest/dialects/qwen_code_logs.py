"""The log records of qwen-code: one reader per event name.

None says how a prompt ended. The records of one prompt share a trace id, also the one that ends it,
which has no prompt id: the trace stands for the prompt.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from control_plane.ingest import accepted, fields
from control_plane.ingest.allow_list import Sifted, sift
from control_plane.ingest.dialects import qwen_code_words as words
from control_plane.ingest.dialects.dialect import Arrival
from control_plane.ingest.event_time import accepted_time, utc_hour
from control_plane.ingest.identity import canonical
from control_plane.ingest.news_of_records import MILLISECOND_NS
from control_plane.ingest.otlp import Attributes, LogItem, Value
from control_plane.ingest.records import (
    LogRecord,
    LoopDetected,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
)
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.stores.evidence_parts import (
    Answered,
    Began,
    Called,
    Finished,
    Part,
    RequestFailed,
    Stopped,
)
from reducer import contract
from reducer.vocabulary import ExecutionStatus, LoopType, Route

_EXECUTED = frozenset({ExecutionStatus.SUCCESS, ExecutionStatus.ERROR})


class HostRecord(NamedTuple):
    """One log record on its way in: when it happened, and what of it may be read."""

    item: LogItem
    arrival: Arrival
    time_ns: int
    known: Attributes

    @property
    def at_ms(self) -> int:
        """When it happened, in milliseconds since 1970."""
        return self.time_ns // MILLISECOND_NS

    @property
    def prompt(self) -> str:
        """What stands for the prompt."""
        return prompt_of(self.item.trace_id, self.known.get(words.PROMPT_ID))

    @property
    def session_id(self) -> str:
        """The id of the session, "" when it is not told."""
        return _text(self.known, words.SESSION_ID) or ""

    def part(self, part: Part, *, key: str = "") -> PromptPart:
        """Return a part of the prompt; with its time, `key` tells it from others of its kind."""
        return PromptPart(
            origin=self.arrival.origin,
            time_ns=self.time_ns,
            prompt_id=self.prompt,
            assignment_ids=self.arrival.origin.assignment_ids,
            part=part,
            told_apart_by=f"{self.time_ns} {key}",
            session_id=self.session_id,
        )


Records = tuple[LogRecord, ...]


class Event(NamedTuple):
    """An event of the client: the attributes that are read of it, and the records that it tells."""

    allowed: AbstractSet[str]
    read: Callable[[HostRecord], Records]


def prompt_of(trace_id: bytes, prompt_id: Value) -> str:
    """Return what stands for the prompt of a record or a span: its trace, else its prompt id.

    Raises:
        Refusal: it has neither.
    """
    if any(trace_id):
        return f"trace {trace_id.hex()}"
    found = fields.text({words.PROMPT_ID: prompt_id}, words.PROMPT_ID, most_bytes=_ID_BYTES)
    if found is None:
        raise Refusal(
            RejectReason.BAD_ATTRIBUTE, "there is neither a trace id nor the attribute prompt_id"
        )
    return found


_ID_BYTES = contract.PROMPT_ID_BYTES


def _text(attributes: Attributes, key: str) -> str | None:
    return fields.text(attributes, key, most_bytes=_ID_BYTES)


def take(item: LogItem, event: Event, arrival: Arrival) -> tuple[Records, int]:
    """Return what a record of a known event tells, and how many of its attributes were dropped.

    Raises:
        Refusal: it counts for nothing.
    """
    happened = item.time_ns or item.observed_time_ns
    time_ns = accepted_time(happened, now_ns=arrival.now_ns, clock=arrival.clock)
    known = {key: value for key, value in item.attributes.items() if key in event.allowed}
    records = event.read(HostRecord(item, arrival, time_ns, known))
    return records, len(item.attributes) - len(known)


def sifted(item: LogItem) -> Sifted:
    """Return a guard's record after the allow-list, with the names of what it must not carry."""
    return sift(item.attributes, _OF_A_GUARD)


def _session(record: HostRecord) -> Records:
    session_id = fields.required(_text(record.known, words.SESSION_ID), words.SESSION_ID)
    origin = record.arrival.origin
    return (
        SessionOpened(
            origin=origin,
            time_ns=record.time_ns,
            prompt_id=session_id,
            assignment_ids=origin.assignment_ids,
        ),
    )


def _start(record: HostRecord) -> Records:
    origin = record.arrival.origin
    start = PromptStart(
        origin=origin,
        time_ns=record.time_ns,
        prompt_id=record.prompt,
        assignment_ids=origin.assignment_ids,
        route=Route.INTERACTIVE_FOREGROUND,
    )
    return start, record.part(Began(record.at_ms))


def _answer(record: HostRecord) -> Records:
    counted = [
        fields.count(record.known, key, most=contract.TOKEN_LIMIT)
        for key in (words.INPUT_TOKENS, words.OUTPUT_TOKENS)
    ]
    told_tokens = [tokens for tokens in counted if tokens is not None]
    tokens = min(sum(told_tokens), contract.TOKEN_LIMIT) if len(told_tokens) == 2 else None
    is_turn = record.known.get(words.SUBAGENT) is None
    key = canonical(record.known.get(words.RESPONSE_ID))
    return (record.part(Answered(tokens, is_turn), key=key),)


def _failure(record: HostRecord) -> Records:
    return (record.part(RequestFailed()),)


def _call(record: HostRecord) -> Records:
    status = fields.word(record.known, words.EXECUTION_STATUS, accepted.EXECUTION_STATUSES)
    if status not in _EXECUTED:
        return ()
    return (record.part(Called(record.at_ms), key=canonical(record.known.get(words.CALL_ID))),)


def _finish(record: HostRecord) -> Records:
    turns = fields.required(fields.count(record.known, words.TURNS), words.TURNS)
    return (record.part(Finished(record.at_ms, utc_hour(record.time_ns), turns)),)


def _loop(record: HostRecord) -> Records:
    loop = words.LOOP_TYPES.get(_text(record.known, words.LOOP_TYPE) or "")
    part = record.part(Stopped(words.loop_outcome(loop)))
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
    """Read a guard's record, which has no sequence: its time and its words stand for one."""
    found = sifted(record.item)
    given, word = found.known, fields.word
    ordinal = fields.count(given, words.ORDINAL)
    said = [canonical(given.get(key)) for key in words.GUARD_WORDS]
    route = word(given, "route", accepted.ROUTES)
    mode = word(given, "mode", accepted.MODES)
    decision = word(given, "decision", accepted.DECISIONS)
    return (
        Transition(
            origin=record.arrival.origin,
            time_ns=record.time_ns,
            prompt_id=record.prompt,
            assignment_ids=record.arrival.origin.assignment_ids,
            deny_listed=found.deny_listed,
            guard=words.GUARD,
            sequence=None,
            ordinal=ordinal,
            route=Route.INTERACTIVE_FOREGROUND if route is None else route,
            mode=fields.required(mode, "mode", found.deny_listed),
            phase_from=word(given, "phase_before", accepted.PHASES),
            phase_to=word(given, "phase_after", accepted.PHASES),
            decision=fields.required(decision, "decision", found.deny_listed),
            reset_reason=word(given, "reset_reason", accepted.RESET_REASONS),
            failure_bucket=word(given, "failure_count_bucket", accepted.FAILURE_BUCKETS),
            batch_bucket=word(given, "batch_count_bucket", accepted.BATCH_BUCKETS),
            batch_complete=None,
            tool_type=word(given, "tool_type", accepted.TOOL_TYPES),
            terminal_status=word(given, "terminal_status", accepted.TERMINAL_STATUSES),
            execution_status=word(given, words.EXECUTION_STATUS, accepted.EXECUTION_STATUSES),
            error_type=fields.name(given, words.ERROR_TYPE, accepted.ERROR_TYPE_NAME),
            history_preserved=None,
            told_apart_by=" ".join([str(record.time_ns), str(ordinal), *said]),
        ),
    )


_OF_ANY = {words.EVENT_NAME, words.EVENT_TIME, words.SESSION_ID}
_OF_A_PROMPT = _OF_ANY | {words.PROMPT_ID}
_OF_A_GUARD = _OF_ANY | set(words.GUARD_WORDS) | set(words.RECORD_WORDS)
GUARD_EVENT = "qwen-code.repeated_tool_failure_guard"

EVENTS: Mapping[str, Event] = {
    "session.start": Event(_OF_ANY, _session),
    "qwen-code.user_prompt": Event(_OF_A_PROMPT, _start),
    "qwen-code.api_response": Event(
        _OF_A_PROMPT | {words.INPUT_TOKENS, words.OUTPUT_TOKENS, words.RESPONSE_ID, words.SUBAGENT},
        _answer,
    ),
    "qwen-code.api_error": Event(_OF_A_PROMPT, _failure),
    "qwen-code.tool_call": Event(_OF_A_PROMPT | {words.CALL_ID, words.EXECUTION_STATUS}, _call),
    "qwen-code.conversation_finished": Event(_OF_ANY | {words.TURNS}, _finish),
    "loop_detected": Event(_OF_A_PROMPT | {words.LOOP_TYPE}, _loop),
    GUARD_EVENT: Event(_OF_A_GUARD, _transition),
}
