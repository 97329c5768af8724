"""Evidence of any accepted record: no later stage fails on the content of a request."""

from contextlib import suppress

from hypothesis import event, example, given
from hypothesis import strategies as st

from guardwave.control_plane.ingest.contract.events import EVENTS
from guardwave.control_plane.ingest.contract.limits import NEWEST_NS, OLDEST_NS
from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.model.otlp_values import (
    KeyValues,
    LogItem,
    ResourceLogs,
    ScopeLogs,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.reducer import contract
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.otlp.bodies import END, NOW_NS, RESOURCE, TRANSITION

KEY = b"k" * 32
ISSUED = [
    issue(KEY, "internal", Assignment(guard, owner * 16, 3, Cohort.ENFORCED, Mode.ENFORCE, 7))
    for guard in ("repeated_tool_failure", "identical_call")
    for owner in "AB"
]
# Enough for a record of any event; an event reads the attributes it knows.
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
keys = st.sampled_from(sorted(set[str]().union(*(kind.allowed for kind in EVENTS.values()))))
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
def test_any_accepted_record_can_be_built_and_packed(item):
    body = [ResourceLogs(RESOURCE, (ScopeLogs(contract.SCOPE, "1", (item,)),))]
    decoded = read_logs(body, RequestContext("internal", NOW_NS))
    builder = EvidenceBuilder("internal", KEY, "producer")
    for record in decoded.records:
        event(type(record).__name__)
        with suppress(ItemRejected):
            delta = builder.build(record)
            for found in (delta, delta.from_untrusted()):
                assert EvidenceBatch(found.events, frozenset(delta.activity)).packed()
