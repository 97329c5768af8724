"""Records that no exporter writes: fast path and slow path agree on them."""

from collections.abc import Callable

import pytest

from guardwave.control_plane.ingest.fast_path.layout_cache import LayoutCache
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import Mode
from tests.support.otlp.bodies import END, NOW_NS, RESOURCE
from tests.support.otlp.by_hand import (
    PROMPT,
    attribute,
    number,
    record_of,
    start,
    text,
    time,
    usual,
)
from tests.support.otlp.repeated_records import (
    GUARDS,
    OWNERS,
    Record,
    body_of,
    check,
    field,
    issued,
    message_of,
    read,
    repeats,
)

Written = Callable[[bytes, bytes], bytes]
IDS = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
ASSIGNMENT = attribute(contract.ASSIGNMENT_ID, IDS)


def end(**changed: Value) -> bytes:
    attributes = {**END, **{f"agent.guard.prompt.{key}": value for key, value in changed.items()}}
    record: Record = (("agent.guard.prompt.end", attributes), "p-1", IDS, NOW_NS, {})
    return message_of(record)


def value(content: str) -> bytes:
    return field(2, text(content))


def value_first(key: bytes, value: bytes) -> bytes:
    return field(2, value) + field(1, key)


def long_tag(key: bytes, value: bytes) -> bytes:
    return b"\x8a\x00" + field(1, key)[1:] + field(2, value)


def long_length(key: bytes, value: bytes) -> bytes:
    return bytes((0x0A, len(key) | 0x80, 0)) + key + field(2, value)


def key_twice(key: bytes, value: bytes) -> bytes:
    return field(1, b"other") + field(2, value) + field(1, key)


ODDLY = [
    pytest.param(value_first, id="the value before the key"),
    pytest.param(long_tag, id="a tag of more bytes than it needs"),
    pytest.param(long_length, id="a length of more bytes than it needs"),
    pytest.param(key_twice, id="two keys; the last one holds"),
]


def check_after(first: bytes, later: bytes) -> list[object]:
    """Read the later record by both paths after the first; return those of the fast path."""
    layout_cache = LayoutCache()
    check(read(body_of([first]), layout_cache), read(body_of([first])))
    again = read(body_of([later]), layout_cache)
    check(again, read(body_of([later])))
    return repeats(again)


@pytest.mark.parametrize(
    "duration",
    [
        pytest.param(86_400.5, id="over a day"),
        pytest.param(-1.0, id="negative"),
        pytest.param(float("nan"), id="not a number"),
        pytest.param(float("inf"), id="without end"),
    ],
)
def test_a_duration_out_of_range_is_rejected_after_one_within(duration):
    assert check_after(end(), end(duration=duration)) == []


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param(2**28, 2**31, id="beyond the limit"),
        pytest.param(2**28, 2**28 + 1, id="within it"),
        pytest.param(-1, -2, id="negative"),
    ],
)
def test_a_number_of_many_bytes_takes_the_slow_path(first, later):
    assert check_after(end(turns=first), end(turns=later)) == []


@pytest.mark.parametrize(
    "duration",
    [
        pytest.param(1.5, id="on the day of its end"),
        pytest.param(86_400.0, id="on the day before"),
    ],
)
def test_a_prompt_counts_on_the_day_of_its_start(duration):
    assert len(check_after(end(duration=7.0), end(duration=duration))) == 1


def test_a_record_written_as_exporters_do_takes_the_fast_path():
    assert len(check_after(start(PROMPT, ASSIGNMENT), start(PROMPT, ASSIGNMENT))) == 1


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param(
            start(PROMPT, field(1, b"other") + ASSIGNMENT),
            start(PROMPT, field(1, b"other") + ASSIGNMENT),
            id="the key of the assignment id after another key",
        ),
        pytest.param(
            start(PROMPT + value("p-1")),
            start(attribute(contract.PROMPT_ID, "p-2") + value("p-1")),
            id="a prompt id before the one that holds",
        ),
        pytest.param(
            start(value("p-1") + field(1, contract.PROMPT_ID.encode())),
            start(value("p-1") + field(1, contract.PROMPT_ID.encode())),
            id="a value before its key",
        ),
        pytest.param(
            time(NOW_NS) + start(PROMPT),
            time(NOW_NS - 7) + start(PROMPT),
            id="a time before the one that holds",
        ),
        pytest.param(
            start(PROMPT, PROMPT), start(PROMPT, PROMPT), id="an attribute that is there twice"
        ),
    ],
)
def test_an_oddly_written_record_takes_the_slow_path(first, later):
    assert check_after(first, later) == []


def test_an_attribute_without_a_value_counts_as_missing():
    unset = field(1, contract.ASSIGNMENT_ID.encode()) + field(2, b"")
    assert len(check_after(start(PROMPT, unset), start(PROMPT, unset))) == 1


def test_an_array_of_assignment_ids_is_read_as_one():
    texts = b"".join(field(1, text(value_id)) for value_id in (IDS, "a1.forged"))
    array = field(1, contract.ASSIGNMENT_ID.encode()) + field(2, field(5, texts))
    assert len(check_after(start(PROMPT, array), start(PROMPT, array))) == 1


@pytest.mark.parametrize("written", ODDLY)
def test_a_records_assignment_id_is_never_taken_for_that_of_the_resource(written: Written):
    """When it was read, it was equal to the Resource's; the next Resource has another."""
    own, other = (issued(GUARDS[0], owner, Mode.SHADOW) for owner in OWNERS)
    record = start(PROMPT, written(contract.ASSIGNMENT_ID.encode(), text(own)))
    layout_cache = LayoutCache()
    for on_resource in (own, other):
        body = body_of([record], resource={**RESOURCE, contract.ASSIGNMENT_ID: on_resource})
        check(read(body, layout_cache), read(body))


@pytest.mark.parametrize("written", ODDLY)
@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("gen_ai.usage.input_tokens", "agent.guard.usage.input_tokens"),
        ("gen_ai.usage.output_tokens", "agent.guard.usage.output_tokens"),
    ],
)
def test_a_number_under_both_names_is_the_newer_one(written: Written, newer: str, older: str):
    """When it was read, both were equal; the next end has another by the older name."""
    ended = attribute(contract.OUTCOME, "completed")
    layout_cache = LayoutCache()
    for by_older in (300, 301):
        pairs = written(newer.encode(), number(300)), usual(older.encode(), number(by_older))
        body = body_of([record_of("agent.guard.prompt.end", PROMPT, ended, *pairs)])
        check(read(body, layout_cache), read(body))


def test_the_same_attributes_as_exporters_write_them_take_the_fast_path():
    own = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
    record = start(PROMPT, attribute(contract.ASSIGNMENT_ID, own))
    layout_cache = LayoutCache()
    assert repeats(read(body_of([record]), layout_cache)) == []
    assert len(repeats(read(body_of([record]), layout_cache))) == 1
