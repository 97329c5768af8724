"""A record that is as an earlier one was but for its holes adds what it would the long way."""

from concurrent.futures import ThreadPoolExecutor
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from control_plane.ingest import accepted
from control_plane.ingest.forms import Forms
from control_plane.ingest.proto_holes import find_holes
from control_plane.ingest.records import PromptEnd, PromptStart, Transition
from control_plane.otlp_door import Encoding
from reducer import contract
from reducer.vocabulary import (
    Mode,
)
from tests.control_plane.ingest.bodies import (
    END,
    NOW_NS,
    RESOURCE,
    TRANSITION,
    log_request,
    recorded,
)
from tests.control_plane.ingest.said_again import (
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
def test_the_short_way_adds_what_the_long_way_adds(messages):
    forms, body = Forms(), body_of(messages)
    long = read(body)
    for _ in range(2):
        check(read(body, forms), long)


@given(st.lists(RECORDS.map(message_of), max_size=3), RECORDS, PROMPT_IDS, TIMES)
def test_what_was_said_of_one_prompt_is_said_of_another(others, record, prompt_id, time_ns):
    event, _, assignment, _, fields = record
    forms = Forms()
    read(body_of([*others, message_of(record)]), forms)
    body = body_of([message_of((event, prompt_id, assignment, time_ns, fields)), *others])
    check(read(body, forms), read(body))


@given(st.data(), st.lists(RECORDS.map(message_of), min_size=1, max_size=3))
def test_whatever_bytes_are_changed_both_ways_read_the_same(data, messages):
    """What stands in a hole may look like a tag, and what looks like another record be none."""
    forms = Forms()
    for _ in range(3):
        body = body_of(messages)
        check(read(body, forms), read(body))
        messages = [data.draw(changed(message)) for message in messages]


# tags of texts, attributes and integers, the ends of varints, and what is no UTF-8
ODD_BYTES = st.sampled_from(b"\x00\x01\x0a\x12\x18\x32\x7f\x80\xc3\xff~x")


@st.composite
def changed(draw, message: bytes) -> bytes:
    """The same record with bytes of a hole, or any, changed to others."""
    holes = find_holes(message, is_end=True) or ()
    inside = [at for hole in holes for at in range(hole.start, hole.end) if at < len(message)]
    anywhere = st.integers(0, len(message) - 1)
    places = st.one_of(*[st.sampled_from(inside)] * 2, anywhere) if inside else anywhere
    found = bytearray(message)
    for at in draw(st.lists(places, max_size=4)):
        found[at] = draw(ODD_BYTES | st.integers(0, 255))
    return bytes(found)


SHORT_WAY = {
    name: found.body
    for name, found in recorded().items()
    if found.is_logs and found.encoding is Encoding.PROTOBUF
}


@pytest.mark.parametrize("name", SHORT_WAY)
def test_a_recorded_body_adds_the_same_the_short_way(name):
    for body in (SHORT_WAY[name], settled(SHORT_WAY[name])):
        forms = Forms()
        for _ in range(2):
            check(read(body, forms), read(body))


def test_recorded_bodies_in_any_order_share_their_forms_and_read_the_same():
    bodies = [body for each in SHORT_WAY.values() for body in (each, settled(each))]
    forms = Forms()
    for body in [*bodies, *reversed(bodies)]:
        check(read(body, forms), read(body))


def test_threads_that_share_forms_read_what_each_would_alone():
    bodies = list(SHORT_WAY.values())
    # few are remembered, so that they are forgotten under the threads' hands
    forms = Forms(remembered_bytes=20_000)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda body: read(body, forms), bodies * 8))
    for body, short in zip(bodies * 8, found, strict=True):
        check(short, read(body))


def test_recorded_transitions_and_ends_take_the_short_way():
    early, forms = recorded()["logs_pb_0.pb"].body, Forms()
    body = settled(early)
    read(body, forms)
    kinds = {type(each) for each in repeats(read(body, forms))}
    assert kinds >= {Transition, PromptEnd}
    assert repeats(read(early, forms)) == []


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
            id="an end with numbers of its own",
        ),
    ],
)
def test_what_was_said_before_takes_the_short_way_whoever_says_it(event, first, later):
    ids = [issued(GUARDS[0], owner, Mode.SHADOW) for owner in OWNERS]
    name = f"agent.guard.{event}"
    messages = [
        message_of(((name, first), "p-1", ids[0], NOW_NS, {"trace_id": b"a" * 16})),
        message_of(((name, later), "p-2", ids[1], NOW_NS - 9, {"trace_id": b"b" * 16})),
    ]
    forms = Forms()
    assert repeats(read(body_of(messages[:1]), forms)) == []
    (again,) = repeats(read(body_of(messages[1:]), forms))
    long = read(body_of(messages[1:]))
    assert long is not None
    assert (again,) == long.records


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(b"\x82\x00", id="more bytes than the number needs"),
        pytest.param(b"\x82\x82", id="a number that does not end where its field does"),
        pytest.param(b"\x02\x02", id="two numbers"),
    ],
)
def test_a_number_that_is_written_oddly_is_read_as_the_parser_reads_it(written):
    record: Record = (
        ("agent.guard.prompt.end", {**END, "agent.guard.prompt.turns": 300}),
        "p",
        None,
        NOW_NS,
        {},
    )
    message, forms = message_of(record), Forms()
    read(body_of([message]), forms)
    odd = body_of([message.replace(b"\x18\xac\x02", b"\x18" + written)])
    check(read(odd, forms), read(odd))


def test_a_prompt_id_that_looks_like_an_attribute_is_a_prompt_id():
    inner = b"\x32\x0a\x0a\x04abcd\x12\x02\x18\x01"
    record: Record = (("agent.guard.prompt.start", {}), "x" * len(inner), None, NOW_NS, {})
    forms = Forms()
    read(body_of([message_of(record)]), forms)
    hostile = message_of((record[0], inner.decode(), *record[2:]))
    (again,) = repeats(read(body_of([hostile]), forms))
    assert isinstance(again, PromptStart)
    assert again.prompt_id == inner.decode()


def test_a_time_that_is_not_accepted_is_refused_the_long_way():
    record: Record = (("agent.guard.prompt.start", {}), "p", None, NOW_NS, {})
    forms = Forms()
    read(body_of([message_of(record)]), forms)
    for time_ns in (1, NOW_NS - accepted.OLDEST_NS - 1, NOW_NS + accepted.NEWEST_NS + 1):
        late = body_of([message_of((*record[:3], time_ns, {}))])
        found = read(late, forms)
        assert found is not None
        assert (found.repeated, len(found.rejected)) == ((), 1)
        check(found, read(late))


def test_of_two_times_the_first_that_is_set_holds():
    record: Record = (
        ("agent.guard.prompt.start", {}),
        "p",
        None,
        0,
        {"observed_time_unix_nano": NOW_NS},
    )
    forms = Forms()
    read(body_of([message_of(record)]), forms)
    (again,) = repeats(read(body_of([message_of(record)]), forms))
    assert isinstance(again, PromptStart)
    assert again.time_ns == NOW_NS
    # a time that is written although it is unset, in the place of one that was set
    both = message_of((*record[:3], NOW_NS - 5, {"observed_time_unix_nano": NOW_NS}))
    read(body_of([both]), forms)
    unset = body_of([both.replace(pack("<Q", NOW_NS - 5), bytes(8))])
    check(read(unset, forms), read(unset))


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        pytest.param({"file.path": "/a"}, {}, id="a deny-listed key"),
        pytest.param({}, {"body": {"string_value": "what the user said"}}, id="a body"),
        pytest.param({"note": "x" * 200}, {}, id="a long text"),
    ],
)
def test_a_record_with_content_always_goes_the_long_way(attributes, fields):
    body = log_request(TRANSITION | attributes, **fields).SerializeToString()
    forms = Forms()
    for _ in range(2):
        found = read(body, forms)
        assert found is not None
        (record,) = found.records
        assert isinstance(record, Transition)
        assert record.deny_listed or record.has_body


def test_a_resource_vouches_for_the_repetitions_that_name_no_id():
    vouching = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
    resource = {**RESOURCE, contract.ASSIGNMENT_ID: vouching}
    plain, vouched = (
        log_request({contract.PROMPT_ID: "p"}, event="agent.guard.prompt.start", resource=each)
        for each in (RESOURCE, resource)
    )
    forms = Forms()
    read(plain.SerializeToString(), forms)
    ids = []
    for each in (vouched, plain):
        (again,) = repeats(read(each.SerializeToString(), forms))
        assert isinstance(again, PromptStart)
        ids.append(again.assignment_ids)
    assert ids == [(vouching,), ()]


def test_records_of_a_resource_without_a_version_are_refused_the_short_way_too():
    attributes = {contract.PROMPT_ID: "p"}
    told = log_request(attributes, event="agent.guard.prompt.start").SerializeToString()
    nameless = {key: value for key, value in RESOURCE.items() if key != "service.version"}
    bare = log_request(
        attributes, event="agent.guard.prompt.start", resource=nameless
    ).SerializeToString()
    forms = Forms()
    read(told, forms)
    found = read(bare, forms)
    assert found is not None
    assert [each.reason for each in found.rejected] == ["version_missing"]
    check(found, read(bare))


def test_what_is_kept_is_bounded_whatever_is_sent():
    forms = Forms()
    numbered = ({**TRANSITION, "agent.guard.sequence": at} for at in range(300))
    event = "agent.guard.transition"
    said = [message_of(((event, told), "p", None, NOW_NS, {})) for told in numbered]
    for _ in range(2):
        read(body_of(said), forms)
    assert len(repeats(read(body_of(said), forms))) == 300
    few = Forms(remembered_bytes=40_000)
    for message in said:
        read(body_of([message]), few)
    assert 0 < len(repeats(read(body_of(said), few))) < 20


def test_of_records_that_never_repeat_few_are_learned():
    forms = Forms()
    numbered = ({**TRANSITION, "agent.guard.sequence": at} for at in range(2000))
    event = "agent.guard.transition"
    said = [message_of(((event, told), "p", None, NOW_NS, {})) for told in numbered]
    for message in said:
        assert repeats(read(body_of([message]), forms)) == []
    learned = len(repeats(read(body_of(said), forms)))
    assert 512 <= learned < 700
