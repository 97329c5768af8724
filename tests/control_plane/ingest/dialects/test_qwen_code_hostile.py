"""Any content of qwen-code's items: each is accepted, rejected or ignored."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave.control_plane.ingest.contract.limits import sender_clock
from guardwave.control_plane.ingest.dialects import qwen_code_vocabulary as words
from guardwave.control_plane.ingest.dialects.dialect import (
    Accepted,
    ItemContext,
    ReadResult,
)
from guardwave.control_plane.ingest.dialects.qwen_code import QwenCodeDialect
from guardwave.control_plane.ingest.dialects.qwen_code_logs import EVENTS
from guardwave.control_plane.ingest.model.otlp_values import (
    HistogramPoint,
    KeyValues,
    LogItem,
    NumberPoint,
    OtherPoint,
    Span,
    Temporality,
)
from guardwave.control_plane.ingest.model.records import CounterPoint, Origin
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, ItemRejected, Rejection
from tests.support.otlp.bodies import NOW_NS

Item = TypeVar("Item")

ORIGIN = Origin("qwen-code", "0.24.4", "i-1", "internal", 1, ())
CONTEXT = ItemContext(ORIGIN, "", NOW_NS, sender_clock)
DIALECT = QwenCodeDialect()

keys = st.sampled_from(
    sorted(
        {key for event in EVENTS.values() for key in event.allowed}
        | {words.SPAN_PROMPT_ID, words.SPAN_STATUS, words.SPAN_DURATION_MS, "function_args"}
    )
)
likely = st.sampled_from(["warn", "tracked", "stopped", "error", "8+", "3+", "idle", "ok", "s-1"])
values = st.recursive(
    st.none() | likely | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.tuples(inner) | st.builds(lambda v: KeyValues((("k", v),)), inner),
    max_leaves=3,
)
attributes = st.dictionaries(keys, values, max_size=12)
moments = st.just(NOW_NS) | st.integers(0, 2**64 - 1)
traces = st.binary(min_size=16, max_size=16) | st.just(b"")
counters = st.sampled_from([words.GUARD_COUNTER, words.EXECUTION_COUNTER])


def result_of(read: Callable[[Item, ItemContext], ReadResult], item: Item) -> ReadResult:
    """Return the result of reading an item, also when the dialect raises it."""
    try:
        return read(item, CONTEXT)
    except ItemRejected as error:
        return error.rejection


@given(
    name=st.sampled_from(sorted(EVENTS)),
    pairs=attributes,
    times=st.tuples(moments, moments),
    trace=traces,
    body=st.booleans(),
)
@settings(deadline=None)
def test_any_log_record_of_a_known_event_has_a_result(name, pairs, times, trace, body):
    named = {**pairs, words.EVENT_NAME: name}
    item = LogItem(times[0], times[1], "", named, body, trace)
    assert isinstance(result_of(DIALECT.read_log, item), Accepted | Rejection)


@given(pairs=attributes, times=st.tuples(moments, moments), trace=traces)
@settings(deadline=None)
def test_any_span_of_a_prompt_has_a_result(pairs, times, trace):
    span = Span(trace, words.SPAN, times[0], times[1], 0, pairs)
    assert isinstance(result_of(DIALECT.read_span, span), Accepted | Rejection)


@given(
    metric=counters,
    pairs=attributes,
    times=st.tuples(moments, moments),
    value=st.none() | st.integers(-1, 2**63) | st.floats(),
    shape=st.tuples(st.sampled_from(Temporality), st.booleans()),
    is_empty=st.booleans(),
)
@settings(deadline=None)
def test_any_point_of_a_known_counter_has_a_result(metric, pairs, times, value, shape, is_empty):
    temporality, is_monotonic = shape
    start, end = times
    point = NumberPoint(metric, "", start, end, value, temporality, is_monotonic, pairs, is_empty)
    assert isinstance(result_of(DIALECT.read_point, point), Accepted | Rejection | IgnoreReason)


@pytest.mark.parametrize("metric", [words.GUARD_COUNTER, words.EXECUTION_COUNTER])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda name: OtherPoint(name, "gauge"), id="a gauge"),
        pytest.param(
            lambda name: HistogramPoint(
                name, "", 1, NOW_NS, 1, None, Temporality.DELTA, False, {}, False
            ),
            id="a histogram",
        ),
    ],
)
def test_a_counter_that_came_as_another_instrument_is_rejected(metric, shape):
    with pytest.raises(ItemRejected, match="is a counter"):
        DIALECT.read_point(shape(metric), CONTEXT)


@pytest.mark.parametrize("metric", [words.GUARD_COUNTER, words.EXECUTION_COUNTER])
def test_a_point_beyond_the_limit_of_its_sdk_is_counted_without_attributes(metric):
    pairs = {"otel.metric.overflow": True}
    point = NumberPoint(metric, "", 1, NOW_NS, 7, Temporality.DELTA, True, pairs, False)
    result = DIALECT.read_point(point, CONTEXT)
    assert isinstance(result, Accepted)
    (record,) = result.records
    assert isinstance(record, CounterPoint)
    assert (record.value, record.labels, record.is_overflow) == (7, (), True)


def test_an_execution_without_a_status_is_rejected_in_the_words_of_the_client():
    point = NumberPoint(
        words.EXECUTION_COUNTER, "", 1, NOW_NS, 7, Temporality.DELTA, True, {}, False
    )
    with pytest.raises(ItemRejected, match=r"^execution_status is missing"):
        DIALECT.read_point(point, CONTEXT)


def test_what_it_does_not_know_is_left_to_others():
    item = LogItem(NOW_NS, 0, "gen_ai.choice", {}, True)
    assert DIALECT.read_log(item, CONTEXT) is IgnoreReason.UNKNOWN_EVENT
    assert DIALECT.read_log(item._replace(event_name=""), CONTEXT) is IgnoreReason.UNKNOWN_EVENT
    span = Span(b"", "qwen-code.llm_request", 1, NOW_NS, 0, {})
    assert DIALECT.read_span(span, CONTEXT) is IgnoreReason.UNKNOWN_EVENT
    point = OtherPoint("qwen-code.acp.event_loop.lag", "gauge")
    assert DIALECT.read_point(point, CONTEXT) is IgnoreReason.UNKNOWN_METRIC
