"""The agent's tools: what each does, and how a call's execution settles."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from reducer.guards.invalid_params import ERROR_TYPE as INVALID_PARAMS
from reducer.guards.side_effect import UNDECLARED, ToolDeclaration, XidDeclaration
from reducer.vocabulary import ExecutionStatus, TerminalStatus, ToolType

Arguments: TypeAlias = Mapping[str, object]


class ToolError(Exception):
    """A tool failed, in one of the classes of failure that it knows."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(text)
        self.error_type = error_type


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `required` are the arguments it can't do without.

    `declaration` and `xid` are for the side-effect guard: whether a repeat does harm, and which
    arguments say what is done to which thing. `needs_permission`: a person is asked first.
    """

    name: str
    run: Callable[[Arguments], str]
    required: tuple[str, ...] = ()
    tool_type: ToolType = ToolType.NATIVE
    declaration: ToolDeclaration = UNDECLARED
    xid: XidDeclaration | None = None
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
    """How a call's execution settled: made once, at that moment, and never changed."""

    status: ExecutionStatus
    error_type: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """How a call is reported to the model; what runs after the tool may still change it."""

    status: TerminalStatus
    text: str
    error_type: str | None = None


Hook: TypeAlias = Callable[[Report], Report]


@dataclass(frozen=True, slots=True)
class Settled:
    """One call after everything that ran for it."""

    execution: Execution
    report: Report


def read_arguments(text: str) -> Arguments | None:
    """Return the arguments that a model wrote, None when they are no JSON object."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def execute(tool: Tool | None, arguments: Arguments | None, hooks: tuple[Hook, ...]) -> Settled:
    """Run a call to its end. The execution is settled before the first hook runs."""
    settled = _run(tool, arguments)
    report = settled.report
    for hook in hooks:
        report = hook(report)
    return Settled(settled.execution, report)


def not_started(text: str, *, is_cancelled: bool = False, error_type: str | None = None) -> Settled:
    """Return what settles a call that never ran."""
    status = TerminalStatus.CANCELLED if is_cancelled else TerminalStatus.ERROR
    return Settled(
        Execution(ExecutionStatus.NOT_STARTED, error_type), Report(status, text, error_type)
    )


def _run(tool: Tool | None, arguments: Arguments | None) -> Settled:
    if tool is None:
        return not_started("There is no such tool.", error_type="unknown_tool")
    if arguments is None or any(name not in arguments for name in tool.required):
        needed = ", ".join(tool.required) or "none"
        return not_started(f"The arguments must be: {needed}.", error_type=INVALID_PARAMS)
    try:
        text = tool.run(arguments)
    except ToolError as error:
        failed = Execution(ExecutionStatus.ERROR, error.error_type)
        return Settled(failed, Report(TerminalStatus.ERROR, str(error), error.error_type))
    except Exception as error:  # noqa: BLE001  # a tool's bug is an answer, not the end of the host
        failed = Execution(ExecutionStatus.ERROR, "unknown")
        return Settled(failed, Report(TerminalStatus.ERROR, type(error).__name__, "unknown"))
    return Settled(Execution(ExecutionStatus.SUCCESS), Report(TerminalStatus.SUCCESS, text))
