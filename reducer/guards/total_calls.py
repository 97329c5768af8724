"""The broadest limit: so many tool calls in one prompt, whatever they are.

A protection without a rollout: it is on or it is not there, and reports nothing but its stop.
"""

from dataclasses import dataclass
from typing import NamedTuple

from reducer.guards.snapshot import Document, seal, unseal
from reducer.vocabulary import LoopType

PROTECTION = "total_tool_calls"
SCHEMA = 1
DEFAULT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class TotalCalls:
    """How many tool calls a prompt was let through, and how many it may have."""

    limit: int = DEFAULT_LIMIT
    count: int = 0
    is_latched: bool = False

    def __post_init__(self) -> None:
        if type(self.limit) is not int or self.limit < 1:
            raise ValueError(f"limit is {self.limit!r}; give a whole number of calls from 1")


class TotalCallsStep(NamedTuple):
    """The state after a batch was proposed, and the reason of a stop, if it is one."""

    state: TotalCalls
    loop_type: LoopType | None = None


def reduce(state: TotalCalls, proposed: int) -> TotalCallsStep:
    """Return the step before a batch of so many calls runs: beyond the limit none of them does."""
    if state.is_latched:
        return TotalCallsStep(state)
    count = state.count + proposed
    if count > state.limit:
        stopped = TotalCalls(state.limit, state.count, is_latched=True)
        return TotalCallsStep(stopped, LoopType.TOTAL_TOOL_CALLS)
    return TotalCallsStep(TotalCalls(state.limit, count))


def dump(state: TotalCalls) -> Document:
    """Return the state as plain JSON values."""
    return seal(
        PROTECTION,
        SCHEMA,
        {"limit": state.limit, "count": state.count, "is_latched": state.is_latched},
    )


def restore(document: object) -> TotalCalls:
    """Return the state that was dumped; a newer schema's begins anew with the default limit.

    Raises:
        ValueError: the document is damaged or another protection's; naming the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return TotalCalls()
    limit = snapshot.whole("limit")
    if limit < 1:
        raise snapshot.damaged("limit", "a whole number from 1")
    count = snapshot.whole("count")
    if count > limit:
        raise snapshot.damaged("count", "no more than limit")
    return TotalCalls(limit, count, snapshot.flag("is_latched"))
