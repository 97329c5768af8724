"""Native log events: one record builder per event name."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from guardwave.control_plane.ingest.contract import fields, limits
from guardwave.control_plane.ingest.model.otlp_values import Attributes
from guardwave.control_plane.ingest.model.records import (
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    Origin,
    PromptDisruption,
    PromptEnd,
    PromptStart,
    Transition,
)
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import Outcome, Route

T = TypeVar("T")


class IncomingEvent(NamedTuple):
    """One log record on its way in: sender, time, and its attributes after the allow-list."""

    origin: Origin
    time_ns: int
    attributes: Attributes
    deny_listed: tuple[str, ...]
    has_body: bool


class EventType(NamedTuple):
    """An event of the contract: its attributes, and the builder of a record from them."""

    allowed: AbstractSet[str]
    build: Callable[[IncomingEvent], LogRecord | None]


def _prompt_id(event: IncomingEvent) -> str:
    found = fields.text(event.attributes, contract.PROMPT_ID, most_bytes=contract.PROMPT_ID_BYTES)
    return _required(event, found, contract.PROMPT_ID)


def _required(event: IncomingEvent, value: T | None, key: str) -> T:
    return fields.required(value, key, event.deny_listed)


def _assignment_ids(event: IncomingEvent) -> tuple[str, ...]:
    return fields.assignment_ids(event.attributes) or event.origin.assignment_ids


def _route(event: IncomingEvent) -> Route:
    found = fields.word(event.attributes, contract.ROUTE, limits.ROUTES)
    return Route.INTERACTIVE_FOREGROUND if found is None else found


def _start(event: IncomingEvent) -> PromptStart:
    return PromptStart(
        origin=event.origin,
        time_ns=event.time_ns,
        prompt_id=_prompt_id(event),
        assignment_ids=_assignment_ids(event),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
        route=_route(event),
    )


def _end(event: IncomingEvent) -> PromptEnd:
    attributes = event.attributes
    return PromptEnd(
        origin=event.origin,
        time_ns=event.time_ns,
        prompt_id=_prompt_id(event),
        assignment_ids=_assignment_ids(event),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
        outcome=_outcome(event),
        duration_seconds=fields.seconds(
            attributes, contract.DURATION, most=contract.DURATION_LIMIT_SECONDS
        ),
        turns=fields.count(attributes, contract.TURNS),
        tool_calls=fields.count(attributes, contract.TOOL_CALLS),
        transitions=fields.count(attributes, contract.TRANSITIONS),
        input_tokens=_tokens(attributes, contract.INPUT_TOKENS, limits.OLDER_INPUT_TOKENS),
        output_tokens=_tokens(attributes, contract.OUTPUT_TOKENS, limits.OLDER_OUTPUT_TOKENS),
        calls_after_would_stop=fields.count(attributes, contract.CALLS_AFTER_WOULD_STOP),
    )


def _outcome(event: IncomingEvent) -> Outcome:
    attributes = event.attributes
    found = fields.word(attributes, contract.OUTCOME, limits.OUTCOMES)
    if found is not None:
        return found
    completed = fields.flag(attributes, limits.COMPLETED)
    if completed is None:
        return _required(event, found, contract.OUTCOME)
    return Outcome.COMPLETED if completed else Outcome.FAILED


def _tokens(attributes: Attributes, key: str, older: str) -> int | None:
    found = fields.count(attributes, key, most=contract.TOKEN_LIMIT)
    if found is None:
        return fields.count(attributes, older, most=contract.TOKEN_LIMIT)
    return found


def _disruption(event: IncomingEvent) -> PromptDisruption:
    attributes = event.attributes
    kind = fields.word(attributes, contract.DISRUPTION_KIND, limits.DISRUPTION_KINDS)
    offset = fields.seconds(
        attributes, contract.DISRUPTION_OFFSET, most=contract.DISRUPTION_LIMIT_SECONDS
    )
    return PromptDisruption(
        origin=event.origin,
        time_ns=event.time_ns,
        prompt_id=_prompt_id(event),
        assignment_ids=_assignment_ids(event),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
        kind=_required(event, kind, contract.DISRUPTION_KIND),
        offset_seconds=_required(event, offset, contract.DISRUPTION_OFFSET),
    )


def _transition(event: IncomingEvent) -> Transition:
    attributes = event.attributes
    word = fields.word
    return Transition(
        origin=event.origin,
        time_ns=event.time_ns,
        prompt_id=_prompt_id(event),
        assignment_ids=_assignment_ids(event),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
        guard=_required(event, _guard(attributes), contract.GUARD),
        sequence=_required(event, fields.count(attributes, contract.SEQUENCE), contract.SEQUENCE),
        ordinal=fields.count(attributes, contract.ORDINAL),
        route=_route(event),
        mode=_required(event, word(attributes, contract.MODE, limits.MODES), contract.MODE),
        phase_from=word(attributes, contract.PHASE_FROM, limits.PHASES),
        phase_to=word(attributes, contract.PHASE_TO, limits.PHASES),
        decision=_required(
            event, word(attributes, contract.DECISION, limits.DECISIONS), contract.DECISION
        ),
        reset_reason=word(attributes, contract.RESET_REASON, limits.RESET_REASONS),
        failure_bucket=word(attributes, contract.FAILURE_BUCKET, limits.FAILURE_BUCKETS),
        batch_bucket=word(attributes, contract.BATCH_BUCKET, limits.BATCH_BUCKETS),
        batch_complete=fields.flag(attributes, contract.BATCH_COMPLETE),
        tool_type=word(attributes, contract.TOOL_TYPE, limits.TOOL_TYPES),
        terminal_status=word(attributes, contract.TERMINAL_STATUS, limits.TERMINAL_STATUSES),
        execution_status=word(attributes, contract.EXECUTION_STATUS, limits.EXECUTION_STATUSES),
        error_type=fields.name(attributes, contract.ERROR_TYPE, limits.ERROR_TYPE_NAME),
        history_preserved=fields.flag(attributes, contract.HISTORY_PRESERVED),
    )


def _guard(attributes: Attributes) -> str | None:
    return fields.name(attributes, contract.GUARD, limits.GUARD_NAME)


def _loop(event: IncomingEvent) -> LoopDetected:
    attributes = event.attributes
    loop_type = fields.word(attributes, contract.LOOP_TYPE, limits.LOOP_TYPES)
    return LoopDetected(
        origin=event.origin,
        time_ns=event.time_ns,
        prompt_id=_prompt_id(event),
        assignment_ids=_assignment_ids(event),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
        guard=_guard(attributes),
        loop_type=_required(event, loop_type, contract.LOOP_TYPE),
    )


def _evaluation(event: IncomingEvent) -> FlagEvaluation | None:
    key = event.attributes.get(contract.FLAG_KEY)
    if not isinstance(key, str) or not key.startswith(contract.FLAG_PREFIX):
        return None
    guard = key.removeprefix(contract.FLAG_PREFIX)
    mode = fields.word(event.attributes, contract.FLAG_VARIANT, limits.MODES)
    if not limits.GUARD_NAME.fullmatch(guard):
        return None
    return FlagEvaluation(
        origin=event.origin,
        time_ns=event.time_ns,
        guard=guard,
        mode=_required(event, mode, contract.FLAG_VARIANT),
        deny_listed=event.deny_listed,
        has_body=event.has_body,
    )


# A known attribute on the wrong event is dropped, like an unknown one.
_PROMPT_ATTRIBUTES = {limits.EVENT_NAME, contract.PROMPT_ID, contract.ASSIGNMENT_ID}

EVENTS: Mapping[str, EventType] = {
    contract.TRANSITION: EventType(
        _PROMPT_ATTRIBUTES
        | {
            contract.GUARD,
            contract.SEQUENCE,
            contract.ORDINAL,
            contract.ROUTE,
            contract.MODE,
            contract.PHASE_FROM,
            contract.PHASE_TO,
            contract.DECISION,
            contract.RESET_REASON,
            contract.FAILURE_BUCKET,
            contract.BATCH_BUCKET,
            contract.BATCH_COMPLETE,
            contract.TOOL_TYPE,
            contract.TERMINAL_STATUS,
            contract.EXECUTION_STATUS,
            contract.ERROR_TYPE,
            contract.HISTORY_PRESERVED,
        },
        _transition,
    ),
    contract.PROMPT_START: EventType(_PROMPT_ATTRIBUTES | {contract.ROUTE}, _start),
    contract.PROMPT_END: EventType(
        _PROMPT_ATTRIBUTES
        | {
            contract.OUTCOME,
            limits.COMPLETED,
            contract.DURATION,
            contract.TURNS,
            contract.TOOL_CALLS,
            contract.TRANSITIONS,
            contract.INPUT_TOKENS,
            contract.OUTPUT_TOKENS,
            limits.OLDER_INPUT_TOKENS,
            limits.OLDER_OUTPUT_TOKENS,
            contract.CALLS_AFTER_WOULD_STOP,
        },
        _end,
    ),
    contract.DISRUPTION: EventType(
        _PROMPT_ATTRIBUTES | {contract.DISRUPTION_KIND, contract.DISRUPTION_OFFSET}, _disruption
    ),
    contract.LOOP_DETECTED: EventType(
        _PROMPT_ATTRIBUTES | {contract.GUARD, contract.LOOP_TYPE}, _loop
    ),
    contract.FLAG_EVALUATION: EventType(
        {
            limits.EVENT_NAME,
            contract.FLAG_KEY,
            contract.FLAG_VARIANT,
        },
        _evaluation,
    ),
}
