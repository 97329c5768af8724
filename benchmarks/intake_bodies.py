"""Intake bodies: OTLP requests as agent hosts send them, for the benchmarks of intake."""

import time
from collections.abc import Iterator
from itertools import count

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION

EVENTS = 200
POINTS = 24
FEW = 20
OWNERS = 10_000
# A prompt is a start, two transitions and an end.
PROMPTS = EVENTS // 4

# A placeholder for the number of a body. The number has the same length, so lengths stay valid.
_NUMBER = b"#number#"
_DECISIONS = ((1, "tracked", "idle", "tracking"), (2, "would_warn", "tracking", "warned"))


def log_bodies(keys: tuple[bytes, bytes], *, owners: int, first: int = 0) -> Iterator[bytes]:
    """Yield bodies of 200 events without end, no prompt twice.

    The prompts of a body are of as many of the owners as it has prompts; `keys` are the
    environment's for pseudonyms and tags.
    """
    templates = []
    for at in range(0, max(owners, PROMPTS), PROMPTS):
        names = [f"owner-{(at + prompt) % owners}" for prompt in range(PROMPTS)]
        templates.append(_log_body(keys, names))
    for number in count(first):
        template = templates[number % len(templates)]
        yield template.replace(_NUMBER, b"%08d" % number)


def _log_body(keys: tuple[bytes, bytes], names: list[str]) -> bytes:
    pseudonym_key, tag_key = keys
    request = ExportLogsServiceRequest()
    entry = request.resource_logs.add(resource=_resource())
    scope = entry.scope_logs.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    now = time.time_ns()
    for at, name in enumerate(names):
        assigned = Assignment(
            GUARD, pseudonym_of(pseudonym_key, name), 1, Cohort.EVERYONE, Mode.SHADOW, 1
        )
        shared = (
            pair("agent.guard.prompt.id", f"prompt-{_NUMBER.decode()}-{at}"),
            pair("agent.guard.assignment.id", issue(tag_key, ENVIRONMENT, assigned)),
        )
        events = [
            ("prompt.start", _START),
            *(("transition", _transition(*decision)) for decision in _DECISIONS),
            ("prompt.end", _end(at)),
        ]
        for event, attributes in events:
            record = scope.log_records.add(
                time_unix_nano=now, observed_time_unix_nano=now, event_name=f"agent.guard.{event}"
            )
            record.attributes.extend((*shared, *attributes))
    return request.SerializeToString()


def metric_body(number: int) -> bytes:
    """Return one export of a counter: 24 points with nine attributes each."""
    request = ExportMetricsServiceRequest()
    scope = request.resource_metrics.add(resource=_resource()).scope_metrics.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    metric = scope.metrics.add(name="agent.guard.transitions", unit="{transition}")
    metric.sum.MergeFrom(type(metric.sum)(aggregation_temporality=1, is_monotonic=True))
    start = 1_800_000_000_000_000_000 + number * 10_000_000_000
    for at in range(POINTS):
        point = metric.sum.data_points.add(
            start_time_unix_nano=start, time_unix_nano=start + 10_000_000_000, as_int=number + at
        )
        point.attributes.extend((*_transition(at, "tracked", "idle", "tracking")[:8], _guard()))
    return request.SerializeToString()


def _resource() -> Resource:
    attributes = {
        "service.name": "bench",
        "service.version": VERSION,
        "service.instance.id": "bench-1",
        "deployment.environment.name": ENVIRONMENT,
    }
    return Resource(attributes=[pair(key, text) for key, text in attributes.items()])


def pair(key: str, value: str | float) -> KeyValue:
    """Return one attribute."""
    match value:
        case str():
            return KeyValue(key=key, value=AnyValue(string_value=value))
        case int():
            return KeyValue(key=key, value=AnyValue(int_value=value))
        case float():
            return KeyValue(key=key, value=AnyValue(double_value=value))


def _guard() -> KeyValue:
    return pair("agent.guard.name", GUARD)


_START: tuple[KeyValue, ...] = (pair("agent.guard.route", "interactive_foreground"),)


def _transition(sequence: int, decision: str, before: str, after: str) -> tuple[KeyValue, ...]:
    return (
        pair("agent.guard.sequence", sequence),
        pair("agent.guard.mode", "shadow"),
        pair("agent.guard.phase.from", before),
        pair("agent.guard.phase.to", after),
        pair("agent.guard.decision", decision),
        pair("agent.guard.tool.type", "native"),
        pair("agent.guard.terminal.status", "error"),
        pair("agent.guard.execution.status", "error"),
        _guard(),
        pair("agent.guard.candidate.ordinal", 1),
        pair("agent.guard.route", "interactive_foreground"),
        pair("agent.guard.failure_count.bucket", "1-2"),
        pair("agent.guard.batch_count.bucket", "1"),
        pair("agent.guard.error.type", "file_not_found"),
    )


def _end(at: int) -> tuple[KeyValue, ...]:
    return (
        pair("agent.guard.prompt.outcome", "completed"),
        pair("agent.guard.prompt.duration", 1.5 + at * 0.37),
        pair("agent.guard.prompt.turns", 4 + at % 5),
        pair("agent.guard.prompt.tool_calls", 6 + at % 7),
        pair("agent.guard.prompt.transitions", 2),
        pair("gen_ai.usage.input_tokens", 4000 + 17 * at),
        pair("gen_ai.usage.output_tokens", 800 + 3 * at),
    )
