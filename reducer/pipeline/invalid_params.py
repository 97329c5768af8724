"""Invalid-parameters limit: stops a turn when one tool is called wrongly three times in a row.

This limit has no rollout and no mode: it is on or off, and reports only its stop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from guardwave.reducer.guards.repeated_failure import Observation
from guardwave.reducer.guards.snapshot import Document, seal, unseal
from guardwave.reducer.vocabulary import ExecutionStatus, LoopType, TerminalStatus

PROTECTION = "invalid_tool_params"
SCHEMA = 1
DEFAULT_LIMIT = 3
# The model made all calls of one response before it saw an error of any of them.
LEAST_BATCHES = 2
# The error type with which a host reports that a call never ran because of its parameters.
ERROR_TYPE = "invalid_tool_params"


@dataclass(frozen=True, slots=True)
class InvalidParams:
    """The row of wrong calls of the newest tool, within one prompt.

    `batches` counts the batches of the row. A `limit` of None switches the protection off. Nothing
    is counted after the turn was stopped (`is_latched`).
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
    """The state after a batch, and the loop type if the batch stops the turn."""

    state: InvalidParams
    loop_type: LoopType | None = None


def reduce(state: InvalidParams, observations: Iterable[Observation]) -> InvalidParamsStep:
    """Return the step after one settled batch, its calls in the order of the request.

    A call counts if it ended in an error of type `invalid_tool_params` without having started.
    Every other call ends the row; the same error of another tool begins a new one. Calls that
    were answered without running are ignored. A row of `limit` calls stops the turn only if it
    spans two batches: before that the model has not seen its error.
    """
    if state.is_latched or state.limit is None:
        return InvalidParamsStep(state)
    tool, count, batches = state.tool, state.count, state.batches
    earlier = batches
    for observation in observations:
        if observation.is_provider_duplicate:
            continue
        if not _is_invalid(observation):
            tool, count, batches = None, 0, 0
            continue
        if observation.tool != tool:
            tool, count, earlier = observation.tool, 0, 0
        count += 1
        batches = earlier + 1
        if count >= state.limit and batches >= LEAST_BATCHES:
            latched = InvalidParams(state.limit, tool, count, batches, is_latched=True)
            return InvalidParamsStep(latched, LoopType.INVALID_TOOL_PARAMS)
    return InvalidParamsStep(InvalidParams(state.limit, tool, count, batches))


def interrupt(state: InvalidParams) -> InvalidParams:
    """Return the state after a batch during which the person spoke: the row ends, a stop stays."""
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
    """Return the dumped state, or a new one with `limit` if a newer schema wrote the document.

    Raises:
        ValueError: the document is damaged or belongs to another protection; it names the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return InvalidParams(limit)
    dumped_limit = None if snapshot.is_null("limit") else snapshot.whole("limit")
    if dumped_limit == 0:
        raise snapshot.damaged("limit", "a whole number from 1, or null")
    state = InvalidParams(
        dumped_limit,
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


def _is_invalid(call: Observation) -> bool:
    return (
        call.tool is not None
        and bool(call.tool.strip())
        and call.terminal_status == TerminalStatus.ERROR
        and call.execution_status == ExecutionStatus.NOT_STARTED
        and call.error_type == ERROR_TYPE
    )
