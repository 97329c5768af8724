"""The demo's fleet: simulated hosts that ask for assignments and report over the real SDK."""

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

from control_plane.client import Assignment, Assignments
from control_plane.clock import NANOSECONDS, Clock, to_ns
from control_plane.demo.story import GUARD, VERSION, Fleet, Moment, Owner, moments
from reducer import contract
from reducer.rollout.days import day_start
from reducer.vocabulary import Mode

TICK_S = 0.05
# One pass over all owners takes about this long; in the demo's time that is half a day.
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

    def emit(self, moment: Moment, *, wall_ns: int, mode: str) -> None:
        """Hand one event, and its count, to the SDK."""
        self._logger.emit(
            timestamp=wall_ns,
            observed_timestamp=wall_ns,
            event_name=moment.event_name,
            attributes=dict(moment.attributes),
        )
        labels: dict[str, str | bool | int | float] = {
            contract.GUARD: GUARD,
            contract.MODE: mode,
        }
        if moment.event_name == contract.PROMPT_START:
            self._prompts.add(1, {**labels, contract.STAGE: "start"})
        elif moment.event_name == contract.TRANSITION:
            decided = moment.attributes[contract.DECISION]
            self._transitions.add(1, {**labels, contract.DECISION: decided})

    def flush(self) -> None:
        """Send what is queued, for a second at most."""
        self._logs.force_flush(_FLUSH_MS)


@dataclass(order=True, slots=True)
class _Due:
    """An event that will be sent at a wall-clock time."""

    wall_ns: int
    order: int
    moment: Moment = field(compare=False)
    mode: str = field(compare=False)


class Simulation:
    """One environment's owners, living through days of the demo's clock."""

    def __init__(self, fleet: Fleet, clock: Clock, *, host: Host, assignments: Assignments) -> None:
        self._fleet = fleet
        self._clock = clock
        self._host = host
        self._assignments = assignments
        self._owners = fleet.owners()
        self._resolved: dict[str, Assignment] = {}
        self._queue: list[_Due] = []
        self._order = 0
        self._planned: Iterator[tuple[float, int, int]] = iter(())
        self._next: tuple[float, int, int] | None = None
        self._day: date | None = None

    def keep_resolving(self, stop: threading.Event) -> None:
        """Ask again and again, one pass in about five seconds."""
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
            _, at, number = self._next
            self._begin(today, self._owners[at], number)
            self._next = next(self._planned, None)
        self._send_due()

    def _resolve(self, owner: Owner) -> None:
        self._resolved[owner.name] = self._assignments.resolve(GUARD, owner.name)

    def _plan(self, day: date) -> None:
        """List the day's prompts by their start. What a day left unbegun is dropped with it."""
        self._day = day
        starts = [
            (self._fleet.prompt(owner, day, number, mode=Mode.SHADOW).start_s, at, number)
            for at, owner in enumerate(self._owners)
            for number in range(self._fleet.count(owner, day))
        ]
        self._planned = iter(sorted(starts))
        self._next = next(self._planned, None)

    def _begin(self, day: date, owner: Owner, number: int) -> None:
        """Pin the owner's mode for one prompt and queue the prompt's events."""
        assigned = self._resolved.get(owner.name)
        if assigned is None or assigned.assignment_id is None:
            return
        mode = Mode(assigned.mode)
        prompt = self._fleet.prompt(owner, day, number, mode=mode)
        midnight = to_ns(day_start(day))
        for moment in moments(prompt, mode=mode, assignment_id=assigned.assignment_id):
            wall_ns = self._clock.wall_ns_at(midnight + int(moment.at_s * NANOSECONDS))
            self._order += 1
            heapq.heappush(self._queue, _Due(wall_ns, self._order, moment, mode.value))

    def _send_due(self) -> None:
        now = self._clock.wall_ns()
        while self._queue and self._queue[0].wall_ns <= now:
            due = heapq.heappop(self._queue)
            self._host.emit(due.moment, wall_ns=due.wall_ns, mode=due.mode)
