"""The limit of calls with invalid parameters: a tool asked for wrongly three times in a row.

A protection without a rollout: it is on or it is not there, and reports nothing but its stop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from reducer.guards.repeated_failure.outcome import Observation
from reducer.guards.snapshot import Document, seal, unseal
from reducer.vocabulary import ExecutionStatus, LoopType, TerminalStatus

PROTECTION = "invalid_tool_params"
SCHEMA = 1
LIMIT = 3
# The error type by which a host says that a call never ran because of its parameters.
ERROR_TYPE = "invalid_tool_params"


@dataclass(frozen=True, slots=True)
class InvalidParams:
    """How often in a row the newest tool was asked for wrongly, within one prompt."""

    tool: str | None = None
    count: int = 0

    @property
    def is_latched(self) -> bool:
        """Whether the turn was stopped: then nothing more is counted."""
        return self.count >= LIMIT


class InvalidParamsStep(NamedTuple):
    """The state after a batch, and the reason of a stop, if this batch is one."""

    state: InvalidParams
    loop_type: LoopType | None = None


def reduce(state: InvalidParams, observations: Iterable[Observation]) -> InvalidParamsStep:
    """Return the step after one settled batch, its calls in the order they were asked for.

    Counted are calls that ended in an error of type `invalid_tool_params` without having started.
    Every other call ends the row, and so does the same fault of another tool, which begins one of
    its own. Calls that were answered without running say nothing.
    """
    if state.is_latched:
        return InvalidParamsStep(state)
    tool, count = state.tool, state.count
    for seen in observations:
        if seen.is_provider_duplicate:
            continue
        if not _is_invalid(seen):
            tool, count = None, 0
            continue
        count = count + 1 if seen.tool == tool else 1
        tool = seen.tool
        if count == LIMIT:
            return InvalidParamsStep(InvalidParams(tool, count), LoopType.INVALID_TOOL_PARAMS)
    return InvalidParamsStep(InvalidParams(tool, count))


def dump(state: InvalidParams) -> Document:
    """Return the state as plain JSON values."""
    return seal(PROTECTION, SCHEMA, {"tool": state.tool, "count": state.count})


def restore(document: object) -> InvalidParams:
    """Return the state that was dumped; a newer schema's begins anew.

    Raises:
        ValueError: the document is damaged or another protection's; naming the field.
    """
    snapshot = unseal(document, guard=PROTECTION, schema=SCHEMA)
    if snapshot is None:
        return InvalidParams()
    state = InvalidParams(snapshot.optional_text("tool"), snapshot.whole("count"))
    if (state.tool is None) != (state.count == 0):
        raise snapshot.damaged("tool", "null with a count of 0, and a text with any other")
    return state


def _is_invalid(seen: Observation) -> bool:
    return (
        seen.tool is not None
        and bool(seen.tool.strip())
        and seen.terminal_status == TerminalStatus.ERROR
        and seen.execution_status == ExecutionStatus.NOT_STARTED
        and seen.error_type == ERROR_TYPE
    )
