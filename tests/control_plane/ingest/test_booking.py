"""Whatever the reader accepts can be booked: no later stage may fail on what a host sent."""

from contextlib import suppress

from hypothesis import event, example, given
from hypothesis import strategies as st

from control_plane.ingest.accepted import NEWEST_NS, OLDEST_NS
from control_plane.ingest.events import EVENTS
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.otlp import KeyValues, LogItem, ResourceLogs, ScopeLogs
from control_plane.ingest.reading import Receiving, read_logs
from control_plane.ingest.rejections import Refusal
from control_plane.stores.evidence_events import EvidenceBatch
from reducer import contract
from reducer.rollout.assignment import Assignment, issue
from reducer.vocabulary import Cohort, Mode
from tests.control_plane.ingest.bodies import END, NOW_NS, RESOURCE, TRANSITION

KEY = b"k" * 32
ISSUED = [
    issue(KEY, "internal", Assignment(guard, owner * 16, 3, Cohort.ENFORCED, Mode.ENFORCE, 7))
    for guard in ("repeated_tool_failure", "identical_call")
    for owner in "AB"
]
# Enough for a record of any event; each reads what is its own.
COMMON = {
    **TRANSITION,
    **END,
    contract.DISRUPTION_KIND: "retry",
    contract.DISRUPTION_OFFSET: 20.0,
    contract.LOOP_TYPE: "identical_tool_call",
    contract.FLAG_KEY: "agent.guard.identical_call",
    contract.FLAG_VARIANT: "warn",
}
WORDS = sorted(
    {
        word
        for name, words in vars(contract).items()
        if name.isupper() and isinstance(words, dict)
        for word in words
        if isinstance(word, str)
    }
    | {"lost"}
)
scalars = (
    st.sampled_from(WORDS)
    | st.text(max_size=140)
    | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**53 - 1, 2**53, -1, 2**63 - 1])
    | st.floats()
    | st.booleans()
    | st.none()
    | st.binary(max_size=3)
)
values = (
    scalars
    | st.lists(scalars, max_size=3).map(tuple)
    | st.tuples(st.text(max_size=5), scalars).map(lambda pair: KeyValues((pair,)))
)
keys = st.sampled_from(sorted(set[str]().union(*(each.allowed for each in EVENTS.values()))))
ids = st.lists(st.sampled_from(ISSUED), max_size=3).map(tuple)
items = st.builds(
    lambda name, time_ns, on_record, changed, has_body: LogItem(
        time_ns, 0, name, {**COMMON, contract.ASSIGNMENT_ID: on_record, **changed}, has_body
    ),
    st.sampled_from(sorted(EVENTS)),
    st.integers(NOW_NS - OLDEST_NS, NOW_NS + NEWEST_NS),
    ids,
    st.dictionaries(keys | st.text(max_size=140), values, max_size=4),
    st.booleans(),
)
AN_END = LogItem(NOW_NS, 0, "agent.guard.prompt.end", COMMON, False)


@example(
    AN_END._replace(
        attributes={**COMMON, contract.ASSIGNMENT_ID: ISSUED[0], contract.OUTCOME: "lost"}
    )
)
@given(items)
def test_any_record_that_is_accepted_can_be_booked_and_packed(item):
    body = [ResourceLogs(RESOURCE, (ScopeLogs(contract.SCOPE, "1", (item,)),))]
    decoded = read_logs(body, Receiving("internal", NOW_NS))
    bookkeeper = Bookkeeper("internal", KEY, "producer")
    for record in decoded.records:
        event(type(record).__name__)
        with suppress(Refusal):
            booked = bookkeeper.book(record)
            seen = frozenset() if booked.sighting is None else frozenset({booked.sighting})
            for each in (booked, booked.of_untrusted()):
                assert EvidenceBatch(each.events, seen).packed()
