"""Decoding by slices gives the same as the published protobuf classes, for any bytes."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.decode.protobuf.values import NESTED_BYTES
from guardwave.control_plane.ingest.model.otlp_values import KeyValues
from guardwave.control_plane.ingest.model.rejections import Rejection
from guardwave.control_plane.ingest.wire.body import BadBody, TooLarge
from guardwave.control_plane.ingest.wire.protobuf import LARGE, MOST_FIELDS, check_size
from tests.control_plane.ingest.decode.test_decoders_agree import TEXTS, VALUES
from tests.support.otlp import published
from tests.support.otlp.bodies import (
    TRANSITION,
    any_value,
    counter_request,
    decode_logs,
    decode_metrics,
    log_request,
    recorded,
)

PROTOBUF = [name for name, found in recorded().items() if found.encoding is Encoding.PROTOBUF]


def varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + pack("<Q", value)


def pair(key: str, value: bytes) -> bytes:
    return field(1, key.encode()) + field(2, value)


def message(*fields: st.SearchStrategy[bytes], most: int = 8) -> st.SearchStrategy[bytes]:
    """Any of the fields, in any order, some of them twice, with some that nobody knows."""
    unknown = st.sampled_from([field(100, b"later"), varint(101 << 3) + b"\x07"])
    return st.lists(st.one_of(*fields, unknown), max_size=most).map(b"".join)


TIMES = st.integers(0, 2**64 - 1)
ANY_VALUES = st.one_of(
    VALUES.map(lambda value: any_value(value).SerializeToString()),
    # several of the oneof, of which the last holds
    st.lists(VALUES, max_size=3).map(
        lambda values: b"".join(any_value(value).SerializeToString() for value in values)
    ),
)
# few keys, so that some stand twice
KEYS = st.sampled_from(["agent.guard.mode", "agent.guard.prompt.id", "k", ""])
PAIRS = st.builds(pair, KEYS, ANY_VALUES)
RESOURCES = st.lists(PAIRS, max_size=3).map(lambda pairs: b"".join(field(1, one) for one in pairs))
SCOPES = message(
    TEXTS.map(lambda name: field(1, name.encode())), TEXTS.map(lambda name: field(2, name.encode()))
)
RECORDS = message(
    TIMES.map(lambda ns: fixed(1, ns)),
    TIMES.map(lambda ns: fixed(11, ns)),
    TEXTS.map(lambda name: field(12, name.encode())),
    ANY_VALUES.map(lambda value: field(5, value)),
    PAIRS.map(lambda one: field(6, one)),
    st.binary(max_size=16).map(lambda trace_id: field(9, trace_id)),
)
NUMBER_POINTS = message(
    TIMES.map(lambda ns: fixed(2, ns)),
    TIMES.map(lambda ns: fixed(3, ns)),
    TIMES.map(lambda bits: fixed(4, bits)),
    TIMES.map(lambda bits: fixed(6, bits)),
    PAIRS.map(lambda one: field(7, one)),
    st.integers(0, 3).map(lambda flags: varint(8 << 3) + varint(flags)),
)
USUAL_POINTS = st.tuples(TIMES, TIMES, st.sampled_from([4, 6]), TIMES, NUMBER_POINTS).map(
    lambda parts: fixed(2, parts[0]) + fixed(3, parts[1]) + fixed(parts[2], parts[3]) + parts[4]
)
TOTALS = (
    TIMES.map(lambda ns: fixed(2, ns)),
    TIMES.map(lambda ns: fixed(3, ns)),
    TIMES.map(lambda count: fixed(4, count)),
    TIMES.map(lambda bits: fixed(5, bits)),
)
EIGHTS = st.lists(TIMES.map(lambda bits: fixed(1, bits)[1:]), max_size=4).map(b"".join)
HISTOGRAM_POINTS = message(
    *TOTALS,
    PAIRS.map(lambda one: field(9, one)),
    # packed, and one by one
    st.tuples(st.sampled_from([6, 7]), EIGHTS).map(lambda parts: field(*parts)),
    st.tuples(st.sampled_from([6, 7]), TIMES).map(lambda parts: fixed(*parts)),
)
BUCKETS = message(
    st.integers(0, 20).map(lambda offset: varint(1 << 3) + varint(offset)),
    st.lists(st.integers(0, 300), max_size=4).map(
        lambda counts: field(2, b"".join(varint(count) for count in counts))
    ),
    st.integers(0, 300).map(lambda count: varint(2 << 3) + varint(count)),
)
EXPONENTIAL_POINTS = message(
    *TOTALS,
    PAIRS.map(lambda one: field(1, one)),
    st.integers(0, 20).map(lambda scale: varint(6 << 3) + varint(scale)),
    TIMES.map(lambda zeros: fixed(7, zeros)),
    BUCKETS.map(lambda buckets: field(8, buckets)),
)
SERIES = message(
    NUMBER_POINTS.map(lambda point: field(1, point)),
    USUAL_POINTS.map(lambda point: field(1, point)),
    st.integers(0, 3).map(lambda temporality: varint(2 << 3) + varint(temporality)),
    st.booleans().map(lambda flag: varint(3 << 3) + bytes([flag])),
)
TEMPORALITIES = st.integers(0, 3).map(lambda temporality: varint(2 << 3) + varint(temporality))
HISTOGRAMS = message(HISTOGRAM_POINTS.map(lambda point: field(1, point)), TEMPORALITIES)
EXPONENTIALS = message(EXPONENTIAL_POINTS.map(lambda point: field(1, point)), TEMPORALITIES)
METRICS = message(
    TEXTS.map(lambda name: field(1, name.encode())),
    TEXTS.map(lambda unit: field(3, unit.encode())),
    SERIES.map(lambda series: field(5, series)),
    SERIES.map(lambda series: field(7, series)),
    HISTOGRAMS.map(lambda series: field(9, series)),
    EXPONENTIALS.map(lambda series: field(10, series)),
    most=4,
)


def bodies(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    of_scope = message(
        SCOPES.map(lambda scope: field(1, scope)), items.map(lambda item: field(2, item))
    )
    of_resource = message(
        RESOURCES.map(lambda resource: field(1, resource)),
        of_scope.map(lambda scope: field(2, scope)),
        most=4,
    )
    return message(of_resource.map(lambda entry: field(1, entry)), most=3)


@pytest.mark.parametrize("name", PROTOBUF)
def test_a_recorded_body_decodes_as_by_the_published_classes(name):
    found = recorded()[name]
    if found.is_logs:
        assert repr(found.logs()) == repr(published.logs(found.body))
    else:
        assert repr(found.metrics()) == repr(published.metrics(found.body))


@given(bodies(RECORDS))
def test_any_logs_decode_as_by_the_published_classes(body):
    assert repr(decode_logs(body, Encoding.PROTOBUF)) == repr(published.logs(body))


@given(bodies(METRICS))
def test_any_metrics_decode_as_by_the_published_classes(body):
    assert repr(decode_metrics(body, Encoding.PROTOBUF)) == repr(published.metrics(body))


def test_a_field_of_the_head_that_comes_again_wins_although_it_is_zero():
    usual = fixed(2, 5) + fixed(3, 6) + fixed(6, 7)
    for more in (b"", fixed(2, 0), fixed(3, 0), fixed(6, 0), fixed(4, 0)):
        metric = field(1, b"m") + field(7, field(1, usual + more))
        body = field(1, field(2, field(2, metric)))
        assert repr(decode_metrics(body, Encoding.PROTOBUF)) == repr(published.metrics(body))


@pytest.mark.parametrize(
    ("signal", "wrap"),
    [
        pytest.param("logs", (), id="resources"),
        pytest.param("logs", (1,), id="attributes of resources"),
        pytest.param("logs", (2, 1), id="scopes"),
        pytest.param("logs", (6, 2, 2, 1), id="in an attribute"),
        pytest.param("logs", (2, 2, 1), id="in a record"),
        pytest.param("metrics", (1, 7, 2, 2, 1), id="in a point"),
        pytest.param("metrics", (7, 2, 2, 1), id="points"),
    ],
)
def test_millions_of_tiny_fields_are_rejected_before_they_are_parsed(signal, wrap):
    body = b"\x0a\x00" * (2 * MOST_FIELDS + LARGE)
    for number in wrap:
        body = field(number, body)
    decode = decode_logs if signal == "logs" else decode_metrics
    with pytest.raises(TooLarge, match=rf"more than {MOST_FIELDS} fields|more than 10000"):
        decode(body, Encoding.PROTOBUF)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x0a" + varint(2 * LARGE) + b" " * LARGE, id="a length past the end"),
        pytest.param(b"\x08" + b"\xff" * (LARGE + 1), id="a number without an end"),
        pytest.param(b"\x07" * (LARGE + 1), id="a wire type that is none"),
        pytest.param(field(1, b"x" * LARGE) + b"\x09\x00", id="a cut number"),
    ],
)
def test_a_large_body_that_is_no_protobuf_is_bad(body):
    with pytest.raises(BadBody):
        check_size(body)


def test_a_large_body_of_ordinary_records_decodes():
    request = log_request(TRANSITION)
    (scope,) = request.resource_logs[0].scope_logs
    for number in range(4000):
        record = scope.log_records.add()
        record.CopyFrom(scope.log_records[0])
        record.attributes.add(key="text", value=any_value(f"{number}" * 60))
    body = request.SerializeToString()
    assert len(body) > LARGE
    assert repr(decode_logs(body, Encoding.PROTOBUF)) == repr(published.logs(body))


@pytest.mark.parametrize("kind", ["array", "map"])
def test_a_nested_value_that_is_huge_rejects_its_item_alone(kind):
    texts = ["x" * 90] * (NESTED_BYTES // 64)
    value = tuple(texts) if kind == "array" else KeyValues(tuple((text, text) for text in texts))
    request = log_request(TRANSITION)
    (scope,) = request.resource_logs[0].scope_logs
    scope.log_records.add(attributes=scope.log_records[0].attributes)
    scope.log_records[0].attributes.add(key="huge", value=any_value(value))
    (batch,) = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    first, second = batch.scopes[0].items
    assert isinstance(first, Rejection)
    assert "nested" in first.detail
    assert not isinstance(second, Rejection)


def test_a_long_text_is_no_nested_value():
    request = counter_request({"text": "x" * (2 * NESTED_BYTES)}, as_int=1)
    (batch,) = decode_metrics(request.SerializeToString(), Encoding.PROTOBUF)
    assert not isinstance(batch.scopes[0].points[0], Rejection)
