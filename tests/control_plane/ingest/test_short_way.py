"""A record that repeats an earlier one's words adds what it would have added the long way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.ingest import contract
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.reading import Receiving, read_logs
from control_plane.ingest.records import PromptStart, Repetition, Transition
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wire import Encoding
from control_plane.ingest.wordings import Wordings
from reducer.rollout.assignment import Assignment, issue
from reducer.vocabulary import Cohort, Decision, ExecutionStatus, Mode, ResetReason, TerminalStatus
from tests.control_plane.ingest.bodies import (
    END,
    NOW_NS,
    RESOURCE,
    TRANSITION,
    decode_logs,
    log_request,
    recorded,
)

TAG_KEY = b"k" * 32
GUARDS = ("repeated_tool_failure", "identical_call")
OWNERS = ("AAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBB")


def issued(guard: str, owner: str, mode: Mode) -> str:
    cohort = Cohort.ENFORCED if mode is Mode.ENFORCE else Cohort.CONTROL
    return issue(TAG_KEY, "internal", Assignment(guard, owner, 2, cohort, mode, 3))


IDS = st.one_of(
    st.builds(issued, st.sampled_from(GUARDS), st.sampled_from(OWNERS), st.sampled_from(Mode)),
    st.just("a1.forged"),
)
ASSIGNMENTS = st.one_of(
    IDS, st.lists(IDS, max_size=3).map(tuple), st.lists(IDS, max_size=3).map("~".join), st.none()
)
PROMPT_IDS = st.one_of(
    st.sampled_from(["p-1", "p-2", "", "é", "x" * 128, "x" * 129, "é" * 65]), st.integers(0, 1)
)
TIMES = st.sampled_from([NOW_NS, NOW_NS - 1, NOW_NS - 3_600_000_000_000, 1, 0])
# few words, so that records repeat each other
TRANSITIONS = st.fixed_dictionaries(
    {
        "agent.guard.name": st.sampled_from([*GUARDS, "other_guard"]),
        "agent.guard.sequence": st.integers(0, 2),
        "agent.guard.mode": st.sampled_from(["shadow", "enforce"]),
        "agent.guard.decision": st.sampled_from([Decision.TRACKED.value, Decision.STOPPED.value]),
    },
    optional={
        "agent.guard.reset.reason": st.sampled_from([word.value for word in ResetReason]),
        "agent.guard.terminal.status": st.sampled_from([word.value for word in TerminalStatus]),
        "agent.guard.execution.status": st.sampled_from([word.value for word in ExecutionStatus]),
        "file.path": st.just("/a/b"),
        "later": st.just("x"),
    },
)
STARTS = st.fixed_dictionaries(
    {}, optional={"agent.guard.route": st.sampled_from(["cron", "interactive"]), "user": st.just(1)}
)
EVENTS = st.one_of(
    st.tuples(st.just("agent.guard.transition"), TRANSITIONS),
    st.tuples(st.just("agent.guard.prompt.start"), STARTS),
    st.tuples(st.just("agent.guard.prompt.end"), st.just(END)),
)
RECORDS = st.tuples(EVENTS, PROMPT_IDS, ASSIGNMENTS, TIMES)


def body_of(records) -> bytes:
    request = log_request({}, event="unknown")
    (scope,) = request.resource_logs[0].scope_logs
    for (event, attributes), prompt_id, assignment, time_ns in records:
        told = {**attributes, contract.PROMPT_ID: prompt_id}
        if assignment is not None:
            told[contract.ASSIGNMENT_ID] = assignment
        other = log_request(told, event=event, time_unix_nano=time_ns)
        scope.log_records.append(other.resource_logs[0].scope_logs[0].log_records[0])
    return request.SerializeToString()


def booked(decoded, bookkeeper: Bookkeeper) -> list[object]:
    """What every record adds, as the store is told, or why it is refused."""
    told: list[object] = []
    for record in decoded.records:
        try:
            added = bookkeeper.book(record)
        except Refusal as refusal:
            told.append(refusal.rejected)
        else:
            packed = [event.packed() for event in added.events]
            told.append((packed, added.sighting, added.violations))
    return told


def check(body: bytes, *, now_ns: int = NOW_NS) -> list[object]:
    """Read the body the long way and twice the short way; return the records of the last."""
    batches = decode_logs(body, Encoding.PROTOBUF)
    bookkeeper = Bookkeeper("internal", TAG_KEY, "token")
    long = read_logs(batches, Receiving("internal", now_ns))
    wordings = Wordings()
    read_logs(batches, Receiving("internal", now_ns, wordings=wordings))
    short = read_logs(batches, Receiving("internal", now_ns, wordings=wordings))
    spelt = [each.spelt_out() if isinstance(each, Repetition) else each for each in short.records]
    assert spelt == list(long.records)
    assert (short.rejected, short.exposed) == (long.rejected, long.exposed)
    assert short.ignored_by_reason == long.ignored_by_reason
    assert short.dropped_attributes == long.dropped_attributes
    assert booked(short, bookkeeper) == booked(long, bookkeeper)
    return list(short.records)


@given(st.lists(RECORDS, max_size=8))
def test_the_short_way_adds_what_the_long_way_adds(records):
    check(body_of(records))


@pytest.mark.parametrize("name", [name for name, found in recorded().items() if found.is_logs])
def test_a_recorded_body_adds_the_same_the_short_way(name):
    found = recorded()[name]
    if found.encoding is Encoding.PROTOBUF:
        check(found.body)


def test_recorded_transitions_and_starts_take_the_short_way():
    assert any(isinstance(each, Repetition) for each in check(recorded()["logs_pb_0.pb"].body))


def test_what_was_said_before_is_a_repetition_whoever_says_it():
    said = [
        (
            ("agent.guard.transition", TRANSITION),
            prompt,
            issued(GUARDS[0], owner, Mode.SHADOW),
            time,
        )
        for prompt, owner, time in (("p-1", OWNERS[0], NOW_NS), ("p-2", OWNERS[1], NOW_NS - 9))
    ]
    wordings = Wordings()
    batches = decode_logs(body_of(said), Encoding.PROTOBUF)
    decoded = read_logs(batches, Receiving("internal", NOW_NS, wordings=wordings))
    first, second = decoded.records
    assert isinstance(first, Transition)
    assert isinstance(second, Repetition)
    assert second.spelt_out().prompt_id == "p-2"


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        pytest.param({"file.path": "/a"}, {}, id="a deny-listed key"),
        pytest.param({}, {"body": {"string_value": "what the user said"}}, id="a body"),
        pytest.param({"note": "x" * 200}, {}, id="a long text"),
    ],
)
def test_a_record_with_content_always_goes_the_long_way(attributes, fields):
    told = TRANSITION | attributes
    wordings = Wordings()
    batches = decode_logs(log_request(told, **fields).SerializeToString(), Encoding.PROTOBUF)
    for _ in range(2):
        (record,) = read_logs(batches, Receiving("internal", NOW_NS, wordings=wordings)).records
        assert isinstance(record, Transition)
        assert record.deny_listed or record.has_body


def test_a_resource_vouches_for_the_repetitions_that_name_no_id():
    vouching = issued(GUARDS[0], OWNERS[0], Mode.SHADOW)
    resource = {**RESOURCE, contract.ASSIGNMENT_ID: vouching}
    request = log_request({contract.PROMPT_ID: "p"}, event="agent.guard.prompt.start")
    plain, vouched = (
        request,
        log_request({contract.PROMPT_ID: "p"}, event="agent.guard.prompt.start", resource=resource),
    )
    wordings = Wordings()
    told = []
    for each in (plain, vouched, plain):
        batches = decode_logs(each.SerializeToString(), Encoding.PROTOBUF)
        (record,) = read_logs(batches, Receiving("internal", NOW_NS, wordings=wordings)).records
        assert isinstance(record, PromptStart | Repetition)
        told.append(record.assignment_ids)
    assert told == [(), (vouching,), ()]
