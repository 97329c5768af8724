"""OpenTelemetry set-up: an SDK for a host without one; needs `guardwave[otel]`."""

import contextlib
from collections.abc import Iterator

from guardwave.client import GuardTelemetry


@contextlib.contextmanager
def reporting(url: str, token: str, resource: dict[str, str]) -> Iterator[GuardTelemetry]:
    """Send guard telemetry to a guardwave until the block ends, and flush it then."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        PeriodicExportingMetricReader,
    )
    from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
    from opentelemetry.sdk.resources import Resource

    attributes = Resource.create(dict(resource))
    headers = {"Authorization": f"Bearer {token}"}
    logs = LoggerProvider(resource=attributes, shutdown_on_exit=False)
    logs.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{url}/v1/logs", headers=headers))
    )
    delta = AggregationTemporality.DELTA
    exporter = OTLPMetricExporter(
        endpoint=f"{url}/v1/metrics",
        headers=headers,
        preferred_temporality={Counter: delta, Histogram: delta},
        preferred_aggregation={Histogram: ExponentialBucketHistogramAggregation()},
    )
    metrics = MeterProvider(
        resource=attributes,
        metric_readers=[PeriodicExportingMetricReader(exporter)],
        shutdown_on_exit=False,
    )
    try:
        yield GuardTelemetry(logger_provider=logs, meter_provider=metrics)
    finally:
        logs.shutdown()
        metrics.shutdown()
