"""Total limit: the number of tool calls in one prompt, of whatever kind.

This limit has no rollout and no mode: it is on or off, and reports only its stop.
"""

from dataclasses import dataclass
from typing import NamedTuple

from guardwave.reducer.guards.snapshot import Document, seal, unseal
from guardwave.reducer.vocabulary import LoopType

PROTECTION = "total_tool_calls"
SCHEMA = 1
DEFAULT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class TotalCalls:
    """The number of tool calls that ran in a prompt, and its limit; None means no limit."""

    limit: int | None = DEFAULT_LIMIT
    count: int = 0
    is_latched: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ValueError(
                f"limit is {self.limit!r}; give a whole number of calls from 1, or None for none"
            )


class TotalCallsStep(NamedTuple):
    """The state after a proposed batch, and the loop type if the batch stops the turn."""

    state: TotalCalls
    loop_type: LoopType | None = None


def reduce(state: TotalCalls, calls: int) -> TotalCallsStep:
    """Return the step before a batch of this many calls; beyond the limit none of them runs."""
    if state.is_latched:
        return TotalCallsStep(state)
    count = state.count + calls
    if state.limit is not None and count > state.limit:
        latched = TotalCalls(state.limit, state.count, is_latched=True)
        return TotalCallsStep(latched, LoopType.TOTAL_TOOL_CALLS)
    return TotalCallsStep(TotalCalls(state.limit, count))


def dump(state: TotalCalls) -> Document:
    """Return the state as plain JSON values."""
    return seal(
        PROTECTION,
        SCHEMA,
        {"limit": state.limit, "count": state.count, "is_latched": state.is_latched},
    )


def restore(document: object, *, limit: int | None = DEFAULT_LIMIT) -> TotalCalls:
    """Return the dumped state, or a new one with `limit` if a newer schema wrote the document.

    Raises:
        ValueError: the document is damaged or belongs to another protection; it names the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return TotalCalls(limit)
    dumped_limit = None if snapshot.is_null("limit") else snapshot.whole("limit")
    if dumped_limit == 0:
        raise snapshot.damaged("limit", "a whole number from 1, or null")
    count = snapshot.whole("count")
    if dumped_limit is not None and count > dumped_limit:
        raise snapshot.damaged("count", "no more than limit")
    return TotalCalls(dumped_limit, count, snapshot.flag("is_latched"))
