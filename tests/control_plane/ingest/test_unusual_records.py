"""What no exporter writes is read right, and costs the worker neither its time nor its memory."""

import tracemalloc
from collections.abc import Callable
from struct import pack

import pytest

from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.forms import Forms
from control_plane.ingest.proto_holes import find_holes
from reducer import contract
from reducer.vocabulary import Mode
from tests.control_plane.ingest.bodies import END, NOW_NS, RESOURCE, TRANSITION
from tests.control_plane.ingest.said_again import (
    GUARDS,
    OWNERS,
    TAG_KEY,
    body_of,
    check,
    field,
    issued,
    message_of,
    read,
    repeats,
)

SEQUENCE = "agent.guard.sequence"
Written = Callable[[bytes, bytes], bytes]


def usual(key: bytes, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


def value_first(key: bytes, value: bytes) -> bytes:
    return field(2, value) + field(1, key)


def long_tag(key: bytes, value: bytes) -> bytes:
    return b"\x8a\x00" + field(1, key)[1:] + field(2, value)


def long_length(key: bytes, value: bytes) -> bytes:
    return bytes((0x0A, len(key) | 0x80, 0)) + key + field(2, value)


def key_twice(key: bytes, value: bytes) -> bytes:
    return field(1, b"other") + field(2, value) + field(1, key)


UNUSUAL = [
    pytest.param(value_first, id="the value before the key"),
    pytest.param(long_tag, id="a tag of more bytes than it needs"),
    pytest.param(long_length, id="a length of more bytes than it needs"),
    pytest.param(key_twice, id="two keys, of which the last one holds"),
]


def text(value: str) -> bytes:
    return field(1, value.encode())


def number(value: int) -> bytes:
    return bytes((0x18, value & 0x7F | 0x80, value >> 7))


def bare(event: str, *attributes: bytes, padding: bytes = b"") -> bytes:
    """A LogRecord of NOW whose attributes are written as given."""
    told = b"".join(field(6, each) for each in attributes)
    return b"\x09" + pack("<Q", NOW_NS) + told + padding + field(12, event.encode())


def start(prompt_id: str, *attributes: bytes, padding: bytes = b"") -> bytes:
    """A start whose prompt id is written as exporters do."""
    named = usual(contract.PROMPT_ID.encode(), text(prompt_id))
    return bare("agent.guard.prompt.start", named, *attributes, padding=padding)


@pytest.mark.parametrize("written", UNUSUAL)
def test_an_own_assignment_id_is_never_taken_for_that_of_the_resource(written: Written):
    """When it was read, it was equal to the Resource's; the next Resource has another."""
    own, other = (issued(GUARDS[0], owner, Mode.SHADOW) for owner in OWNERS)
    record = start("p", written(contract.ASSIGNMENT_ID.encode(), text(own)))
    forms = Forms()
    for vouching in (own, other):
        body = body_of([record], resource={**RESOURCE, contract.ASSIGNMENT_ID: vouching})
        check(read(body, forms), read(body))


@pytest.mark.parametrize("written", UNUSUAL)
@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("gen_ai.usage.input_tokens", "agent.guard.usage.input_tokens"),
        ("gen_ai.usage.output_tokens", "agent.guard.usage.output_tokens"),
    ],
)
def test_a_number_that_is_told_twice_is_the_newer_one(written: Written, newer: str, older: str):
    """When it was read, both were equal; the next end has another by the older name."""
    ended = usual(contract.OUTCOME.encode(), text("completed"))
    named = usual(contract.PROMPT_ID.encode(), text("p"))
    forms = Forms()
    for by_older in (300, 301):
        told = written(newer.encode(), number(300)), usual(older.encode(), number(by_older))
        body = body_of([bare("agent.guard.prompt.end", named, ended, *told)])
        check(read(body, forms), read(body))


def test_the_same_attributes_as_exporters_write_them_take_the_short_way():
    own = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
    record = start("p", usual(contract.ASSIGNMENT_ID.encode(), text(own)))
    forms = Forms()
    assert repeats(read(body_of([record]), forms)) == []
    assert len(repeats(read(body_of([record]), forms))) == 1


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(start("p", padding=b"\x52\x00" * 900), id="hundreds of empty span ids"),
        pytest.param(start("p", padding=b"\x52\x00" * 40), id="some more holes than any record"),
        pytest.param(start("p", padding=b"\x80\x01\x01" * 90), id="fields of no number of OTLP's"),
        pytest.param(start("p", usual(b"k", text("v")) + b"\x18\x01"), id="a pair of three fields"),
        pytest.param(
            start("p", usual(contract.ASSIGNMENT_ID.encode(), field(5, field(1, text("a")) * 17))),
            id="more assignment ids than are read",
        ),
    ],
)
def test_what_no_exporter_writes_is_not_learned(record):
    assert find_holes(record, is_end=False) is None


def test_an_end_with_all_that_an_end_may_tell_is_learned():
    ids = tuple(issued(f"guard_{at}", OWNERS[0], Mode.SHADOW) for at in range(15))
    numbers = dict.fromkeys(
        (
            contract.TURNS,
            contract.TOOL_CALLS,
            contract.TRANSITIONS,
            contract.INPUT_TOKENS,
            contract.OUTPUT_TOKENS,
            contract.CALLS_AFTER_WOULD_STOP,
        ),
        3,
    )
    others = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "observed_time_unix_nano": NOW_NS}
    told = {**END, **numbers}
    message = message_of((("agent.guard.prompt.end", told), "p", ids, NOW_NS, others))
    found = find_holes(message, is_end=True)
    assert found is not None
    assert len(found) == 27


def test_what_forms_keep_takes_no_more_than_they_may_remember():
    """Each record is of a size and of a form of its own, with as many holes as are learned."""
    remembered = 300_000
    forms = Forms(remembered_bytes=remembered)
    bodies = [
        body_of([start("p", padding=b"\x52\x00" * 38 + field(3, b"x" * at))]) for at in range(120)
    ]
    for body in bodies:
        read(body)
    kept = []
    tracemalloc.start()
    try:
        for body in bodies:
            read(body, forms)
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert remembered / 4 < max(kept) < remembered


def transitions(count: int) -> list[bytes]:
    """As many transitions of one prompt, each with a number of its own."""
    return [
        message_of(
            (("agent.guard.transition", {**TRANSITION, SEQUENCE: at}), "p", None, NOW_NS, {})
        )
        for at in range(count)
    ]


def test_one_record_that_is_known_does_not_make_others_worth_learning():
    known, said, forms = start("p"), transitions(2000), Forms()
    read(body_of([known]), forms)
    for at in range(0, len(said), 100):
        assert len(repeats(read(body_of([known, *said[at : at + 100]]), forms))) == 1
    learned = len(repeats(read(body_of(said), forms)))
    assert 512 <= learned < 700


def test_what_repeats_itself_for_good_is_learned_after_a_flood():
    said, forms = transitions(2000), Forms()
    for message in said:
        read(body_of([message]), forms)
    for _ in range(8):
        read(body_of(said[:1300]), forms)
    assert len(repeats(read(body_of(said[:1300]), forms))) == 1300


def test_long_texts_in_the_place_of_assignment_ids_leave_nothing_behind():
    """Nothing vouches for them, and a sender can write as many as it likes."""
    issued_ids = [issued(f"guard_number_{at:02d}", OWNERS[0], Mode.SHADOW) for at in range(15)]
    text_of_all = "~".join(issued_ids)
    forms, bookkeeper = Forms(), Bookkeeper("internal", TAG_KEY, "token")

    def booked(at: int) -> int:
        told = text(text_of_all[:-8] + f"{at:08d}") if at else text(text_of_all)
        found = read(body_of([start("p", usual(contract.ASSIGNMENT_ID.encode(), told))]), forms)
        assert found is not None
        return sum(len(bookkeeper.book_runs(each).left) for each in found.repeated)

    assert [booked(0) for _ in range(2)] == [0, 0]
    assert booked(1) == 1
    tracemalloc.start()
    try:
        assert sum(booked(at) for at in range(2, 402)) == 400
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 400 * len(text_of_all) / 8
