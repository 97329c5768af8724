"""Counting hosts: each serves one owner and sends only counters, its id on the Resource."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, log2

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.reducer.vocabulary import Mode
from tests.support.hosts import Prompt
from tests.support.otlp.bodies import any_value
from tests.support.worlds import GUARD, VERSION

DELTA, CUMULATIVE = 1, 2
SECONDS = 30.0


@dataclass(frozen=True)
class Interval:
    """The time and temporality of the points of one export."""

    start: datetime
    time: datetime
    temporality: int = DELTA


def metrics(
    prompts: Sequence[Prompt],
    interval: Interval,
    *,
    owner: str,
    environment: str,
    scale: int = 5,
    resource: Mapping[str, Value] | None = None,
) -> ExportMetricsServiceRequest:
    """Return an owner's counters of whole prompts, as one export request."""
    request = ExportMetricsServiceRequest()
    batch = request.resource_metrics.add()
    ids = [assignment_id for prompt in prompts[:1] for assignment_id in prompt.ids]
    attributes: dict[str, Value] = {
        "service.name": "agent-host",
        "service.version": VERSION,
        "service.instance.id": f"process of {owner}",
        "deployment.environment.name": environment,
        "agent.guard.assignment.id": "~".join(ids),
        **(resource or {}),
    }
    for key, value in attributes.items():
        batch.resource.attributes.add(key=key, value=any_value(value))
    scope = batch.scope_metrics.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    mode = prompts[0].mode if prompts else Mode.SHADOW
    shared = {"agent.guard.name": GUARD, "agent.guard.mode": mode.value}
    for (metric, *labels), count in _counts(prompts).items():
        found = scope.metrics.add(name=f"agent.guard.{metric}")
        found.sum.aggregation_temporality = interval.temporality  # type: ignore[assignment]  # number
        found.sum.is_monotonic = True
        point = found.sum.data_points.add(as_int=count)
        _finish(point, interval, {**shared, **dict(zip(labels[::2], labels[1::2], strict=True))})
    found = scope.metrics.add(name="agent.guard.prompt.duration", unit="s")
    histogram = found.exponential_histogram
    histogram.aggregation_temporality = interval.temporality  # type: ignore[assignment]  # number
    durations = histogram.data_points.add(
        count=len(prompts), sum=SECONDS * len(prompts), scale=scale, zero_count=0
    )
    durations.positive.offset = ceil(log2(SECONDS) * 2**scale) - 1
    durations.positive.bucket_counts.append(len(prompts))
    _finish(durations, interval, shared)
    return request


def _counts(prompts: Iterable[Prompt]) -> Counter[tuple[str, ...]]:
    stage, outcome = "agent.guard.prompt.stage", "agent.guard.prompt.outcome"
    counted: Counter[tuple[str, ...]] = Counter()
    for prompt in prompts:
        counted["prompts", stage, "start"] += 1
        counted["prompts", stage, "end", outcome, prompt.outcome] += 1
        counted["tokens",] += prompt.tokens
        counted["turns",] += prompt.turns
        if prompt.is_disrupted:
            counted["disruptions", "agent.guard.disruption.kind", "retry"] += 1
        for decision in prompt.decisions:
            labels = ("agent.guard.decision", decision, "agent.guard.execution.status", "error")
            counted["transitions", *labels] += 1
    return counted


def _finish(point, interval: Interval, attributes: Mapping[str, Value]) -> None:
    point.start_time_unix_nano = to_ns(interval.start)
    point.time_unix_nano = to_ns(interval.time)
    for key, value in attributes.items():
        point.attributes.add(key=key, value=any_value(value))


def hours_of(prompts: Iterable[Prompt]) -> dict[datetime, list[Prompt]]:
    """Return prompts by the end of the hour in which they began: the time of their export."""
    found: dict[datetime, list[Prompt]] = {}
    for prompt in prompts:
        hour = prompt.at.replace(minute=0, second=0, microsecond=0)
        found.setdefault(hour + timedelta(hours=1), []).append(prompt)
    return found
