// An agent host with the JavaScript SDK: sends one prompt and one counter, then ends.
// Arguments: protobuf or json, prompt id, assignment id. The rest comes from OTEL_* variables.
import { OTLPLogExporter as JsonLogs } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufLogs } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter as JsonMetrics } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufMetrics } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

const [encoding, prompt, assignment] = process.argv.slice(2);
const pairs = process.env.OTEL_RESOURCE_ATTRIBUTES.split(",").map((pair) => pair.split("="));
const resource = resourceFromAttributes(Object.fromEntries(pairs));

const logExporter = encoding === "json" ? new JsonLogs() : new ProtobufLogs();
const logs = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor({ exporter: logExporter }, {})],
});
const logger = logs.getLogger("agent.guard", "1");
const common = { "agent.guard.prompt.id": prompt, "agent.guard.assignment.id": assignment };
const now = Date.now();
logger.emit({
  eventName: "agent.guard.prompt.start",
  timestamp: now - 5000,
  attributes: { ...common, "agent.guard.route": "interactive_foreground" },
});
logger.emit({
  eventName: "agent.guard.prompt.end",
  timestamp: now,
  attributes: {
    ...common,
    "agent.guard.prompt.outcome": "completed",
    "agent.guard.prompt.duration": 5,
    "agent.guard.prompt.turns": 2,
    "agent.guard.prompt.tool_calls": 3,
    "agent.guard.prompt.transitions": 0,
    "gen_ai.usage.input_tokens": 80,
    "gen_ai.usage.output_tokens": 20,
  },
});

const metricExporter = encoding === "json" ? new JsonMetrics() : new ProtobufMetrics();
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter });
const meters = new MeterProvider({ resource, readers: [reader] });
meters.getMeter("agent.guard", "1").createCounter("agent.guard.tool.executions").add(3, {
  "agent.guard.name": "repeated_tool_failure",
  "agent.guard.mode": "shadow",
  "agent.guard.execution.status": "success",
});

await logs.forceFlush();
await meters.shutdown();
await logs.shutdown();
