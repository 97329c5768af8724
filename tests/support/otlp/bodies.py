"""OTLP bodies for tests: the recorded ones, and hand-made ones in both encodings."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from guardwave.control_plane.core.otlp_request import Encoding, Limits
from guardwave.control_plane.ingest.contract.limits import UNITS
from guardwave.control_plane.ingest.decode import otlp_json, protobuf
from guardwave.control_plane.ingest.model.otlp_values import (
    KeyValues,
    ResourceLogs,
    ResourceMetrics,
    Value,
)
from guardwave.control_plane.ingest.reading import DecodedRequest, RequestContext, read_logs
from guardwave.control_plane.ingest.wire.body import encoding_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "otlp"
LIMITS = Limits()
NOW_NS = 1_795_980_300_000_000_000
RESOURCE: Mapping[str, Value] = {
    "service.name": "agent-runtime",
    "service.version": "1.4.2",
    "service.instance.id": "7b1f0c1e",
    "deployment.environment.name": "internal",
}
TRANSITION: Mapping[str, Value] = {
    "agent.guard.name": "repeated_tool_failure",
    "agent.guard.prompt.id": "prompt-1",
    "agent.guard.sequence": 1,
    "agent.guard.mode": "warn",
    "agent.guard.decision": "tracked",
}
END: Mapping[str, Value] = {
    "agent.guard.prompt.id": "prompt-1",
    "agent.guard.prompt.outcome": "completed",
    "agent.guard.prompt.duration": 1.5,
}


class Recorded(NamedTuple):
    """One recorded request: its entry in `index.json`, and its decompressed body."""

    entry: Mapping[str, Any]
    body: bytes
    wire_body: bytes

    @property
    def encoding(self) -> Encoding:
        return encoding_of(str(self.entry["content_type"]))

    @property
    def is_logs(self) -> bool:
        return str(self.entry["path"]) == "/v1/logs"

    def logs(self) -> tuple[ResourceLogs, ...]:
        return decode_logs(self.body, self.encoding)

    def metrics(self) -> tuple[ResourceMetrics, ...]:
        return decode_metrics(self.body, self.encoding)


@cache
def recorded() -> Mapping[str, Recorded]:
    """Every recorded log and metric request, by file name."""
    index = json.loads((FIXTURES / "index.json").read_text())
    found = {}
    for entry in index["fixtures"]:
        wire_body = (FIXTURES / entry["file"]).read_bytes()
        body = gzip.decompress(wire_body) if entry["content_encoding"] else wire_body
        found[entry["file"]] = Recorded(entry, body, wire_body)
    return found


def decode_logs(body: bytes, encoding: Encoding) -> tuple[ResourceLogs, ...]:
    if encoding is Encoding.JSON:
        return otlp_json.decode_logs(body, limits=LIMITS)
    return protobuf.decode_logs(body, limits=LIMITS)


def decode_metrics(body: bytes, encoding: Encoding) -> tuple[ResourceMetrics, ...]:
    if encoding is Encoding.JSON:
        return otlp_json.decode_metrics(body, limits=LIMITS)
    return protobuf.decode_metrics(body, limits=LIMITS)


def any_value(value: Value) -> AnyValue:
    match value:
        case None:
            return AnyValue()
        case str():
            return AnyValue(string_value=value)
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case tuple():
            return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
        case KeyValues(items):
            pairs = [KeyValue(key=key, value=any_value(item)) for key, item in items]
            return AnyValue(kvlist_value=KeyValueList(values=pairs))


def log_request(
    attributes: Mapping[str, Value],
    *,
    event: str = "agent.guard.transition",
    resource: Mapping[str, Value] = RESOURCE,
    scope: tuple[str, str] = ("agent.guard", "1"),
    **fields: object,
) -> ExportLogsServiceRequest:
    """One log record as a protobuf request; `fields` are further fields of the LogRecord."""
    request = ExportLogsServiceRequest()
    entry = request.resource_logs.add()
    for key, value in resource.items():
        entry.resource.attributes.add(key=key, value=any_value(value))
    scope_logs = entry.scope_logs.add()
    scope_logs.scope.name, scope_logs.scope.version = scope
    record = LogRecord(event_name=event, time_unix_nano=NOW_NS)
    for key, value in attributes.items():
        record.attributes.add(key=key, value=any_value(value))
    record.MergeFrom(LogRecord(**fields))  # type: ignore[arg-type]  # keywords of the message
    for name, given in fields.items():
        if given == 0:
            record.ClearField(name)  # type: ignore[arg-type]  # a name of the message
    scope_logs.log_records.append(record)
    return request


def read_one(
    attributes: Mapping[str, Value], *, now_ns: int = NOW_NS, **how: object
) -> DecodedRequest:
    """Decode and read one native log record, as a token of `internal` would send it."""
    request = log_request(attributes, **how)  # type: ignore[arg-type]  # passed through
    batches = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    return read_logs(batches, RequestContext("internal", now_ns))


def counter_request(
    attributes: Mapping[str, Value],
    *,
    metric: str = "agent.guard.transitions",
    scope: tuple[str, str] = ("agent.guard", "1"),
    temporality: int = 1,
    is_monotonic: bool = True,
    unit: str | None = None,
    **fields: object,
) -> ExportMetricsServiceRequest:
    """One point of a sum as a protobuf request; `fields` are those of the NumberDataPoint.

    Its unit is the contract's, unless it is given.
    """
    request = ExportMetricsServiceRequest()
    entry = request.resource_metrics.add()
    for key, value in RESOURCE.items():
        entry.resource.attributes.add(key=key, value=any_value(value))
    scope_metrics = entry.scope_metrics.add()
    scope_metrics.scope.name, scope_metrics.scope.version = scope
    found = scope_metrics.metrics.add(name=metric)
    found.unit = UNITS.get(metric, "") if unit is None else unit
    found.sum.aggregation_temporality = temporality  # type: ignore[assignment]  # any number
    found.sum.is_monotonic = is_monotonic
    shape: dict[str, Any] = {"start_time_unix_nano": NOW_NS - 1, "time_unix_nano": NOW_NS}
    point = found.sum.data_points.add(**(shape | fields))
    for key, value in attributes.items():
        point.attributes.add(key=key, value=any_value(value))
    return request
