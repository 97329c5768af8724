"""Tools: their declarations, and the run of a call until it settles."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from guardwave.guards import ExecutionStatus, TerminalStatus, ToolType, pipeline, side_effect

Arguments: TypeAlias = Mapping[str, object]


class ToolError(Exception):
    """A tool failed, with one of its own error types."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(text)
        self.error_type = error_type


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `required` are the arguments that it needs.

    `declaration` and `xid` are for the side-effect guard: whether a repeat does harm, and which
    arguments identify the act and its object. `needs_permission`: the host asks a person first.
    """

    name: str
    run: Callable[[Arguments], str]
    required: tuple[str, ...] = ()
    tool_type: ToolType = ToolType.NATIVE
    declaration: side_effect.ToolDeclaration = side_effect.UNDECLARED
    xid: side_effect.XidDeclaration | None = None
    needs_permission: bool = False

    def definition(self) -> Mapping[str, object]:
        """Return the tool as the chat completions API describes it."""
        properties = {name: {"type": "string"} for name in self.required}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": list(self.required),
        }
        return {"type": "function", "function": {"name": self.name, "parameters": parameters}}


@dataclass(frozen=True, slots=True)
class Execution:
    """The settled execution of a call: made once, at that moment, and never changed."""

    status: ExecutionStatus
    error_type: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a call to the model; a hook that runs after the tool may change it."""

    status: TerminalStatus
    text: str
    error_type: str | None = None


Hook: TypeAlias = Callable[[Report], Report]


@dataclass(frozen=True, slots=True)
class Settlement:
    """The execution and the report of one call, after all hooks."""

    execution: Execution
    report: Report


def read_arguments(text: str) -> Arguments | None:
    """Return the arguments of a call, None if they are no JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def execute(tool: Tool | None, arguments: Arguments | None, hooks: tuple[Hook, ...]) -> Settlement:
    """Run a call to its end. The execution is settled before the first hook runs."""
    settled = _run(tool, arguments)
    report = settled.report
    for hook in hooks:
        report = hook(report)
    return Settlement(settled.execution, report)


def not_started(
    text: str, *, is_cancelled: bool = False, error_type: str | None = None
) -> Settlement:
    """Return the settlement of a call that never ran."""
    status = TerminalStatus.CANCELLED if is_cancelled else TerminalStatus.ERROR
    return Settlement(
        Execution(ExecutionStatus.NOT_STARTED, error_type), Report(status, text, error_type)
    )


def _run(tool: Tool | None, arguments: Arguments | None) -> Settlement:
    if tool is None:
        return not_started("There is no such tool.", error_type="unknown_tool")
    if arguments is None or any(name not in arguments for name in tool.required):
        needed = ", ".join(tool.required) or "none"
        return not_started(f"The arguments must be: {needed}.", error_type=pipeline.INVALID_PARAMS)
    try:
        text = tool.run(arguments)
    except ToolError as error:
        failed = Execution(ExecutionStatus.ERROR, error.error_type)
        return Settlement(failed, Report(TerminalStatus.ERROR, str(error), error.error_type))
    except Exception as error:  # noqa: BLE001  # a tool's bug is an answer, not the end of the host
        failed = Execution(ExecutionStatus.ERROR, "unknown")
        return Settlement(failed, Report(TerminalStatus.ERROR, type(error).__name__, "unknown"))
    return Settlement(Execution(ExecutionStatus.SUCCESS), Report(TerminalStatus.SUCCESS, text))
