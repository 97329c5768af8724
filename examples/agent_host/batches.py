"""One batch of calls: asked about, run side by side, and observed as the guards need it."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from examples.agent_host.messages import RequestedCall
from examples.agent_host.people import Permission, Person
from examples.agent_host.tools import (
    Arguments,
    Hook,
    Settled,
    Tool,
    execute,
    not_started,
    read_arguments,
)
from reducer.guards.pipeline import CallFate, Fate
from reducer.guards.repeated_failure import Observation
from reducer.vocabulary import ExecutionStatus

MOST_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Workbench:
    """What a batch needs of the host.

    `reports_execution` False is a host that can't say how an execution settled, only how a call
    ended: its guards never stop, since they can't tell a failure from a call that never ran.
    """

    tools: Mapping[str, Tool]
    hooks: tuple[Hook, ...] = ()
    reports_execution: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """One call of a batch, after it settled: for the transcript and for the guards."""

    call_id: str
    text: str
    observation: Observation
    execution: ExecutionStatus


@dataclass(frozen=True, slots=True)
class Planned:
    """One call of a batch with its fate, and the arguments that were read of it."""

    call: RequestedCall
    arguments: Arguments | None
    fate: CallFate

    @property
    def call_id(self) -> str:
        """The name under which the call and its answer stand in the transcript."""
        return self.fate.call_id or self.fate.key


def plan(calls: Sequence[RequestedCall], fates: Sequence[CallFate]) -> list[Planned]:
    """Return the calls that get an answer."""
    return [
        Planned(call, read_arguments(call.arguments), fate)
        for call, fate in zip(calls, fates, strict=True)
        if fate.fate is not Fate.DROP
    ]


def run(batch: Sequence[Planned], bench: Workbench, person: Person) -> list[Done]:
    """Settle every call of a batch; siblings run side by side, none is cancelled for another."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        pending = [
            (each, pool.submit(task) if (task := _task(each, bench, person)) else None)
            for each in batch
        ]
        return [
            _answered(each, bench) if future is None else _done(each, future.result(), bench)
            for each, future in pending
        ]


def _task(each: Planned, bench: Workbench, person: Person) -> Callable[[], Settled] | None:
    """Return what runs a call; None for one that is answered without running."""
    if each.fate.fate is not Fate.RUN:
        return None
    tool = bench.tools.get(each.fate.tool)
    asks = tool is not None and tool.needs_permission
    if asks and person.permit(each.fate.tool) is Permission.CANCELLED:
        return lambda: not_started("The user did not allow this call.", is_cancelled=True)
    return lambda: execute(tool, each.arguments, bench.hooks)


def _answered(each: Planned, bench: Workbench) -> Done:
    tool = bench.tools.get(each.fate.tool)
    observation = each.fate.not_run(tool_type=None if tool is None else tool.tool_type)
    return Done(each.call_id, each.fate.text or "", observation, ExecutionStatus.NOT_STARTED)


def _done(each: Planned, settled: Settled, bench: Workbench) -> Done:
    tool = bench.tools.get(each.fate.tool)
    execution = settled.execution
    observation = Observation(
        each.fate.key,
        each.fate.tool,
        tool_type=None if tool is None else tool.tool_type,
        terminal_status=settled.report.status,
        execution_status=execution.status if bench.reports_execution else None,
        # Of the execution, not of the report: what ran after it may have changed that one.
        error_type=execution.error_type if bench.reports_execution else None,
    )
    return Done(each.call_id, settled.report.text, observation, execution.status)
