"""A record that is written as no exporter writes it, or odd in a hole, goes the long way."""

from struct import pack

import pytest

from control_plane.ingest.forms import Forms
from control_plane.ingest.otlp import Value
from reducer import contract
from reducer.vocabulary import Mode
from tests.control_plane.ingest.bodies import END, NOW_NS
from tests.control_plane.ingest.said_again import (
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

IDS = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)


def end(**changed: Value) -> bytes:
    told = {**END, **{f"agent.guard.prompt.{key}": value for key, value in changed.items()}}
    record: Record = (("agent.guard.prompt.end", told), "p-1", IDS, NOW_NS, {})
    return message_of(record)


def start(*attributes: bytes, time_ns: int = NOW_NS) -> bytes:
    """A start of exactly these attributes, each the content of a KeyValue."""
    name = field(12, b"agent.guard.prompt.start")
    return time(time_ns) + b"".join(field(6, each) for each in attributes) + name


def time(time_ns: int) -> bytes:
    return b"\x09" + pack("<Q", time_ns)


def attribute(key: str, text: str) -> bytes:
    return field(1, key.encode()) + value(text)


def value(text: str) -> bytes:
    return field(2, field(1, text.encode()))


PROMPT = attribute(contract.PROMPT_ID, "p-1")
ASSIGNMENT = attribute(contract.ASSIGNMENT_ID, IDS)


def check_after(first: bytes, later: bytes) -> list[object]:
    """Read the later record both ways, the first one known; return what went the short way."""
    forms = Forms()
    check(read(body_of([first]), forms), read(body_of([first])))
    again = read(body_of([later]), forms)
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
def test_a_duration_out_of_range_is_refused_after_one_within(duration):
    assert check_after(end(), end(duration=duration)) == []


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param(2**28, 2**31, id="beyond the limit"),
        pytest.param(2**28, 2**28 + 1, id="within it"),
        pytest.param(-1, -2, id="negative"),
    ],
)
def test_a_number_of_many_bytes_goes_the_long_way(first, later):
    assert check_after(end(turns=first), end(turns=later)) == []


@pytest.mark.parametrize(
    "duration",
    [
        pytest.param(1.5, id="on the day of its end"),
        pytest.param(86_400.0, id="on the day before"),
    ],
)
def test_a_prompt_is_booked_on_the_day_of_its_start(duration):
    assert len(check_after(end(duration=7.0), end(duration=duration))) == 1


def test_what_is_written_as_exporters_do_takes_the_short_way():
    assert len(check_after(start(PROMPT, ASSIGNMENT), start(PROMPT, ASSIGNMENT))) == 1


@pytest.mark.parametrize(
    ("first", "later"),
    [
        pytest.param(
            start(PROMPT, field(1, b"other") + ASSIGNMENT),
            start(PROMPT, field(1, b"other") + ASSIGNMENT),
            id="the key of the assignment id behind another key",
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
def test_a_record_that_is_written_oddly_goes_the_long_way(first, later):
    assert check_after(first, later) == []


def test_an_attribute_without_a_value_is_as_none():
    unset = field(1, contract.ASSIGNMENT_ID.encode()) + field(2, b"")
    assert len(check_after(start(PROMPT, unset), start(PROMPT, unset))) == 1


def test_an_array_of_assignment_ids_is_read_as_one():
    texts = b"".join(field(1, field(1, text.encode())) for text in (IDS, "a1.forged"))
    array = field(1, contract.ASSIGNMENT_ID.encode()) + field(2, field(5, texts))
    assert len(check_after(start(PROMPT, array), start(PROMPT, array))) == 1
