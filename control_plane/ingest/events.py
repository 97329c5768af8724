"""The native log events: one builder per event name."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from control_plane.ingest import accepted, fields
from control_plane.ingest.otlp import Attributes
from control_plane.ingest.records import (
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    Origin,
    PromptDisruption,
    PromptEnd,
    PromptStart,
    Transition,
)
from reducer import contract
from reducer.vocabulary import Outcome, Route

T = TypeVar("T")


class Reading(NamedTuple):
    """One log record on its way in: where from, when, and its attributes after the allow-list."""

    origin: Origin
    time_ns: int
    attributes: Attributes
    deny_listed: tuple[str, ...]
    has_body: bool


class Event(NamedTuple):
    """An event the contract knows: its attributes, and how a record is built from them."""

    allowed: AbstractSet[str]
    build: Callable[[Reading], LogRecord | None]


def _prompt_id(reading: Reading) -> str:
    found = fields.text(reading.attributes, contract.PROMPT_ID, most_bytes=contract.PROMPT_ID_BYTES)
    return _required(reading, found, contract.PROMPT_ID)


def _required(reading: Reading, value: T | None, key: str) -> T:
    return fields.required(value, key, reading.deny_listed)


def _assignment_ids(reading: Reading) -> tuple[str, ...]:
    return fields.assignment_ids(reading.attributes) or reading.origin.assignment_ids


def _route(reading: Reading) -> Route:
    found = fields.word(reading.attributes, contract.ROUTE, accepted.ROUTES)
    return Route.INTERACTIVE_FOREGROUND if found is None else found


def _start(reading: Reading) -> PromptStart:
    return PromptStart(
        origin=reading.origin,
        time_ns=reading.time_ns,
        prompt_id=_prompt_id(reading),
        assignment_ids=_assignment_ids(reading),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
        route=_route(reading),
    )


def _end(reading: Reading) -> PromptEnd:
    attributes = reading.attributes
    return PromptEnd(
        origin=reading.origin,
        time_ns=reading.time_ns,
        prompt_id=_prompt_id(reading),
        assignment_ids=_assignment_ids(reading),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
        outcome=_outcome(reading),
        duration_seconds=fields.seconds(
            attributes, contract.DURATION, most=contract.DURATION_LIMIT_SECONDS
        ),
        turns=fields.count(attributes, contract.TURNS),
        tool_calls=fields.count(attributes, contract.TOOL_CALLS),
        transitions=fields.count(attributes, contract.TRANSITIONS),
        input_tokens=_tokens(attributes, contract.INPUT_TOKENS, accepted.OLDER_INPUT_TOKENS),
        output_tokens=_tokens(attributes, contract.OUTPUT_TOKENS, accepted.OLDER_OUTPUT_TOKENS),
        calls_after_would_stop=fields.count(attributes, contract.CALLS_AFTER_WOULD_STOP),
    )


def _outcome(reading: Reading) -> Outcome:
    attributes = reading.attributes
    found = fields.word(attributes, contract.OUTCOME, accepted.OUTCOMES)
    if found is not None:
        return found
    completed = fields.flag(attributes, accepted.COMPLETED)
    if completed is None:
        return _required(reading, found, contract.OUTCOME)
    return Outcome.COMPLETED if completed else Outcome.FAILED


def _tokens(attributes: Attributes, key: str, older: str) -> int | None:
    found = fields.count(attributes, key, most=contract.TOKEN_LIMIT)
    if found is None:
        return fields.count(attributes, older, most=contract.TOKEN_LIMIT)
    return found


def _disruption(reading: Reading) -> PromptDisruption:
    attributes = reading.attributes
    kind = fields.word(attributes, contract.DISRUPTION_KIND, accepted.DISRUPTION_KINDS)
    offset = fields.seconds(
        attributes, contract.DISRUPTION_OFFSET, most=contract.DISRUPTION_LIMIT_SECONDS
    )
    return PromptDisruption(
        origin=reading.origin,
        time_ns=reading.time_ns,
        prompt_id=_prompt_id(reading),
        assignment_ids=_assignment_ids(reading),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
        kind=_required(reading, kind, contract.DISRUPTION_KIND),
        offset_seconds=_required(reading, offset, contract.DISRUPTION_OFFSET),
    )


def _transition(reading: Reading) -> Transition:
    attributes = reading.attributes
    word = fields.word
    return Transition(
        origin=reading.origin,
        time_ns=reading.time_ns,
        prompt_id=_prompt_id(reading),
        assignment_ids=_assignment_ids(reading),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
        guard=_required(reading, _guard(attributes), contract.GUARD),
        sequence=_required(reading, fields.count(attributes, contract.SEQUENCE), contract.SEQUENCE),
        ordinal=fields.count(attributes, contract.ORDINAL),
        route=_route(reading),
        mode=_required(reading, word(attributes, contract.MODE, accepted.MODES), contract.MODE),
        phase_from=word(attributes, contract.PHASE_FROM, accepted.PHASES),
        phase_to=word(attributes, contract.PHASE_TO, accepted.PHASES),
        decision=_required(
            reading, word(attributes, contract.DECISION, accepted.DECISIONS), contract.DECISION
        ),
        reset_reason=word(attributes, contract.RESET_REASON, accepted.RESET_REASONS),
        failure_bucket=word(attributes, contract.FAILURE_BUCKET, accepted.FAILURE_BUCKETS),
        batch_bucket=word(attributes, contract.BATCH_BUCKET, accepted.BATCH_BUCKETS),
        batch_complete=fields.flag(attributes, contract.BATCH_COMPLETE),
        tool_type=word(attributes, contract.TOOL_TYPE, accepted.TOOL_TYPES),
        terminal_status=word(attributes, contract.TERMINAL_STATUS, accepted.TERMINAL_STATUSES),
        execution_status=word(attributes, contract.EXECUTION_STATUS, accepted.EXECUTION_STATUSES),
        error_type=fields.name(attributes, contract.ERROR_TYPE, accepted.ERROR_TYPE_NAME),
        history_preserved=fields.flag(attributes, contract.HISTORY_PRESERVED),
    )


def _guard(attributes: Attributes) -> str | None:
    return fields.name(attributes, contract.GUARD, accepted.GUARD_NAME)


def _loop(reading: Reading) -> LoopDetected:
    attributes = reading.attributes
    loop_type = fields.word(attributes, contract.LOOP_TYPE, accepted.LOOP_TYPES)
    return LoopDetected(
        origin=reading.origin,
        time_ns=reading.time_ns,
        prompt_id=_prompt_id(reading),
        assignment_ids=_assignment_ids(reading),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
        guard=_guard(attributes),
        loop_type=_required(reading, loop_type, contract.LOOP_TYPE),
    )


def _evaluation(reading: Reading) -> FlagEvaluation | None:
    key = reading.attributes.get(contract.FLAG_KEY)
    if not isinstance(key, str) or not key.startswith(contract.FLAG_PREFIX):
        return None
    guard = key.removeprefix(contract.FLAG_PREFIX)
    mode = fields.word(reading.attributes, contract.FLAG_VARIANT, accepted.MODES)
    if not accepted.GUARD_NAME.fullmatch(guard):
        return None
    return FlagEvaluation(
        origin=reading.origin,
        time_ns=reading.time_ns,
        guard=guard,
        mode=_required(reading, mode, contract.FLAG_VARIANT),
        deny_listed=reading.deny_listed,
        has_body=reading.has_body,
    )


# A known attribute on the wrong event is dropped, like an unknown one.
_OF_A_PROMPT = {accepted.EVENT_NAME, contract.PROMPT_ID, contract.ASSIGNMENT_ID}

EVENTS: Mapping[str, Event] = {
    contract.TRANSITION: Event(
        _OF_A_PROMPT
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
    contract.PROMPT_START: Event(_OF_A_PROMPT | {contract.ROUTE}, _start),
    contract.PROMPT_END: Event(
        _OF_A_PROMPT
        | {
            contract.OUTCOME,
            accepted.COMPLETED,
            contract.DURATION,
            contract.TURNS,
            contract.TOOL_CALLS,
            contract.TRANSITIONS,
            contract.INPUT_TOKENS,
            contract.OUTPUT_TOKENS,
            accepted.OLDER_INPUT_TOKENS,
            accepted.OLDER_OUTPUT_TOKENS,
            contract.CALLS_AFTER_WOULD_STOP,
        },
        _end,
    ),
    contract.DISRUPTION: Event(
        _OF_A_PROMPT | {contract.DISRUPTION_KIND, contract.DISRUPTION_OFFSET}, _disruption
    ),
    contract.LOOP_DETECTED: Event(_OF_A_PROMPT | {contract.GUARD, contract.LOOP_TYPE}, _loop),
    contract.FLAG_EVALUATION: Event(
        {
            accepted.EVENT_NAME,
            contract.FLAG_KEY,
            contract.FLAG_VARIANT,
        },
        _evaluation,
    ),
}
