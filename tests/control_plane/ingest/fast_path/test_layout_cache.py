"""Layout cache: the records it adds, in little time and memory whatever is sent."""

import tracemalloc

import pytest

from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.fast_path.layout_cache import LayoutCache
from guardwave.control_plane.ingest.fast_path.variable_fields import find_variable_fields
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import Mode
from tests.support.otlp.bodies import END, NOW_NS, TRANSITION
from tests.support.otlp.by_hand import PROMPT, start, text, usual
from tests.support.otlp.repeated_records import (
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
        pytest.param(start(PROMPT, padding=b"\x52\x00" * 40), id="too many variable fields"),
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
def test_a_record_that_no_exporter_writes_has_no_layout(record):
    assert find_variable_fields(record, is_end=False) is None


def test_an_end_with_all_possible_fields_has_a_layout():
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
    attributes = {**END, **numbers}
    message = message_of((("agent.guard.prompt.end", attributes), "p", ids, NOW_NS, others))
    found = find_variable_fields(message, is_end=True)
    assert found is not None
    assert len(found) == 27


def test_a_cache_takes_no_more_memory_than_it_may_remember():
    """Each record has another size and layout, with as many variable fields as are allowed."""
    remembered = 300_000
    layout_cache = LayoutCache(remembered_bytes=remembered)
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
            read(body, layout_cache)
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert remembered / 4 < max(kept) < remembered


def transitions(count: int) -> list[bytes]:
    """Return transitions of one prompt with different numbers."""
    return [
        message_of(
            (("agent.guard.transition", {**TRANSITION, SEQUENCE: at}), "p", None, NOW_NS, {})
        )
        for at in range(count)
    ]


def test_one_known_record_does_not_make_others_worth_adding():
    known, messages, layout_cache = start(PROMPT), transitions(2000), LayoutCache()
    read(body_of([known]), layout_cache)
    for at in range(0, len(messages), 100):
        assert len(repeats(read(body_of([known, *messages[at : at + 100]]), layout_cache))) == 1
    added = len(repeats(read(body_of(messages), layout_cache)))
    assert 512 <= added < 700


def test_records_that_do_repeat_are_added_after_a_flood():
    messages, layout_cache = transitions(2000), LayoutCache()
    for message in messages:
        read(body_of([message]), layout_cache)
    for _ in range(8):
        read(body_of(messages[:1300]), layout_cache)
    assert len(repeats(read(body_of(messages[:1300]), layout_cache))) == 1300


def test_long_texts_in_the_place_of_assignment_ids_take_no_memory():
    """They prove nothing, and a sender can write any number of them."""
    issued_ids = [issued(f"guard_number_{at:02d}", OWNERS[0], Mode.SHADOW) for at in range(15)]
    text_of_all = "~".join(issued_ids)
    layout_cache, builder = LayoutCache(), EvidenceBuilder("internal", TAG_KEY, "token")

    def unproven(at: int) -> int:
        ids = text(text_of_all[:-8] + f"{at:08d}") if at else text(text_of_all)
        found = read(
            body_of([start(PROMPT, usual(contract.ASSIGNMENT_ID.encode(), ids))]), layout_cache
        )
        assert found is not None
        return sum(len(builder.build_repeated(records).remaining) for records in found.repeated)

    assert [unproven(0) for _ in range(2)] == [0, 0]
    assert unproven(1) == 1
    tracemalloc.start()
    try:
        assert sum(unproven(at) for at in range(2, 402)) == 400
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 400 * len(text_of_all) / 8
