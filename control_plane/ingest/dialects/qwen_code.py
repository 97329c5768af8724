"""The qwen-code dialect: the scope, events, counters and spans of an unchanged qwen-code."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

from guardwave.control_plane.ingest.contract import (
    PointContext,
    accept_point,
    accepted_time,
    fields,
    limits,
    utc_hour,
)
from guardwave.control_plane.ingest.dialects import qwen_code_logs as logs
from guardwave.control_plane.ingest.dialects import qwen_code_vocabulary as words
from guardwave.control_plane.ingest.dialects.dialect import (
    Accepted,
    ItemContext,
    ReadResult,
    Scopes,
)
from guardwave.control_plane.ingest.evidence import (
    MILLISECOND_NS,
    content_leak,
    duration_bucket,
    leak_of_point,
)
from guardwave.control_plane.ingest.model.identity import canonical
from guardwave.control_plane.ingest.model.otlp_values import (
    LogItem,
    NumberPoint,
    Point,
    Span,
    Value,
)
from guardwave.control_plane.ingest.model.records import CounterPoint, PromptPart
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, ItemRejected, RejectReason
from guardwave.control_plane.stores.evidence.delta.prompt_parts import SpanPart
from guardwave.reducer import contract

_SCOPES = frozenset({words.SCOPE})
_MS_PER_S = 1000.0
# A digest of the attributes outside the contract, so that two streams stay two.
_REST = "rest"


class QwenCodeDialect:
    """Prompts of qwen-code, by its log records and, when they are sent, by its spans.

    Its records name no assignment: the ids on the Resource are those of all its prompts.
    """

    scopes = Scopes(logs=_SCOPES, points=_SCOPES, spans=_SCOPES)

    def contract_of(self, scope_version: str) -> int | None:
        """Return contract 1 for every version: the scope's version does not change its records."""
        del scope_version
        return limits.CONTRACT

    def read_log(self, item: LogItem, context: ItemContext) -> ReadResult:
        """Read an event of a session, a prompt or the guard."""
        name = item.event_name or item.attributes.get(words.EVENT_NAME)
        event = logs.EVENTS.get(name) if isinstance(name, str) else None
        if event is None:
            return IgnoreReason.UNKNOWN_EVENT
        try:
            return Accepted(*logs.read_event(item, event, context))
        except ItemRejected as error:
            if name != logs.GUARD_EVENT:
                raise
            is_exposing = logs.sift_guard_record(item).deny_listed
            leak = content_leak(item, context.origin, guard=words.GUARD) if is_exposing else None
            return replace(error.rejection, leak=leak)

    def read_point(self, point: Point, context: ItemContext) -> ReadResult:
        """Read a point of the guard's counter or of the counter of tool executions."""
        if point.metric == words.GUARD_COUNTER:
            return _read_guard_point(point, context)
        if point.metric == words.EXECUTION_COUNTER:
            return _read_execution_point(point, context)
        return IgnoreReason.UNKNOWN_METRIC

    def read_span(self, span: Span, context: ItemContext) -> ReadResult:
        """Read the span over a whole prompt; all others are content."""
        if span.name != words.SPAN:
            return IgnoreReason.UNKNOWN_EVENT
        time_ns = accepted_time(span.end_ns, now_ns=context.now_ns, clock=context.clock)
        attributes = span.attributes
        outcome = fields.word(attributes, words.SPAN_STATUS, words.TURN_OUTCOMES)
        seconds = _seconds(span)
        began_ns = time_ns - round(seconds * limits.SECOND_NS)
        session_id = fields.text(attributes, words.SESSION_ID, most_bytes=contract.PROMPT_ID_BYTES)
        closed = SpanPart(
            at_ms=time_ns // MILLISECOND_NS,
            hour=utc_hour(began_ns),
            outcome=fields.required(outcome, words.SPAN_STATUS),
            duration_bucket=duration_bucket(seconds),
        )
        part = PromptPart(
            origin=context.origin,
            time_ns=time_ns,
            prompt_id=logs.prompt_of(span.trace_id, attributes.get(words.SPAN_PROMPT_ID)),
            assignment_ids=context.origin.assignment_ids,
            part=closed,
            discriminator=str(time_ns),
            began_ns=began_ns,
            session_id=session_id or "",
        )
        return Accepted((part,))


def _seconds(span: Span) -> float:
    """Return how long the prompt took, as the client measured it or, without that, by the span."""
    value = span.attributes.get(words.SPAN_DURATION_MS)
    if value is None:
        value = (span.end_ns - span.start_ns) / MILLISECOND_NS
    milliseconds = fields.seconds(
        {words.SPAN_DURATION_MS: value},
        words.SPAN_DURATION_MS,
        most=contract.DURATION_LIMIT_SECONDS * _MS_PER_S,
    )
    return fields.required(milliseconds, words.SPAN_DURATION_MS) / _MS_PER_S


def _read_guard_point(point: Point, context: ItemContext) -> ReadResult:
    renamed = {**words.GUARD_WORDS, **words.RECORD_WORDS}
    given = {renamed.get(key, key): value for key, value in _attributes(point).items()}
    return _read_renamed(point, contract.TRANSITIONS_METRIC, given, context, has_mode=True)


def _read_execution_point(point: Point, context: ItemContext) -> ReadResult:
    """Read how many tool calls ran or failed; a call that never ran is in neither count."""
    attributes = _attributes(point)
    status = fields.word(attributes, words.EXECUTION_STATUS, limits.EXECUTION_STATUSES)
    if limits.OVERFLOW not in attributes:
        fields.required(status, words.EXECUTION_STATUS)
    if status is not None and status not in limits.EXECUTED:
        return Accepted(())
    rest = sorted((key, canonical(value)) for key, value in attributes.items())
    given: dict[str, Value] = {
        contract.EXECUTION_STATUS: attributes.get(words.EXECUTION_STATUS),
        _REST: blake2b(repr(rest).encode(), digest_size=8).hexdigest(),
    }
    if limits.OVERFLOW in attributes:
        given[limits.OVERFLOW] = attributes[limits.OVERFLOW]
    return _read_renamed(point, contract.EXECUTIONS_METRIC, given, context, has_mode=False)


def _attributes(point: Point) -> Mapping[str, Value]:
    if not isinstance(point, NumberPoint):
        raise ItemRejected(RejectReason.WRONG_INSTRUMENT, f"{point.metric} is a counter")
    return point.attributes


def _read_renamed(
    point: Point,
    metric: str,
    attributes: Mapping[str, Value],
    context: ItemContext,
    *,
    has_mode: bool,
) -> ReadResult:
    """Read a point of the client under the contract's names of its metric and attributes."""
    assert isinstance(point, NumberPoint)  # _attributes rejected the others
    given = {**attributes, contract.GUARD: words.GUARD}
    point = point._replace(metric=metric, attributes=given)
    shared = PointContext(context.origin, context.now_ns, context.clock, has_mode=has_mode)
    try:
        accepted = accept_point(point, shared)
    except ItemRejected as error:
        return replace(error.rejection, leak=leak_of_point(point, context.origin))
    if isinstance(accepted, IgnoreReason):
        return accepted
    record = accepted.record
    if isinstance(record, CounterPoint):
        record = replace(record, is_unnumbered=True)
    return Accepted((record,), accepted.dropped)
