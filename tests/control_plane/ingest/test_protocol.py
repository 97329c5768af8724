"""Examples of the OTLP documents: empty envelopes, and bodies of the published shapes."""

import json

import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from tests.support.hosts import Host, partial_of
from tests.support.worlds import ENVIRONMENT, NOW

AT_NS = int(NOW.timestamp()) * 1_000_000_000
TIMES = {"timeUnixNano": str(AT_NS), "observedTimeUnixNano": AT_NS}
IDS = {"traceId": "0102030405060708090A0B0C0D0E0F10", "spanId": "eee19b7ec3c1b174"}
RESOURCE = {
    "attributes": [
        {"key": "service.name", "value": {"stringValue": "shop"}},
        {"key": "service.version", "value": {"stringValue": "1"}},
        {"key": "deployment.environment.name", "value": {"stringValue": ENVIRONMENT}},
    ],
    "droppedAttributesCount": 0,
    "entityRefs": [],
}
SCOPE = {"name": "shop.cart", "version": "1.0.0", "attributes": []}
VALUES = [
    {"key": "text", "value": {"stringValue": "some"}},
    {"key": "flag", "value": {"boolValue": True}},
    {"key": "whole", "value": {"intValue": "10"}},
    {"key": "share", "value": {"doubleValue": 637.704}},
    {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "many"}]}}},
    {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {}}]}}},
]
POINT = {"attributes": VALUES, "startTimeUnixNano": str(AT_NS - 1), "timeUnixNano": str(AT_NS)}
EXAMPLES: dict[str, dict[str, object]] = {
    "logs": {
        "scopeLogs": [
            {
                "scope": SCOPE,
                "logRecords": [
                    TIMES
                    | IDS
                    | {"severityNumber": 10, "severityText": "Information", "attributes": VALUES}
                    | {"body": {"stringValue": "a record"}, "flags": 1}
                ],
            }
        ]
    },
    "events": {
        "scopeLogs": [
            {
                "scope": SCOPE,
                "logRecords": [
                    TIMES
                    | {"eventName": "browser.page_view", "attributes": VALUES[:1]}
                    | {"body": {"kvlistValue": {"values": VALUES}}}
                ],
            }
        ]
    },
    "metrics": {
        "scopeMetrics": [
            {
                "scope": SCOPE,
                "metrics": [
                    {
                        "name": "a.counter",
                        "unit": "1",
                        "description": "counts",
                        "sum": {
                            "aggregationTemporality": 1,
                            "isMonotonic": True,
                            "dataPoints": [POINT | {"asDouble": 5}],
                        },
                    },
                    {"name": "a.gauge", "gauge": {"dataPoints": [POINT | {"asInt": "10"}]}},
                    {
                        "name": "a.histogram",
                        "histogram": {
                            "aggregationTemporality": 1,
                            "dataPoints": [
                                POINT
                                | {"count": "2", "sum": 2, "bucketCounts": ["1", "1"]}
                                | {"explicitBounds": [1], "min": 0, "max": 2}
                            ],
                        },
                    },
                    {
                        "name": "an.exponential.histogram",
                        "exponentialHistogram": {
                            "aggregationTemporality": 1,
                            "dataPoints": [
                                POINT
                                | {"count": "3", "sum": 10, "scale": 0, "zeroCount": "1"}
                                | {"positive": {"offset": 1, "bucketCounts": ["0", "2"]}}
                            ],
                        },
                    },
                    {"name": "a.summary", "summary": {"dataPoints": [POINT | {"count": 1}]}},
                    {"name": "nothing"},
                ],
            }
        ]
    },
    "traces": {
        "scopeSpans": [
            {
                "scope": SCOPE,
                "spans": [
                    IDS
                    | {"parentSpanId": "EEE19B7EC3C1B173", "name": "I'm a span", "kind": 2}
                    | {"startTimeUnixNano": str(AT_NS - 9), "endTimeUnixNano": str(AT_NS)}
                    | {"attributes": VALUES, "status": {"code": 1}, "events": [], "links": []}
                ],
            }
        ]
    },
}
ENVELOPES = {"logs": "resourceLogs", "metrics": "resourceMetrics", "traces": "resourceSpans"}


def post(host: Host, document: object, signal: str):
    body = json.dumps(document).encode()
    return host.post(body, signal=signal, content_type=Encoding.JSON.value)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_body_of_the_shape_of_the_published_examples_is_a_full_success(host, example):
    signal = "logs" if example == "events" else example
    document = {ENVELOPES[signal]: [{"resource": RESOURCE, **EXAMPLES[example]}]}
    answer = post(host, document, signal)
    assert partial_of(answer, signal) == (0, "")
    assert answer.body == b"{}"


@pytest.mark.parametrize(
    ("signal", "scopes"),
    [("logs", "scopeLogs"), ("metrics", "scopeMetrics"), ("traces", "scopeSpans")],
)
def test_empty_envelopes_are_a_full_success(host, signal, scopes):
    envelope = ENVELOPES[signal]
    empty: list[list[object]] = [[], [{}], [{"resource": {}}], [{scopes: []}], [{scopes: [{}]}]]
    for entries in empty:
        assert post(host, {envelope: entries}, signal).body == b"{}"
    for body in (b"\x0a\x00", b"\x0a\x02\x12\x00", b"\x0a\x02\x0a\x00"):
        answer = host.post(body, signal=signal)
        assert (answer.status, answer.body) == (200, b"")
