"""What forms learn of records, and that it takes little time and memory whatever is sent."""

import tracemalloc

import pytest

from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.forms import Forms
from control_plane.ingest.proto_holes import find_holes
from reducer import contract
from reducer.vocabulary import Mode
from tests.control_plane.ingest.bodies import END, NOW_NS, TRANSITION
from tests.control_plane.ingest.by_hand import PROMPT, start, text, usual
from tests.control_plane.ingest.said_again import (
    OWNERS,
    TAG_KEY,
    body_of,
    field,
    issued,
    message_of,
    read,
    repeats,
)

SEQUENCE = "agent.guard.sequence"


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(start(PROMPT, padding=b"\x52\x00" * 900), id="hundreds of empty span ids"),
        pytest.param(start(PROMPT, padding=b"\x52\x00" * 40), id="some more holes than any record"),
        pytest.param(
            start(PROMPT, padding=b"\x80\x01\x01" * 90), id="fields of no number of OTLP's"
        ),
        pytest.param(
            start(PROMPT, usual(b"k", text("v")) + b"\x18\x01"), id="a pair of three fields"
        ),
        pytest.param(
            start(
                PROMPT,
                usual(contract.ASSIGNMENT_ID.encode(), field(5, field(1, text("a")) * 17)),
            ),
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
        body_of([start(PROMPT, padding=b"\x52\x00" * 38 + field(3, b"x" * at))])
        for at in range(120)
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
    known, said, forms = start(PROMPT), transitions(2000), Forms()
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
        found = read(body_of([start(PROMPT, usual(contract.ASSIGNMENT_ID.encode(), told))]), forms)
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
