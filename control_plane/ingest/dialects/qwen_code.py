"""The dialect of qwen-code: its own scope, events, counters and spans, with no change to it."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

from control_plane.ingest import accepted, fields
from control_plane.ingest.dialects import qwen_code_logs as logs
from control_plane.ingest.dialects import qwen_code_words as words
from control_plane.ingest.dialects.dialect import Arrival, Fate, Refused, Scopes, Taken
from control_plane.ingest.event_time import accepted_time, utc_hour
from control_plane.ingest.exposed_items import exposed_by_point, exposed_in
from control_plane.ingest.identity import canonical
from control_plane.ingest.news_of_records import MILLISECOND_NS, duration_bucket
from control_plane.ingest.otlp import LogItem, NumberPoint, Point, Span, Value
from control_plane.ingest.points import PointArrival, take_point
from control_plane.ingest.records import CounterPoint, PromptPart
from control_plane.ingest.rejections import IgnoreReason, Refusal, RejectReason
from control_plane.stores.evidence_parts import Closed
from reducer import contract

_SCOPES = frozenset({words.SCOPE})
_MS_PER_S = 1000.0
# What a point says beside the words of the contract, so that two streams stay two.
_REST = "rest"


class QwenCodeDialect:
    """Prompts of qwen-code, by its log records and, when they are sent, by its spans.

    Its records name no assignment: the ids on the Resource are those of all its prompts.
    """

    scopes = Scopes(logs=_SCOPES, points=_SCOPES, spans=_SCOPES)

    def contract_of(self, scope_version: str) -> int | None:
        """Return contract 1: the scope's version does not say what its records look like."""
        del scope_version
        return accepted.CONTRACT

    def read_log(self, item: LogItem, arrival: Arrival) -> Fate:
        """Read one of the events that tell of a session, a prompt or the guard."""
        name = item.event_name or item.attributes.get(words.EVENT_NAME)
        event = logs.EVENTS.get(name) if isinstance(name, str) else None
        if event is None:
            return IgnoreReason.UNKNOWN_EVENT
        try:
            return Taken(*logs.take(item, event, arrival))
        except Refusal as refusal:
            if name != logs.GUARD_EVENT:
                raise
            is_exposing = logs.sifted(item).deny_listed
            exposed = exposed_in(item, arrival.origin, guard=words.GUARD) if is_exposing else None
            return Refused(refusal.rejected, exposed)

    def read_point(self, point: Point, arrival: Arrival) -> Fate:
        """Read a point of the guard's counter or of the counter of tool executions."""
        if point.metric == words.GUARD_COUNTER:
            return _take_guard_point(point, arrival)
        if point.metric == words.EXECUTION_COUNTER:
            return _take_execution_point(point, arrival)
        return IgnoreReason.UNKNOWN_METRIC

    def read_span(self, span: Span, arrival: Arrival) -> Fate:
        """Read the span over a whole prompt; all others are content."""
        if span.name != words.SPAN:
            return IgnoreReason.UNKNOWN_EVENT
        time_ns = accepted_time(span.end_ns, now_ns=arrival.now_ns, clock=arrival.clock)
        attributes = span.attributes
        outcome = fields.word(attributes, words.SPAN_STATUS, words.TURN_OUTCOMES)
        seconds = _seconds(span)
        began_ns = time_ns - round(seconds * accepted.SECOND_NS)
        session_id = fields.text(attributes, words.SESSION_ID, most_bytes=contract.PROMPT_ID_BYTES)
        closed = Closed(
            at_ms=time_ns // MILLISECOND_NS,
            hour=utc_hour(began_ns),
            outcome=fields.required(outcome, words.SPAN_STATUS),
            duration_bucket=duration_bucket(seconds),
        )
        part = PromptPart(
            origin=arrival.origin,
            time_ns=time_ns,
            prompt_id=logs.prompt_of(span.trace_id, attributes.get(words.SPAN_PROMPT_ID)),
            assignment_ids=arrival.origin.assignment_ids,
            part=closed,
            told_apart_by=str(time_ns),
            began_ns=began_ns,
            session_id=session_id or "",
        )
        return Taken((part,))


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


def _take_guard_point(point: Point, arrival: Arrival) -> Fate:
    renamed = {**words.GUARD_WORDS, **words.RECORD_WORDS}
    given = {renamed.get(key, key): value for key, value in _attributes(point).items()}
    return _take(_as(point, contract.TRANSITIONS_METRIC, given), arrival, has_mode=True)


def _take_execution_point(point: Point, arrival: Arrival) -> Fate:
    """Read how many tool calls ran and failed, by what kind: one that never ran is in neither."""
    attributes = _attributes(point)
    status = fields.word(attributes, words.EXECUTION_STATUS, accepted.EXECUTION_STATUSES)
    if accepted.OVERFLOW not in attributes:
        fields.required(status, words.EXECUTION_STATUS)
    if status is not None and status not in accepted.EXECUTED:
        return Taken(())
    rest = sorted((key, canonical(value)) for key, value in attributes.items())
    given: dict[str, Value] = {
        contract.EXECUTION_STATUS: attributes.get(words.EXECUTION_STATUS),
        _REST: blake2b(repr(rest).encode(), digest_size=8).hexdigest(),
    }
    if accepted.OVERFLOW in attributes:
        given[accepted.OVERFLOW] = attributes[accepted.OVERFLOW]
    return _take(_as(point, contract.EXECUTIONS_METRIC, given), arrival, has_mode=False)


def _attributes(point: Point) -> Mapping[str, Value]:
    if not isinstance(point, NumberPoint):
        raise Refusal(RejectReason.WRONG_INSTRUMENT, f"{point.metric} is a counter")
    return point.attributes


def _as(point: Point, metric: str, attributes: Mapping[str, Value]) -> NumberPoint:
    assert isinstance(point, NumberPoint)  # _attributes refused the others
    given = {**attributes, contract.GUARD: words.GUARD}
    return point._replace(metric=metric, attributes=given)


def _take(point: NumberPoint, arrival: Arrival, *, has_mode: bool) -> Fate:
    shared = PointArrival(arrival.origin, arrival.now_ns, arrival.clock, has_mode=has_mode)
    try:
        taken = take_point(point, shared)
    except Refusal as refusal:
        return Refused(refusal.rejected, exposed_by_point(point, arrival.origin))
    if isinstance(taken, IgnoreReason):
        return taken
    record = taken.record
    if isinstance(record, CounterPoint):
        record = replace(record, is_unnumbered=True)
    return Taken((record,), taken.dropped)
