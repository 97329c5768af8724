"""Agent host with the Python SDK: sends one prompt and one counter, then ends.

Arguments: the protocol, prompt id, assignment id. The rest comes from OTEL_* variables.
"""

import sys
import time
from importlib import import_module

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

EXPORTERS = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http",
    "http/json": "opentelemetry.exporter.otlp.json.http",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc",
}
SECOND = 1_000_000_000


def main(protocol: str, prompt: str, assignment: str) -> None:
    package = EXPORTERS[protocol]
    resource = Resource.create()
    logs = LoggerProvider(resource)
    exporter = import_module(f"{package}._log_exporter").OTLPLogExporter()
    logs.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = logs.get_logger("agent.guard", "1")
    common = {"agent.guard.prompt.id": prompt, "agent.guard.assignment.id": assignment}
    now = time.time_ns()
    logger.emit(
        timestamp=now - 5 * SECOND,
        event_name="agent.guard.prompt.start",
        attributes={**common, "agent.guard.route": "interactive_foreground"},
    )
    logger.emit(
        timestamp=now,
        event_name="agent.guard.prompt.end",
        attributes={
            **common,
            "agent.guard.prompt.outcome": "completed",
            "agent.guard.prompt.duration": 5.0,
            "agent.guard.prompt.turns": 2,
            "agent.guard.prompt.tool_calls": 3,
            "agent.guard.prompt.transitions": 0,
            "gen_ai.usage.input_tokens": 80,
            "gen_ai.usage.output_tokens": 20,
        },
    )
    points = import_module(f"{package}.metric_exporter").OTLPMetricExporter()
    meters = MeterProvider([PeriodicExportingMetricReader(points)], resource)
    counter = meters.get_meter("agent.guard", "1").create_counter("agent.guard.tool.executions")
    counter.add(
        3,
        {
            "agent.guard.name": "repeated_tool_failure",
            "agent.guard.mode": "shadow",
            "agent.guard.execution.status": "success",
        },
    )
    logs.force_flush()
    meters.shutdown()
    logs.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
