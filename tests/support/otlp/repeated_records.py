"""Repeated log records: their strategies, and a check that fast path and slow path agree."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from guardwave.control_plane.commands.rollback import FoundViolation
from guardwave.control_plane.ingest.contract.limits import sender_clock
from guardwave.control_plane.ingest.decode import protobuf
from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.fast_path.layout_cache import LayoutCache, LayoutMatcher
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.ingest.reading import DecodedRequest, RequestContext, read_logs
from guardwave.control_plane.ingest.wire.body import BadBody
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EventValue,
    PromptEvents,
    SharedAttributes,
)
from guardwave.control_plane.stores.evidence.delta.request import Event, PromptEvent
from guardwave.reducer import contract
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.vocabulary import (
    Cohort,
    Decision,
    ExecutionStatus,
    Mode,
    Outcome,
    ResetReason,
    TerminalStatus,
)
from tests.support.otlp.bodies import LIMITS, NOW_NS, RESOURCE, log_request
from tests.support.reported_prompts import rows_of

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
    """Return a record as protobuf writes it.

    The ids lie side by side, or with the attributes between them, one before the other: exporters
    write attributes in the order in which hosts set them.
    """
    (event, attributes), prompt_id, assignment, time_ns, others = record
    prompt: dict[str, Value] = {contract.PROMPT_ID: prompt_id}
    ids: dict[str, Value] = {} if assignment is None else {contract.ASSIGNMENT_ID: assignment}
    orders = ((attributes, prompt, ids), (prompt, attributes, ids), (ids, attributes, prompt))
    attributes_in_order = dict(pair for part in orders[len(others) % 3] for pair in part.items())
    request = log_request(attributes_in_order, event=event, time_unix_nano=time_ns, **others)
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
    """Return a field of the wire type of texts and messages."""
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes((size & 0x7F | 0x80,))
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + content


def read(
    body: bytes, layout_cache: LayoutCache | None = None, *, now_ns: int = NOW_NS
) -> DecodedRequest | None:
    """Read a body with the fast path, or without a cache; None when it is no message."""
    layouts = None if layout_cache is None else LayoutMatcher(layout_cache, now_ns, sender_clock)
    try:
        batches = protobuf.decode_logs(body, limits=LIMITS, layouts=layouts)
    except BadBody:
        return None
    return read_logs(batches, RequestContext("internal", now_ns, layout_cache=layout_cache))


def all_records(request: DecodedRequest) -> list[object]:
    return sorted([*repeats(request), *request.records], key=repr)


def events_of(event: object) -> list[object]:
    """Return one event as the store gets it, or the events of a prompt."""
    match event:
        case PromptEvents():
            return [_event(event.prompt, *row) for row in rows_of(event)]
        case PromptEvent():
            return events_of(PromptEvents.of(event.prompt, [event.row()]))
        case _:
            return [event]


def _event(prompt, shared: SharedAttributes, token: bytes, values: Sequence[EventValue]) -> object:
    fields = (shared.kind, shared.guards, shared.conforming, shared.health, shared.generation)
    *when, numbers = values
    # False stands for the numbers of the shared attributes
    found = shared.numbers if isinstance(numbers, int) else numbers
    return (prompt, token, *when, *fields, list(found))


def evidence_of(request: DecodedRequest) -> tuple[object, ...]:
    """Return the events, owner activity, violations and rejections of a body."""
    builder = EvidenceBuilder("internal", TAG_KEY, "token")
    repeated = [builder.build_repeated(records) for records in request.repeated]
    prompts = [prompt for built in repeated for prompt in built.prompts]
    events: list[Event] = [prompt_events for prompt_events, _ in prompts]
    active = [owner_activity for _, activity in prompts for owner_activity in activity]
    violations: list[FoundViolation] = []
    rejected: list[str] = []
    remaining = [record for built in repeated for record in built.remaining]
    for record in [*remaining, *request.records]:
        try:
            delta = builder.build(record)
        except ItemRejected as error:
            rejected.append(repr(error.rejection))
        else:
            events += delta.events
            active += delta.activity
            violations += delta.violations
    with_prompts = {activity for activity in active if activity.is_of_prompt}
    owners = with_prompts | {
        activity for activity in active if activity._replace(is_of_prompt=True) not in with_prompts
    }
    every = Counter(repr(found) for event in events for found in events_of(event))
    return every, owners, Counter(map(repr, violations)), Counter(rejected)


def check(fast: DecodedRequest | None, slow: DecodedRequest | None) -> None:
    """Assert that the fast path gives what the slow path gives."""
    if fast is None or slow is None:
        assert fast is slow
        return
    assert repr(all_records(fast)) == repr(all_records(slow))
    assert sorted(map(repr, fast.rejected)) == sorted(map(repr, slow.rejected))
    assert fast.ignored_by_reason == slow.ignored_by_reason
    assert fast.dropped_attributes == slow.dropped_attributes
    assert evidence_of(fast) == evidence_of(slow)


def repeats(request: DecodedRequest | None) -> list[object]:
    """Return the records that took the fast path."""
    assert request is not None
    return [
        repeated.expand(batch, at)
        for repeated in request.repeated
        for batch in repeated.record_batches
        for at in range(len(batch.templates))
    ]
