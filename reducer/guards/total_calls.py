"""The broadest limit: so many tool calls in one prompt, whatever they are.

A limit of the host's own, without a rollout: it is on or it is not there, and reports nothing but
its stop.
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
    """How many tool calls a prompt was let through, and how many it may have; None is no limit."""

    limit: int | None = DEFAULT_LIMIT
    count: int = 0
    is_latched: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ValueError(
                f"limit is {self.limit!r}; give a whole number of calls from 1, or None for none"
            )


class TotalCallsStep(NamedTuple):
    """The state after a batch was proposed, and the reason of a stop, if it is one."""

    state: TotalCalls
    loop_type: LoopType | None = None


def reduce(state: TotalCalls, proposed: int) -> TotalCallsStep:
    """Return the step before a batch of so many calls runs: beyond the limit none of them does."""
    if state.is_latched:
        return TotalCallsStep(state)
    count = state.count + proposed
    if state.limit is not None and count > state.limit:
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


def restore(document: object, *, limit: int | None = DEFAULT_LIMIT) -> TotalCalls:
    """Return the state that was dumped; a newer schema's begins anew with `limit`.

    Raises:
        ValueError: the document is damaged or another protection's; naming the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return TotalCalls(limit)
    written = None if snapshot.is_null("limit") else snapshot.whole("limit")
    if written == 0:
        raise snapshot.damaged("limit", "a whole number from 1, or null")
    count = snapshot.whole("count")
    if written is not None and count > written:
        raise snapshot.damaged("count", "no more than limit")
    return TotalCalls(written, count, snapshot.flag("is_latched"))
