"""Telemetry doors: the real SDK in memory, and guardwave's own intake to read its output."""

import time

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from guardwave.control_plane.client import Assignment, GuardTelemetry
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.reading import RequestContext, read_logs, read_metrics
from guardwave.reducer.guards.transition import BatchBucket, FailureBucket, Transition
from guardwave.reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    GuardPhase,
    Mode,
    Route,
    TerminalStatus,
    ToolType,
)
from tests.support.otlp.bodies import decode_logs, decode_metrics

REPEATED, DUPLICATE = "repeated_tool_failure", "duplicate_call_id"
ASSIGNED = (
    Assignment(REPEATED, Mode.ENFORCE, assignment_id="a1.repeated", generation=7),
    Assignment(DUPLICATE, Mode.SHADOW, assignment_id="a1.duplicate", generation=2),
)
STOP = Transition(
    guard=REPEATED,
    route=Route.INTERACTIVE_FOREGROUND,
    mode=Mode.ENFORCE,
    phase_from=GuardPhase.WARNED,
    phase_to=GuardPhase.LATCHED,
    decision=Decision.STOPPED,
    failure_count=FailureBucket.LIMIT,
    batch_count=BatchBucket.MORE,
    candidate_ordinal=2,
    is_batch_complete=True,
    tool_type=ToolType.MCP,
    terminal_status=TerminalStatus.ERROR,
    execution_status=ExecutionStatus.ERROR,
    error_type="timeout",
)
TRACKED = Transition(
    guard=DUPLICATE,
    route=Route.INTERACTIVE_FOREGROUND,
    mode=Mode.SHADOW,
    phase_from=GuardPhase.IDLE,
    phase_to=GuardPhase.TRACKING,
    decision=Decision.TRACKED,
)
_DELTA: dict[type, AggregationTemporality] = {
    Counter: AggregationTemporality.DELTA,
    Histogram: AggregationTemporality.DELTA,
}


class Door:
    """A process with the SDK set up as in docs/telemetry.md."""

    def __init__(self):
        resource = Resource.create(
            {
                "service.name": "agent-host",
                "service.version": "1.4.2",
                "service.instance.id": "host-1",
                "deployment.environment.name": "internal",
            }
        )
        self.exporter = InMemoryLogRecordExporter()
        self.logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self.logs.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))
        self.reader = InMemoryMetricReader(preferred_temporality=_DELTA)
        self.metrics = MeterProvider(
            resource=resource, metric_readers=[self.reader], shutdown_on_exit=False
        )
        self.telemetry = GuardTelemetry(logger_provider=self.logs, meter_provider=self.metrics)

    def events(self):
        """Return name and attributes of every event so far."""
        return [
            (data.log_record.event_name, dict(data.log_record.attributes or {}))
            for data in self.exporter.get_finished_logs()
        ]

    def records(self):
        """Return what intake reads of the events, as a body on the wire."""
        body = encode_logs(self.exporter.get_finished_logs()).SerializeToString()
        batches = decode_logs(body, Encoding.PROTOBUF)
        return read_logs(batches, RequestContext("internal", time.time_ns()))

    def points(self):
        """Return what intake reads of the metrics since the last look."""
        data = self.reader.get_metrics_data()
        if data is None:
            return read_metrics((), RequestContext("internal", time.time_ns()))
        batches = decode_metrics(encode_metrics(data).SerializeToString(), Encoding.PROTOBUF)
        return read_metrics(batches, RequestContext("internal", time.time_ns()))

    def close(self):
        self.logs.shutdown()
        self.metrics.shutdown()
