"""Both encodings of the same content decode to equal values, and no bytes break either decoder."""

import json
from contextlib import suppress

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import Encoding, Limits
from guardwave.control_plane.ingest.decode import otlp_json, protobuf
from guardwave.control_plane.ingest.model.otlp_values import (
    ATTRIBUTE_LIMIT,
    ELEMENT_LIMIT,
    NESTING_LIMIT,
    RESOURCE_ATTRIBUTE_LIMIT,
    STRING_LIMIT,
    KeyValues,
    LogItem,
    Value,
)
from guardwave.control_plane.ingest.model.rejections import Rejection, RejectReason
from guardwave.control_plane.ingest.wire.body import BadBody, TooLarge
from tests.support.otlp.bodies import (
    LIMITS,
    RESOURCE,
    TRANSITION,
    counter_request,
    decode_logs,
    decode_metrics,
    log_request,
    recorded,
)

TEXTS = st.text(max_size=12)
SCALARS = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=9),
    st.none(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(st.tuples(TEXTS, inner), max_size=3).map(lambda pairs: KeyValues(tuple(pairs))),
    ),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(TEXTS, VALUES, max_size=6)
SIGNALS = pytest.mark.parametrize(
    "decode",
    [
        pytest.param(module_decode, id=f"{module.__name__.rpartition('.')[2]} {signal}")
        for module in (protobuf, otlp_json)
        for signal, module_decode in (
            ("logs", module.decode_logs),
            ("metrics", module.decode_metrics),
        )
    ],
)


def as_json(request):
    """OTLP/JSON of a request that has no ids (those would come out as base64)."""
    return json.dumps(MessageToDict(request, use_integers_for_enums=True)).encode()


@given(ATTRIBUTES, ATTRIBUTES, VALUES)
def test_logs_decode_equal_from_both_encodings(attributes, resource, body):
    request = log_request(attributes, resource=resource, severity_number=9)
    request.resource_logs[0].scope_logs[0].log_records[0].body.CopyFrom(
        log_request({"body": body})
        .resource_logs[0]
        .scope_logs[0]
        .log_records[0]
        .attributes[0]
        .value
    )
    plain = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    # by their text, since NaN is not equal to itself
    assert repr(plain) == repr(decode_logs(as_json(request), Encoding.JSON))


@given(ATTRIBUTES, st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.none()))
def test_points_decode_equal_from_both_encodings(attributes, value):
    value_field = {} if value is None else {"as_int" if type(value) is int else "as_double": value}
    request = counter_request(attributes, flags=1, **value_field)
    plain = decode_metrics(request.SerializeToString(), Encoding.PROTOBUF)
    assert repr(plain) == repr(decode_metrics(as_json(request), Encoding.JSON))


@SIGNALS
@given(body=st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_bad_body(decode, body):
    with suppress(BadBody):
        decode(body, limits=LIMITS)


@given(st.data(), st.sampled_from(sorted(recorded())))
def test_a_recorded_body_with_a_byte_changed_decodes_or_is_bad(data, name):
    found = recorded()[name]
    place = data.draw(st.integers(0, len(found.body) - 1))
    changed = bytearray(found.body)
    changed[place] = data.draw(st.integers(0, 255))
    decode = decode_logs if found.is_logs else decode_metrics
    with suppress(BadBody):
        decode(bytes(changed), found.encoding)


JSON_KEYS = (
    "resourceLogs",
    "resourceMetrics",
    "resource",
    "scope",
    "scopeLogs",
    "scopeMetrics",
    "logRecords",
    "metrics",
    "name",
    "version",
    "attributes",
    "key",
    "value",
    "stringValue",
    "intValue",
    "arrayValue",
    "values",
    "sum",
    "histogram",
    "gauge",
    "dataPoints",
    "asInt",
    "asDouble",
    "timeUnixNano",
    "body",
    "flags",
)
JSON_TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(JSON_KEYS),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=30,
)


@given(JSON_TREES)
def test_any_json_decodes_or_is_a_bad_body(tree):
    body = json.dumps(tree).encode()
    for decode in (otlp_json.decode_logs, otlp_json.decode_metrics):
        with suppress(BadBody):
            decode(body, limits=LIMITS)


@SIGNALS
def test_an_empty_request_holds_nothing(decode):
    assert decode(b"", limits=LIMITS) == ()


def test_an_empty_json_object_and_empty_envelopes_hold_nothing():
    assert otlp_json.decode_logs(b"{}", limits=LIMITS) == ()
    (batch,) = otlp_json.decode_logs(b'{"resourceLogs": [{}]}', limits=LIMITS)
    assert (batch.attributes, batch.scopes) == ({}, ())


def both(request):
    yield decode_logs(request.SerializeToString(), Encoding.PROTOBUF)[0].scopes[0].items
    yield decode_logs(as_json(request), Encoding.JSON)[0].scopes[0].items


def test_an_item_with_too_many_attributes_is_given_up():
    at_limit = {f"k{n}": n for n in range(ATTRIBUTE_LIMIT)}
    for (item,) in both(log_request(at_limit)):
        assert isinstance(item, LogItem)
    for (item,) in both(log_request(at_limit | {"one more": 1})):
        assert isinstance(item, Rejection)
        assert item.reason is RejectReason.TOO_MANY_ATTRIBUTES


def test_an_attribute_that_appears_twice_gives_up_the_item():
    request = log_request(TRANSITION)
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    record.attributes.add(key="agent.guard.mode").value.string_value = "shadow"
    for (item,) in both(request):
        assert isinstance(item, Rejection)
        assert "appears twice" in item.detail


@pytest.mark.parametrize("wrap", ["array", "map"])
def test_values_nest_to_the_limit_and_no_deeper(wrap):
    value: Value = 1
    for _ in range(NESTING_LIMIT):
        value = (value,) if wrap == "array" else KeyValues((("k", value),))
    for (item,) in both(log_request({"k": value})):
        assert isinstance(item, LogItem)
    for (item,) in both(log_request({"k": (value,)})):
        assert isinstance(item, Rejection)
        assert "nested" in item.detail


def test_a_protobuf_nested_past_the_parser_is_a_bad_body():
    body = b""
    for _ in range(400):
        body = _field(5, _field(1, body))  # AnyValue.array_value, ArrayValue.values
    for number in (5, 2, 2, 1):  # LogRecord.body, log_records, scope_logs, resource_logs
        body = _field(number, body)
    with pytest.raises(BadBody, match="no protobuf message"):
        decode_logs(body, Encoding.PROTOBUF)


def _field(number, content):
    length, prefix = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*prefix, length]) + content


def test_a_long_string_is_kept_to_its_limit():
    for (item,) in both(log_request({"k": "x" * (STRING_LIMIT + 5)})):
        assert item.attributes["k"] == "x" * STRING_LIMIT


def test_a_body_with_too_many_records_is_too_large():
    request = log_request(TRANSITION)
    scope = request.resource_logs[0].scope_logs[0]
    for _ in range(3):
        scope.log_records.append(scope.log_records[0])
    limits = Limits(records=3)
    for body, module in (
        (request.SerializeToString(), protobuf),
        (as_json(request), otlp_json),
    ):
        assert module.decode_logs(body, limits=Limits(records=4))
        with pytest.raises(TooLarge, match="more than 3 records"):
            module.decode_logs(body, limits=limits)
        with pytest.raises(TooLarge):
            module.decode_logs(body, limits=limits, wanted_scopes=frozenset())


@pytest.mark.parametrize(
    ("module", "body"),
    [
        pytest.param(protobuf, b"\x0a\x00" * 20_000, id="protobuf resources"),
        pytest.param(protobuf, _field(1, b"\x12\x00" * 20_000), id="protobuf scopes"),
        pytest.param(
            otlp_json,
            json.dumps({"resourceLogs": [{}] * 20_000, "resourceMetrics": [{}] * 20_000}).encode(),
            id="json resources",
        ),
    ],
)
def test_a_body_of_empty_wrappers_is_too_large(module, body):
    for decode in (module.decode_logs, module.decode_metrics):
        with pytest.raises(TooLarge, match="more than 10000 resources, scopes and metrics"):
            decode(body, limits=LIMITS)


def test_a_metric_is_a_wrapper_too():
    request = counter_request({}, as_int=1)
    scope = request.resource_metrics[0].scope_metrics[0]
    for _ in range(3):
        scope.metrics.add(name="agent.guard.turns")
    for body, module in (
        (request.SerializeToString(), protobuf),
        (as_json(request), otlp_json),
    ):
        assert module.decode_metrics(body, limits=Limits(records=6))
        with pytest.raises(TooLarge, match="more than 5 resources, scopes and metrics"):
            module.decode_metrics(body, limits=Limits(records=5))


def test_a_resource_with_too_many_attributes_is_a_bad_body():
    resource = {f"k{n}": n for n in range(RESOURCE_ATTRIBUTE_LIMIT)}
    for request, is_good in (
        (log_request({}, resource=resource), True),
        (log_request({}, resource=resource | {"one more": 1}), False),
    ):
        for body, encoding in (
            (request.SerializeToString(), Encoding.PROTOBUF),
            (as_json(request), Encoding.JSON),
        ):
            if is_good:
                assert decode_logs(body, encoding)
            else:
                with pytest.raises(BadBody, match="a resource has 257 attributes"):
                    decode_logs(body, encoding)


@pytest.mark.parametrize("wrap", ["array", "map"])
def test_a_long_array_is_kept_to_its_limit(wrap):
    elements = range(ELEMENT_LIMIT + 5)
    value = tuple(elements) if wrap == "array" else KeyValues(tuple((str(n), n) for n in elements))
    for (item,) in both(log_request({"k": value})):
        kept = item.attributes["k"]
        assert len(kept if isinstance(kept, tuple) else kept.items) == ELEMENT_LIMIT


def test_a_metric_without_data_is_counted():
    request = counter_request({}, as_int=1)
    request.resource_metrics[0].scope_metrics[0].metrics.add(name="agent.guard.turns")
    for batches in (
        decode_metrics(request.SerializeToString(), Encoding.PROTOBUF),
        decode_metrics(as_json(request), Encoding.JSON),
    ):
        (scope,) = batches[0].scopes
        assert (len(scope.points), scope.without_data) == (1, 1)


def test_resources_keep_their_attributes():
    (batch,) = decode_logs(log_request({}).SerializeToString(), Encoding.PROTOBUF)
    assert batch.attributes == RESOURCE
