"""Calls for the tests of the call guards: short constructors, and strategies."""

import functools
from collections.abc import Iterable

from hypothesis import strategies as st

from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import (
    BatchProposed,
    DuplicateCallId,
    DuplicateCallIdStep,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
)
from guardwave.reducer.guards.duplicate_call_id import Event as DuplicateEvent
from guardwave.reducer.guards.duplicate_call_id import reduce as reduce_duplicate
from guardwave.reducer.guards.identical_call import (
    BatchSettled,
    Budget,
    CallsProposed,
    IdenticalCall,
    IdenticalCallStep,
    RunStarted,
    TurnStarted,
)
from guardwave.reducer.guards.identical_call import Event as IdenticalEvent
from guardwave.reducer.guards.identical_call import reduce as reduce_identical


def call(call_id: str | None = "a", command: str = "ls", *, tool: str = "shell") -> ToolCall:
    """Return a call; two with the same command are the same call."""
    return ToolCall.of(call_id, tool, {"command": command})


def unreadable(call_id: str | None = "a") -> ToolCall:
    """Return a call whose arguments nobody could read."""
    return ToolCall(call_id, "shell", None)


@functools.cache
def _known(call_id: str | None, command: str) -> ToolCall:
    return call(call_id, command)


# Few ids and commands, so that most sequences repeat some; one id looks like a suffixed one.
ids = st.sampled_from(["a", "b", "a__dup_2", "call_gen_1", "", None])
calls = st.builds(_known, ids, st.sampled_from(["ls", "pwd"])) | st.builds(unreadable, ids)
responses = st.lists(calls, max_size=3).map(tuple)
batches = st.builds(BatchProposed, st.lists(responses, max_size=2).map(tuple))
histories = st.builds(
    HistorySeeded, st.lists(st.builds(HistoryCall, calls, st.booleans()), max_size=3).map(tuple)
)
duplicate_events = batches | batches | batches | histories | st.just(PromptStarted())
duplicate_sessions = st.lists(duplicate_events, max_size=8)

evidence = st.dictionaries(
    st.sampled_from(["a", "b"]), st.sampled_from(["p", "q", "", None]), max_size=2
)
identical_events = st.one_of(
    st.builds(TurnStarted, st.sampled_from([*Budget, Budget.NONE, Budget.NONE, Budget.NONE])),
    st.builds(CallsProposed, responses),
    st.builds(CallsProposed, responses),
    st.builds(BatchSettled, evidence),
    st.just(RunStarted()),
)
identical_runs = st.lists(identical_events, max_size=16)


def session(state: DuplicateCallId, events: Iterable[DuplicateEvent]) -> list[DuplicateCallIdStep]:
    """Return each step of a session."""
    steps = []
    for event in events:
        steps.append(reduce_duplicate(state, event))
        state = steps[-1].state
    return steps


def run_of(state: IdenticalCall, events: Iterable[IdenticalEvent]) -> list[IdenticalCallStep]:
    """Return each step of a run."""
    steps = []
    for event in events:
        steps.append(reduce_identical(state, event))
        state = steps[-1].state
    return steps
