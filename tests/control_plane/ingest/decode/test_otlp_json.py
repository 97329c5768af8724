"""OTLP/JSON is proto3 JSON with rules of its own."""

import json

import pytest

from guardwave.control_plane.ingest.decode.otlp_json.bodies import decode_logs, decode_metrics
from guardwave.control_plane.ingest.model.otlp_values import (
    KeyValues,
    NumberPoint,
    OtherPoint,
    Temporality,
)
from guardwave.control_plane.ingest.model.rejections import Rejection, RejectReason
from guardwave.control_plane.ingest.wire.body import BadBody
from tests.support.otlp.bodies import LIMITS


def logs(*records):
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}
    return decode_logs(json.dumps(body).encode(), limits=LIMITS)[0].scopes[0].items


def points(metric):
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}
    return decode_metrics(json.dumps(body).encode(), limits=LIMITS)[0].scopes[0].points


def attribute(value):
    (item,) = logs({"attributes": [{"key": "k", "value": value}]})
    return item if isinstance(item, Rejection) else item.attributes["k"]


def total(data_point, **series):
    defaults = {"aggregationTemporality": 1, "isMonotonic": True}
    return {"name": "m", "sum": {**defaults, **series, "dataPoints": [data_point]}}


@pytest.mark.parametrize(
    "trace_id",
    ["5b8efff798038103d269b633813fc60c", "5B8EFFF798038103D269B633813FC60C", "", None],
)
def test_an_id_is_hex_of_either_case(trace_id):
    (item,) = logs({"traceId": trace_id, "spanId": "EEE19B7EC3C1B174"})
    assert not isinstance(item, Rejection)


@pytest.mark.parametrize("trace_id", ["W47/95gDgQPSabYzgT/GDA==", "5b8e", "x" * 32, 7])
def test_a_base64_id_gives_up_the_record_and_not_the_body(trace_id):
    bad, good = logs({"traceId": trace_id}, {"eventName": "e"})
    assert isinstance(bad, Rejection)
    assert bad.reason is RejectReason.UNREADABLE
    assert "traceId" in bad.detail
    assert good.event_name == "e"


def test_an_enum_is_a_number_and_never_a_name():
    (item,) = logs({"severityNumber": "SEVERITY_NUMBER_INFO"})
    assert isinstance(item, Rejection)
    assert "severityNumber is 'SEVERITY_NUMBER_INFO'" in item.detail
    named = total({"asInt": "1"}, aggregationTemporality="AGGREGATION_TEMPORALITY_DELTA")
    (point,) = points(named)
    assert isinstance(point, Rejection)
    assert "allows no enum names" in point.detail


def test_an_unknown_enum_number_is_no_temporality():
    (point,) = points(total({"asInt": "1"}, aggregationTemporality=9))
    assert point.temporality is Temporality.UNSPECIFIED


def test_unknown_fields_are_ignored():
    (item,) = logs({"eventName": "e", "futureField": {"a": [1]}, "attributes": []})
    assert item.event_name == "e"
    assert decode_logs(b'{"futureEnvelope": 1}', limits=LIMITS) == ()


def test_snake_case_keys_are_unknown_fields():
    assert decode_logs(b'{"resource_logs": [{"scope_logs": []}]}', limits=LIMITS) == ()
    (item,) = logs({"event_name": "e", "time_unix_nano": "5"})
    assert (item.event_name, item.time_ns) == ("", 0)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        pytest.param("12", 12, id="string"),
        pytest.param(12, 12, id="number"),
        pytest.param(12.0, 12, id="whole double"),
        pytest.param("-9223372036854775808", -(2**63), id="smallest"),
        pytest.param(9223372036854775807, 2**63 - 1, id="largest"),
    ],
)
def test_an_integer_is_a_string_or_a_number(raw, value):
    found = attribute({"intValue": raw})
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    "raw",
    [True, "1_000", " 12 ", "٣", "0x1", "", 1.5, 1e300, "9" * 5000, "9223372036854775808", [], {}],
)
def test_what_is_no_integer_gives_up_the_record(raw):
    found = attribute({"intValue": raw})
    assert isinstance(found, Rejection)
    assert found.reason is RejectReason.UNREADABLE


def test_a_time_is_a_string_or_a_number():
    first, second = logs({"timeUnixNano": "1795980240031795857"}, {"timeUnixNano": 5})
    assert (first.time_ns, second.time_ns) == (1795980240031795857, 5)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(2, "2.0"), ("2.5", "2.5"), ("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")],
)
def test_a_double_may_be_an_integer_or_a_word(raw, shown):
    assert repr(attribute({"doubleValue": raw})) == shown
    (point,) = points(total({"asDouble": raw}))
    assert isinstance(point, NumberPoint)
    assert repr(point.value) == shown


@pytest.mark.parametrize("raw", ["nan", "1e", True, [], "inf"])
def test_what_is_no_double_gives_up_the_record(raw):
    assert isinstance(attribute({"doubleValue": raw}), Rejection)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        pytest.param({}, None, id="unset"),
        pytest.param(None, None, id="null"),
        pytest.param({"stringValue": None}, None, id="null inside"),
        pytest.param({"futureValue": 1}, None, id="unknown kind"),
        pytest.param({"stringValue": "s"}, "s", id="string"),
        pytest.param({"boolValue": False}, False, id="boolean"),
        pytest.param({"bytesValue": "_-8="}, b"\xff\xef", id="url-safe base64"),
        pytest.param({"bytesValue": "/+8"}, b"\xff\xef", id="base64 without padding"),
        pytest.param({"arrayValue": {}}, (), id="empty array"),
        pytest.param({"arrayValue": {"values": [{"intValue": 1}, {}]}}, (1, None), id="array"),
        pytest.param(
            {"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}},
            KeyValues((("a", "b"),)),
            id="map",
        ),
    ],
)
def test_every_kind_of_value_is_read(value, read):
    assert attribute(value) == read


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("plain", id="no object"),
        pytest.param({"stringValue": 1}, id="number as string"),
        pytest.param({"boolValue": 1}, id="number as boolean"),
        pytest.param({"bytesValue": "a"}, id="cut base64"),
        pytest.param({"arrayValue": []}, id="bare array"),
        pytest.param({"stringValue": "s", "intValue": 1}, id="two values at once"),
    ],
)
def test_a_value_of_the_wrong_shape_gives_up_the_record(value):
    assert isinstance(attribute(value), Rejection)


@pytest.mark.parametrize(
    ("body", "has_body"),
    [
        pytest.param({}, False, id="unset, as SDKs send it"),
        pytest.param(None, False, id="null"),
        pytest.param({"stringValue": ""}, False, id="empty string"),
        pytest.param({"arrayValue": {}}, False, id="empty array"),
        pytest.param({"stringValue": "text"}, True, id="text"),
        pytest.param({"intValue": 0}, True, id="a zero is content"),
    ],
)
def test_a_body_counts_when_it_holds_something(body, has_body):
    (item,) = logs({"body": body})
    assert item.has_body is has_body


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param(b"{", "not JSON", id="cut short"),
        pytest.param(b"[]", "the body is an array", id="an array"),
        pytest.param(b"null", "the body is null", id="null"),
        pytest.param(b"\xff", "not JSON", id="no UTF-8"),
        pytest.param(b"[" * 3000, "not JSON", id="nested without end"),
        pytest.param(b'{"resourceLogs": {}}', "resourceLogs is an object", id="no array"),
        pytest.param(b'{"resourceLogs": [1]}', "entry of resourceLogs is a number", id="no object"),
        pytest.param(
            b'{"resourceLogs": [{"resource": {"attributes": [{"key": 1}]}}]}',
            "a resource cannot be read",
            id="bad resource",
        ),
        pytest.param(
            b'{"resourceLogs": [{"scopeLogs": [{"scope": {"name": 1}}]}]}',
            "a scope cannot be read",
            id="bad scope",
        ),
        pytest.param(
            b'{"resourceLogs": [{"scopeLogs": [{"logRecords": "x"}]}]}',
            "logRecords is a string",
            id="records are a string",
        ),
    ],
)
def test_a_broken_envelope_is_a_bad_body(body, fault):
    with pytest.raises(BadBody, match=fault):
        decode_logs(body, limits=LIMITS)


def test_a_point_cannot_have_two_values():
    (point,) = points(total({"asInt": 1, "asDouble": 1.0}))
    assert isinstance(point, Rejection)


def test_a_gauge_is_a_point_of_another_kind():
    assert points({"name": "g", "gauge": {"dataPoints": [{"asInt": 1}]}}) == (
        OtherPoint("g", "gauge"),
    )


def test_a_null_inside_an_array_of_records_gives_up_that_record():
    bad, good = logs(None, {"eventName": "e"})
    assert isinstance(bad, Rejection)
    assert good.event_name == "e"
