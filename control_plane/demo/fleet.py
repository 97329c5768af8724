"""Simulated hosts: they ask for assignments and report telemetry over the real SDK."""

import heapq
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Counter as SdkCounter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from guardwave.control_plane.client import Assignment, Assignments
from guardwave.control_plane.core.clock import NANOSECONDS, Clock, to_ns
from guardwave.control_plane.demo.story import (
    GUARD,
    VERSION,
    Fleet,
    Owner,
    SimulatedEvent,
    simulated_events,
)
from guardwave.reducer import contract
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.vocabulary import Mode

TICK_S = 0.05
# Real seconds for one pass over all owners; about half a day of demo time.
RESOLVE_PASS_S = 5.0
_EXPORT_DELAY_MS = 500
_METRICS_EVERY_MS = 2000
_QUEUE = 20_000
_BATCH = 1000
_FLUSH_MS = 1000

_log = logging.getLogger("guardwave.fleet")


class Host:
    """One host process of an environment, as the OpenTelemetry SDK sees it."""

    def __init__(self, url: str, environment: str, token: str) -> None:
        resource = Resource.create(
            {
                "service.name": "simulated-host",
                "service.version": VERSION,
                "service.instance.id": f"{environment}-host",
                "deployment.environment.name": environment,
            }
        )
        headers = {"Authorization": f"Bearer {token}"}
        exporter = OTLPLogExporter(
            endpoint=f"{url}/v1/logs", headers=headers, compression=Compression.Gzip
        )
        self._logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._logs.add_log_record_processor(
            BatchLogRecordProcessor(
                exporter,
                max_queue_size=_QUEUE,
                max_export_batch_size=_BATCH,
                schedule_delay_millis=_EXPORT_DELAY_MS,
            )
        )
        self._logger = self._logs.get_logger(contract.SCOPE, contract.SCOPE_VERSION)
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(
                endpoint=f"{url}/v1/metrics",
                headers=headers,
                preferred_temporality={SdkCounter: AggregationTemporality.DELTA},
            ),
            export_interval_millis=_METRICS_EVERY_MS,
        )
        self._metrics = MeterProvider(
            resource=resource, metric_readers=[reader], shutdown_on_exit=False
        )
        meter = self._metrics.get_meter(contract.SCOPE, contract.SCOPE_VERSION)
        self._prompts = meter.create_counter(contract.PROMPTS_METRIC, "{prompt}")
        self._transitions = meter.create_counter(contract.TRANSITIONS_METRIC, "{transition}")

    def emit(self, event: SimulatedEvent, *, wall_ns: int, mode: str) -> None:
        """Pass one event, and its count, to the SDK."""
        self._logger.emit(
            timestamp=wall_ns,
            observed_timestamp=wall_ns,
            event_name=event.event_name,
            attributes=dict(event.attributes),
        )
        labels: dict[str, str | bool | int | float] = {
            contract.GUARD: GUARD,
            contract.MODE: mode,
        }
        if event.event_name == contract.PROMPT_START:
            self._prompts.add(1, {**labels, contract.STAGE: "start"})
        elif event.event_name == contract.TRANSITION:
            decision = event.attributes[contract.DECISION]
            self._transitions.add(1, {**labels, contract.DECISION: decision})

    def flush(self) -> None:
        """Send the queued events, for a second at most."""
        self._logs.force_flush(_FLUSH_MS)


@dataclass(order=True, slots=True)
class _Queued:
    """An event that will be sent at a wall-clock time."""

    wall_ns: int
    order: int
    event: SimulatedEvent = field(compare=False)
    mode: str = field(compare=False)


class Simulation:
    """The owners of one environment over the days of the demo's clock."""

    def __init__(self, fleet: Fleet, clock: Clock, *, host: Host, assignments: Assignments) -> None:
        self._fleet = fleet
        self._clock = clock
        self._host = host
        self._assignments = assignments
        self._owners = fleet.owners()
        self._resolved: dict[str, Assignment] = {}
        self._queue: list[_Queued] = []
        self._order = 0
        self._planned: Iterator[tuple[float, int, int]] = iter(())
        self._next: tuple[float, int, int] | None = None
        self._day: date | None = None

    def keep_resolving(self, stop: threading.Event) -> None:
        """Ask for the owners' assignments until stopped, one pass in about five seconds."""
        pause = RESOLVE_PASS_S / len(self._owners)
        while not stop.is_set():
            for owner in self._owners:
                self._resolve(owner)
                if stop.wait(pause):
                    return

    def tick(self) -> None:
        """Begin the prompts whose time has come and send the events that are due."""
        now = self._clock.now()
        today = now.date()
        if self._day != today:
            self._plan(today)
        since_midnight = (now - day_start(today)).total_seconds()
        while self._next is not None and self._next[0] <= since_midnight:
            _, index, number = self._next
            self._begin(today, self._owners[index], number)
            self._next = next(self._planned, None)
        self._send_due()

    def _resolve(self, owner: Owner) -> None:
        self._resolved[owner.name] = self._assignments.resolve(GUARD, owner.name)

    def _plan(self, day: date) -> None:
        """List the day's prompts by their start; the rest of the day before is dropped."""
        self._day = day
        starts = [
            (self._fleet.prompt(owner, day, number, mode=Mode.SHADOW).start_s, index, number)
            for index, owner in enumerate(self._owners)
            for number in range(self._fleet.count(owner, day))
        ]
        self._planned = iter(sorted(starts))
        self._next = next(self._planned, None)

    def _begin(self, day: date, owner: Owner, number: int) -> None:
        """Pin the owner's mode for one prompt and queue the prompt's events."""
        assignment = self._resolved.get(owner.name)
        if assignment is None or assignment.assignment_id is None:
            return
        mode = Mode(assignment.mode)
        prompt = self._fleet.prompt(owner, day, number, mode=mode)
        midnight = to_ns(day_start(day))
        for event in simulated_events(prompt, mode=mode, assignment_id=assignment.assignment_id):
            wall_ns = self._clock.wall_ns_at(midnight + int(event.at_s * NANOSECONDS))
            self._order += 1
            heapq.heappush(self._queue, _Queued(wall_ns, self._order, event, mode.value))

    def _send_due(self) -> None:
        now = self._clock.wall_ns()
        while self._queue and self._queue[0].wall_ns <= now:
            due = heapq.heappop(self._queue)
            self._host.emit(due.event, wall_ns=due.wall_ns, mode=due.mode)
