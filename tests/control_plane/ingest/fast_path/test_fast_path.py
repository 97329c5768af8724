"""Fast path: a record that matches a layout adds what it adds by the slow path."""

from concurrent.futures import ThreadPoolExecutor
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.fast_path.layout_cache import LayoutCache
from guardwave.control_plane.ingest.fast_path.variable_fields import find_variable_fields
from guardwave.control_plane.ingest.model.records import PromptEnd, PromptStart, Transition
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import Mode
from tests.support.otlp.bodies import END, NOW_NS, RESOURCE, TRANSITION, log_request, recorded
from tests.support.otlp.repeated_records import (
    GUARDS,
    OWNERS,
    PROMPT_IDS,
    RECORDS,
    TIMES,
    Record,
    body_of,
    check,
    issued,
    message_of,
    read,
    repeats,
)


@given(st.lists(RECORDS.map(message_of), max_size=8))
def test_the_fast_path_adds_what_the_slow_path_adds(messages):
    layout_cache, body = LayoutCache(), body_of(messages)
    slow = read(body)
    for _ in range(2):
        check(read(body, layout_cache), slow)


@given(st.lists(RECORDS.map(message_of), max_size=3), RECORDS, PROMPT_IDS, TIMES)
def test_a_layout_of_one_prompt_reads_records_of_another(others, record, prompt_id, time_ns):
    event, _, assignment, _, fields = record
    layout_cache = LayoutCache()
    read(body_of([*others, message_of(record)]), layout_cache)
    body = body_of([message_of((event, prompt_id, assignment, time_ns, fields)), *others])
    check(read(body, layout_cache), read(body))


@given(st.data(), st.lists(RECORDS.map(message_of), min_size=1, max_size=3))
def test_both_paths_agree_whatever_bytes_are_changed(data, messages):
    """A value may look like a tag, and bytes that look like another record may be none."""
    layout_cache = LayoutCache()
    for _ in range(3):
        body = body_of(messages)
        check(read(body, layout_cache), read(body))
        messages = [data.draw(changed(message)) for message in messages]


# tags of texts, attributes and integers, the ends of varints, and bytes that are no UTF-8
ODD_BYTES = st.sampled_from(b"\x00\x01\x0a\x12\x18\x32\x7f\x80\xc3\xff~x")


@st.composite
def changed(draw, message: bytes) -> bytes:
    """Draw the same record with some bytes changed, mostly in variable fields."""
    variable_fields = find_variable_fields(message, is_end=True) or ()
    inside = [
        at for found in variable_fields for at in range(found.start, found.end) if at < len(message)
    ]
    anywhere = st.integers(0, len(message) - 1)
    places = st.one_of(*[st.sampled_from(inside)] * 2, anywhere) if inside else anywhere
    found = bytearray(message)
    for at in draw(st.lists(places, max_size=4)):
        found[at] = draw(ODD_BYTES | st.integers(0, 255))
    return bytes(found)


RECORDED = {
    name: found.body
    for name, found in recorded().items()
    if found.is_logs and found.encoding is Encoding.PROTOBUF
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_body_adds_the_same_by_the_fast_path(name):
    for body in (RECORDED[name], settled(RECORDED[name])):
        layout_cache = LayoutCache()
        for _ in range(2):
            check(read(body, layout_cache), read(body))


def test_recorded_bodies_in_any_order_share_layouts_and_read_the_same():
    bodies = [body for early in RECORDED.values() for body in (early, settled(early))]
    layout_cache = LayoutCache()
    for body in [*bodies, *reversed(bodies)]:
        check(read(body, layout_cache), read(body))


def test_threads_that_share_a_cache_read_what_each_reads_alone():
    bodies = list(RECORDED.values())
    # little memory, so that layouts are forgotten while threads use them
    layout_cache = LayoutCache(remembered_bytes=20_000)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda body: read(body, layout_cache), bodies * 8))
    for body, fast in zip(bodies * 8, found, strict=True):
        check(fast, read(body))


def test_recorded_transitions_and_ends_take_the_fast_path():
    early, layout_cache = recorded()["logs_pb_0.pb"].body, LayoutCache()
    body = settled(early)
    read(body, layout_cache)
    kinds = {type(repeat) for repeat in repeats(read(body, layout_cache))}
    assert kinds >= {Transition, PromptEnd}
    assert repeats(read(early, layout_cache)) == []


def settled(body: bytes) -> bytes:
    """Return a recorded body as a host of contract 1 would send it."""
    request = ExportLogsServiceRequest.FromString(body)
    for batch in request.resource_logs:
        for scope in batch.scope_logs:
            scope.scope.version = "1"
    return request.SerializeToString()


NUMBERED = {
    **END,
    "agent.guard.prompt.turns": 3,
    "gen_ai.usage.input_tokens": 4000,
    "gen_ai.usage.output_tokens": 70_000,
}


@pytest.mark.parametrize(
    ("event", "first", "later"),
    [
        pytest.param("transition", TRANSITION, TRANSITION, id="a transition"),
        pytest.param("prompt.start", {}, {}, id="a start"),
        pytest.param(
            "prompt.end",
            NUMBERED,
            {
                **NUMBERED,
                "agent.guard.prompt.duration": 7.25,
                "agent.guard.prompt.turns": 5,
                "gen_ai.usage.input_tokens": 300,
            },
            id="an end with other numbers",
        ),
    ],
)
def test_a_repeated_record_takes_the_fast_path_whoever_sends_it(event, first, later):
    ids = [issued(GUARDS[0], owner, Mode.SHADOW) for owner in OWNERS]
    name = f"agent.guard.{event}"
    messages = [
        message_of(((name, first), "p-1", ids[0], NOW_NS, {"trace_id": b"a" * 16})),
        message_of(((name, later), "p-2", ids[1], NOW_NS - 9, {"trace_id": b"b" * 16})),
    ]
    layout_cache = LayoutCache()
    assert repeats(read(body_of(messages[:1]), layout_cache)) == []
    (again,) = repeats(read(body_of(messages[1:]), layout_cache))
    slow = read(body_of(messages[1:]))
    assert slow is not None
    assert (again,) == slow.records


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(b"\x82\x00", id="more bytes than the number needs"),
        pytest.param(b"\x82\x82", id="a number that does not end where its field does"),
        pytest.param(b"\x02\x02", id="two numbers"),
    ],
)
def test_an_oddly_written_number_is_read_as_the_parser_reads_it(written):
    record: Record = (
        ("agent.guard.prompt.end", {**END, "agent.guard.prompt.turns": 300}),
        "p",
        None,
        NOW_NS,
        {},
    )
    message, layout_cache = message_of(record), LayoutCache()
    read(body_of([message]), layout_cache)
    odd = body_of([message.replace(b"\x18\xac\x02", b"\x18" + written)])
    check(read(odd, layout_cache), read(odd))


def test_a_prompt_id_that_looks_like_an_attribute_is_a_prompt_id():
    inner = b"\x32\x0a\x0a\x04abcd\x12\x02\x18\x01"
    record: Record = (("agent.guard.prompt.start", {}), "x" * len(inner), None, NOW_NS, {})
    layout_cache = LayoutCache()
    read(body_of([message_of(record)]), layout_cache)
    hostile = message_of((record[0], inner.decode(), *record[2:]))
    (again,) = repeats(read(body_of([hostile]), layout_cache))
    assert isinstance(again, PromptStart)
    assert again.prompt_id == inner.decode()


def test_a_time_that_is_not_accepted_is_rejected_by_the_slow_path():
    record: Record = (("agent.guard.prompt.start", {}), "p", None, NOW_NS, {})
    layout_cache = LayoutCache()
    read(body_of([message_of(record)]), layout_cache)
    for time_ns in (1, NOW_NS - limits.OLDEST_NS - 1, NOW_NS + limits.NEWEST_NS + 1):
        late = body_of([message_of((*record[:3], time_ns, {}))])
        found = read(late, layout_cache)
        assert found is not None
        assert (found.repeated, len(found.rejected)) == ((), 1)
        check(found, read(late))


def test_the_first_time_that_is_set_holds():
    record: Record = (
        ("agent.guard.prompt.start", {}),
        "p",
        None,
        0,
        {"observed_time_unix_nano": NOW_NS},
    )
    layout_cache = LayoutCache()
    read(body_of([message_of(record)]), layout_cache)
    (again,) = repeats(read(body_of([message_of(record)]), layout_cache))
    assert isinstance(again, PromptStart)
    assert again.time_ns == NOW_NS
    # a time that is written as zero, in the place of one that was set
    both = message_of((*record[:3], NOW_NS - 5, {"observed_time_unix_nano": NOW_NS}))
    read(body_of([both]), layout_cache)
    unset = body_of([both.replace(pack("<Q", NOW_NS - 5), bytes(8))])
    check(read(unset, layout_cache), read(unset))


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        pytest.param({"file.path": "/a"}, {}, id="a deny-listed key"),
        pytest.param({}, {"body": {"string_value": "the text of the user"}}, id="a body"),
        pytest.param({"note": "x" * 200}, {}, id="a long text"),
    ],
)
def test_a_record_with_content_always_takes_the_slow_path(attributes, fields):
    body = log_request(TRANSITION | attributes, **fields).SerializeToString()
    layout_cache = LayoutCache()
    for _ in range(2):
        found = read(body, layout_cache)
        assert found is not None
        (record,) = found.records
        assert isinstance(record, Transition)
        assert record.deny_listed or record.has_body


def test_repeated_records_without_an_id_have_those_of_their_resource():
    assignment_id = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
    resource = {**RESOURCE, contract.ASSIGNMENT_ID: assignment_id}
    plain, assigned = (
        log_request(
            {contract.PROMPT_ID: "p"}, event="agent.guard.prompt.start", resource=attributes
        )
        for attributes in (RESOURCE, resource)
    )
    layout_cache = LayoutCache()
    read(plain.SerializeToString(), layout_cache)
    ids = []
    for request in (assigned, plain):
        (again,) = repeats(read(request.SerializeToString(), layout_cache))
        assert isinstance(again, PromptStart)
        ids.append(again.assignment_ids)
    assert ids == [(assignment_id,), ()]


def test_the_fast_path_rejects_records_of_a_resource_without_a_version_too():
    attributes = {contract.PROMPT_ID: "p"}
    complete = log_request(attributes, event="agent.guard.prompt.start").SerializeToString()
    nameless = {key: value for key, value in RESOURCE.items() if key != "service.version"}
    bare = log_request(
        attributes, event="agent.guard.prompt.start", resource=nameless
    ).SerializeToString()
    layout_cache = LayoutCache()
    read(complete, layout_cache)
    found = read(bare, layout_cache)
    assert found is not None
    assert [rejection.reason for rejection in found.rejected] == ["version_missing"]
    check(found, read(bare))


def test_the_cache_is_bounded_whatever_is_sent():
    layout_cache = LayoutCache()
    numbered = ({**TRANSITION, "agent.guard.sequence": at} for at in range(300))
    event = "agent.guard.transition"
    messages = [message_of(((event, attributes), "p", None, NOW_NS, {})) for attributes in numbered]
    for _ in range(2):
        read(body_of(messages), layout_cache)
    assert len(repeats(read(body_of(messages), layout_cache))) == 300
    few = LayoutCache(remembered_bytes=40_000)
    for message in messages:
        read(body_of([message]), few)
    assert 0 < len(repeats(read(body_of(messages), few))) < 20


def test_few_layouts_of_records_that_never_repeat_are_added():
    layout_cache = LayoutCache()
    numbered = ({**TRANSITION, "agent.guard.sequence": at} for at in range(2000))
    event = "agent.guard.transition"
    messages = [message_of(((event, attributes), "p", None, NOW_NS, {})) for attributes in numbered]
    for message in messages:
        assert repeats(read(body_of([message]), layout_cache)) == []
    added = len(repeats(read(body_of(messages), layout_cache)))
    assert 512 <= added < 700
