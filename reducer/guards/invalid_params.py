"""The limit of calls with invalid parameters: a tool asked for wrongly three times in a row.

A limit of the host's own, without a rollout: it is on or it is not there, and reports nothing but
its stop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from reducer.guards.repeated_failure.outcome import Observation
from reducer.guards.snapshot import Document, seal, unseal
from reducer.vocabulary import ExecutionStatus, LoopType, TerminalStatus

PROTECTION = "invalid_tool_params"
SCHEMA = 1
DEFAULT_LIMIT = 3
# Calls of one response were all made before the model saw an error of any of them.
LEAST_BATCHES = 2
# The error type by which a host says that a call never ran because of its parameters.
ERROR_TYPE = "invalid_tool_params"


@dataclass(frozen=True, slots=True)
class InvalidParams:
    """How often in a row the newest tool was asked for wrongly, within one prompt.

    `batches` are those the row was seen in. A `limit` of None switches the protection off. Once
    the turn was stopped (`is_latched`) nothing more is counted.
    """

    limit: int | None = DEFAULT_LIMIT
    tool: str | None = None
    count: int = 0
    batches: int = 0
    is_latched: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ValueError(
                f"limit is {self.limit!r}; give a whole number of calls from 1, or None for none"
            )


class InvalidParamsStep(NamedTuple):
    """The state after a batch, and the reason of a stop, if this batch is one."""

    state: InvalidParams
    loop_type: LoopType | None = None


def reduce(state: InvalidParams, observations: Iterable[Observation]) -> InvalidParamsStep:
    """Return the step after one settled batch, its calls in the order they were asked for.

    Counted are calls that ended in an error of type `invalid_tool_params` without having started.
    Every other call ends the row, and so does the same fault of another tool, which begins one of
    its own. Calls that were answered without running say nothing. A row of the limit stops once
    it spans two batches: before that the model has not seen what it does wrong.
    """
    if state.is_latched or state.limit is None:
        return InvalidParamsStep(state)
    tool, count, batches = state.tool, state.count, state.batches
    earlier = batches
    for seen in observations:
        if seen.is_provider_duplicate:
            continue
        if not _is_invalid(seen):
            tool, count, batches = None, 0, 0
            continue
        if seen.tool != tool:
            tool, count, earlier = seen.tool, 0, 0
        count += 1
        batches = earlier + 1
        if count >= state.limit and batches >= LEAST_BATCHES:
            stopped = InvalidParams(state.limit, tool, count, batches, is_latched=True)
            return InvalidParamsStep(stopped, LoopType.INVALID_TOOL_PARAMS)
    return InvalidParamsStep(InvalidParams(state.limit, tool, count, batches))


def interrupted(state: InvalidParams) -> InvalidParams:
    """Return the state after a batch in which the person spoke: the row ends, a stop stands."""
    return state if state.is_latched else InvalidParams(state.limit)


def dump(state: InvalidParams) -> Document:
    """Return the state as plain JSON values."""
    fields: Document = {
        "limit": state.limit,
        "tool": state.tool,
        "count": state.count,
        "batches": state.batches,
        "is_latched": state.is_latched,
    }
    return seal(PROTECTION, SCHEMA, fields)


def restore(document: object, *, limit: int | None = DEFAULT_LIMIT) -> InvalidParams:
    """Return the state that was dumped; a newer schema's begins anew with `limit`.

    Raises:
        ValueError: the document is damaged or another protection's; naming the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return InvalidParams(limit)
    written = None if snapshot.is_null("limit") else snapshot.whole("limit")
    if written == 0:
        raise snapshot.damaged("limit", "a whole number from 1, or null")
    state = InvalidParams(
        written,
        snapshot.optional_text("tool"),
        snapshot.whole("count"),
        snapshot.whole("batches"),
        snapshot.flag("is_latched"),
    )
    if (state.tool is None) != (state.count == 0):
        raise snapshot.damaged("tool", "null with a count of 0, and a text with any other")
    if (state.batches == 0) != (state.count == 0) or state.batches > state.count:
        raise snapshot.damaged("batches", "from 1 to count, and 0 with a count of 0")
    return state


def _is_invalid(seen: Observation) -> bool:
    return (
        seen.tool is not None
        and bool(seen.tool.strip())
        and seen.terminal_status == TerminalStatus.ERROR
        and seen.execution_status == ExecutionStatus.NOT_STARTED
        and seen.error_type == ERROR_TYPE
    )
