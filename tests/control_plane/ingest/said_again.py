"""Log records that say the same again, read and booked the short way and the long."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from control_plane.commands.rollback import FoundViolation
from control_plane.ingest import otlp_proto
from control_plane.ingest.event_time import sender_clock
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.forms import Forms, Known
from control_plane.ingest.otlp import Value
from control_plane.ingest.reading import Decoded, Receiving, read_logs
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wire import BadBody
from control_plane.stores.evidence_events import Event, PromptEvent
from control_plane.stores.prompt_events import Like, Own, PromptEvents
from reducer import contract
from reducer.rollout.assignment import Assignment, issue
from reducer.vocabulary import (
    Cohort,
    Decision,
    ExecutionStatus,
    Mode,
    Outcome,
    ResetReason,
    TerminalStatus,
)
from tests.control_plane.ingest.bodies import (
    LIMITS,
    NOW_NS,
    RESOURCE,
    log_request,
)
from tests.control_plane.told_prompts import each_of

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
COUNTS = st.sampled_from([0, 1, 2, 127, 128, 300, 70_000, 2**28 - 1, 2**28, 2**31, -1, 2.0, True])
ENDS = st.fixed_dictionaries(
    {"agent.guard.prompt.outcome": st.sampled_from([word.value for word in Outcome])},
    optional={
        "agent.guard.prompt.duration": st.sampled_from(
            [0.0, -0.0, 1.5, 0.0001, 86_400.0, 86_401.0, -1.0, float("nan"), float("inf"), 2]
        ),
        **dict.fromkeys(
            (
                "agent.guard.prompt.turns",
                "agent.guard.prompt.tool_calls",
                "agent.guard.prompt.transitions",
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.output_tokens",
                "agent.guard.usage.input_tokens",
                "agent.guard.usage.output_tokens",
                "agent.guard.calls_after_would_stop",
            ),
            COUNTS,
        ),
    },
)
LOOPS = st.fixed_dictionaries({"agent.guard.loop.type": st.just("identical_tool_call")})
DISRUPTIONS = st.fixed_dictionaries(
    {
        "agent.guard.disruption.kind": st.sampled_from(["retry", "disconnect"]),
        "agent.guard.disruption.offset": st.sampled_from([1.0, 600.0, 601.0]),
    }
)
EVENTS = st.one_of(
    st.tuples(st.just("agent.guard.transition"), TRANSITIONS),
    st.tuples(st.just("agent.guard.prompt.start"), STARTS),
    st.tuples(st.just("agent.guard.prompt.end"), ENDS),
    st.tuples(st.sampled_from(["agent.guard.loop_detected", "other"]), LOOPS),
    st.tuples(st.just("agent.guard.prompt.disruption"), DISRUPTIONS),
)
OTHER_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "observed_time_unix_nano": TIMES,
        "trace_id": st.binary(min_size=16, max_size=16),
        "span_id": st.just(b"\x0a\x01\x01\x32\x04\x0a\x00\x12"),
        "severity_text": st.sampled_from(["INFO", "WARN"]),
        "flags": st.integers(0, 1),
    },
)
RECORDS = st.tuples(EVENTS, PROMPT_IDS, ASSIGNMENTS, TIMES, OTHER_FIELDS)


# Event and attributes, prompt id, assignment ids, time, and further fields of the LogRecord.
Record = tuple[tuple[str, Mapping[str, Value]], Value, Value, int, Mapping[str, object]]


def message_of(record) -> bytes:
    """One record as protobuf writes it.

    The ids lie side by side, or with the attributes between them, one before the other: exporters
    write attributes in the order in which hosts set them.
    """
    (event, attributes), prompt_id, assignment, time_ns, others = record
    prompt: dict[str, Value] = {contract.PROMPT_ID: prompt_id}
    ids: dict[str, Value] = {} if assignment is None else {contract.ASSIGNMENT_ID: assignment}
    orders = ((attributes, prompt, ids), (prompt, attributes, ids), (ids, attributes, prompt))
    told = dict(pair for part in orders[len(others) % 3] for pair in part.items())
    request = log_request(told, event=event, time_unix_nano=time_ns, **others)
    return request.resource_logs[0].scope_logs[0].log_records[0].SerializeToString()


def body_of(messages, *, resource: Mapping[str, Value] = RESOURCE) -> bytes:
    """Return a body of these records, whatever their bytes are."""
    request = log_request({}, resource=resource)
    (scope,) = request.resource_logs[0].scope_logs
    del scope.log_records[:]
    records = b"".join(field(2, message) for message in messages)
    scopes = field(2, scope.SerializeToString() + records)
    sender = field(1, request.resource_logs[0].resource.SerializeToString())
    return field(1, sender + scopes)


def field(number: int, content: bytes) -> bytes:
    """One field of the wire type of texts and messages."""
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes((size & 0x7F | 0x80,))
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + content


def read(body: bytes, forms: Forms | None = None, *, now_ns: int = NOW_NS) -> Decoded | None:
    """Read a body the short way as far as the forms know it; None when it is no message."""
    known = None if forms is None else Known(forms, now_ns, sender_clock)
    try:
        batches = otlp_proto.decode_logs(body, limits=LIMITS, known=known)
    except BadBody:
        return None
    return read_logs(batches, Receiving("internal", now_ns, forms=forms))


def spelt_out(decoded: Decoded) -> list[object]:
    return sorted([*repeats(decoded), *decoded.records], key=repr)


def told(event: object) -> list[object]:
    """One event as the store is told of it, or those of a prompt."""
    match event:
        case PromptEvents():
            return [_told(event.prompt, *each) for each in each_of(event)]
        case PromptEvent():
            return told(PromptEvents.of(event.prompt, [event.booked()]))
        case _:
            return [event]


def _told(prompt, like: Like, token: bytes, own: Sequence[Own]) -> object:
    fields = (like.kind, like.guards, like.conforming, like.health, like.generation)
    *when, numbers = own
    # False is what stands for those of its like
    told = like.numbers if isinstance(numbers, int) else numbers
    return (prompt, token, *when, *fields, list(told))


def booked(decoded: Decoded) -> tuple[object, ...]:
    """What a body adds: events, whom it shows, violations, and what is refused."""
    bookkeeper = Bookkeeper("internal", TAG_KEY, "token")
    rebooked = [bookkeeper.book_runs(each) for each in decoded.repeated]
    prompts = [prompt for each in rebooked for prompt in each.prompts]
    events: list[Event] = [told for told, _ in prompts]
    seen = [sighting for _, sightings in prompts for sighting in sightings]
    violations: list[FoundViolation] = []
    refused: list[str] = []
    for record in [*(left for each in rebooked for left in each.left), *decoded.records]:
        try:
            added = bookkeeper.book(record)
        except Refusal as refusal:
            refused.append(repr(refusal.rejected))
        else:
            events += added.events
            seen += added.sightings
            violations += added.violations
    prompts_of = {each for each in seen if each.is_of_prompt}
    shown = prompts_of | {
        each for each in seen if each._replace(is_of_prompt=True) not in prompts_of
    }
    every = Counter(repr(each) for event in events for each in told(event))
    return every, shown, Counter(map(repr, violations)), Counter(refused)


def check(short: Decoded | None, long: Decoded | None) -> None:
    if short is None or long is None:
        assert short is long
        return
    assert repr(spelt_out(short)) == repr(spelt_out(long))
    assert sorted(map(repr, short.rejected)) == sorted(map(repr, long.rejected))
    assert sorted(map(repr, short.exposed)) == sorted(map(repr, long.exposed))
    assert short.ignored_by_reason == long.ignored_by_reason
    assert short.dropped_attributes == long.dropped_attributes
    assert booked(short) == booked(long)


def repeats(decoded: Decoded | None) -> list[object]:
    """The records that went the short way."""
    assert decoded is not None
    return [
        each.spelt_out(run, at)
        for each in decoded.repeated
        for run in each.runs
        for at in range(len(run.wordings))
    ]
