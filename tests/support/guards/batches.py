"""Batches of the repeated-failure guard: short constructors, and strategies."""

from collections.abc import Sequence

from hypothesis import strategies as st

from guardwave.reducer.guards.repeated_failure import (
    Observation,
    PromptStarted,
    RepeatedFailure,
    SettledBatch,
    reduce,
)
from guardwave.reducer.vocabulary import Mode, Route


def observe(
    terminal: str | None = "error",
    execution: str | None = "error",
    *,
    tool: str | None = "fetch",
    error_type: str | None = "timeout",
    tool_type: str | None = "native",
    duplicate: bool = False,
) -> Observation:
    """Return the end of one call, by default a failure that counts."""
    return Observation(
        "c1",
        tool,
        tool_type=tool_type,
        terminal_status=terminal,
        execution_status=execution,
        error_type=error_type,
        is_provider_duplicate=duplicate,
    )


def batch(*observations: Observation, complete: bool = True, **flags: bool) -> SettledBatch:
    """Return a batch, by default complete and without input of people."""
    settings = {"is_input_reliable": True} | flags
    return SettledBatch(observations, is_complete=complete, **settings)


def failures(count: int, **fields: str | None) -> SettledBatch:
    """Return a batch of equal failures."""
    return batch(*(observe(**fields) for _ in range(count)))  # type: ignore[arg-type]  # texts only


def after(*events: SettledBatch | PromptStarted, mode: Mode = Mode.ENFORCE) -> RepeatedFailure:
    """Return the guard's state after events that began with a fresh prompt."""
    return state_after(events, mode, Route.INTERACTIVE_FOREGROUND)


statuses = st.sampled_from(["success", "error", "cancelled", "not_started", "unknown", "new", None])
observations = st.builds(
    Observation,
    st.none() | st.text(max_size=3),
    st.sampled_from(["fetch", "fetch", "shell", " ", None]),
    tool_type=st.sampled_from(["native", "mcp", "plugin", None]),
    terminal_status=statuses,
    execution_status=statuses,
    error_type=st.sampled_from(
        ["timeout", "timeout", "not_found", "a path /x", "unknown", "", None]
    ),
    is_provider_duplicate=st.booleans(),
)
counting = st.builds(
    lambda count, tool: failures(count, tool=tool),
    st.integers(1, 9),
    st.sampled_from(["fetch", "fetch", "fetch", "shell"]),
)
wild_batches = st.builds(
    SettledBatch,
    st.lists(observations, max_size=5).map(tuple),
    is_complete=st.sampled_from([True, True, True, False]),
    is_input_reliable=st.sampled_from([True, True, True, False]),
    has_external_input=st.sampled_from([False, False, False, True]),
    has_queued_prompt=st.sampled_from([False, False, False, True]),
)
# Streaks come often, or hardly a history would be warned and latched.
batches = st.integers(0, 9).flatmap(lambda kind: counting if kind < 7 else wild_batches)
events: st.SearchStrategy[SettledBatch | PromptStarted] = st.integers(0, 19).flatmap(
    lambda kind: st.just(PromptStarted()) if kind == 0 else batches
)
histories: st.SearchStrategy[Sequence[SettledBatch | PromptStarted]] = st.lists(events, max_size=14)


def state_after(
    events: Sequence[SettledBatch | PromptStarted], mode: Mode, route: Route
) -> RepeatedFailure:
    """Return the guard's state after a history."""
    state = RepeatedFailure.start(mode, route=route)
    for event in events:
        state = reduce(state, event).state
    return state


states = st.builds(
    state_after,
    histories,
    st.sampled_from([*Mode, Mode.ENFORCE, Mode.ENFORCE]),
    st.sampled_from([Route.INTERACTIVE_FOREGROUND] * 9 + [Route.CRON]),
)
