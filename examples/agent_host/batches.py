"""Batches of calls: permissions, parallel runs, and the observations that the guards need."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from examples.agent_host.messages import RequestedCall
from examples.agent_host.people import Permission, Person
from examples.agent_host.tools import (
    Arguments,
    Hook,
    Settlement,
    Tool,
    execute,
    not_started,
    read_arguments,
)
from guardwave.guards import ExecutionStatus, pipeline, repeated_failure

MOST_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Workbench:
    """The tools and hooks that run a batch.

    `reports_execution` False: the host knows how a call ended, but not how its execution settled.
    Its guards never stop then, since a failure and a call that never ran look the same.
    """

    tools: Mapping[str, Tool]
    hooks: tuple[Hook, ...] = ()
    reports_execution: bool = True


@dataclass(frozen=True, slots=True)
class CallResult:
    """One settled call of a batch, for the transcript and for the guards."""

    call_id: str
    text: str
    observation: repeated_failure.Observation
    execution: ExecutionStatus


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a batch, what the guards decided about it, and its parsed arguments."""

    call: RequestedCall
    arguments: Arguments | None
    disposition: pipeline.CallDisposition

    @property
    def call_id(self) -> str:
        """The id of the call and its answer in the transcript."""
        return self.disposition.call_id or self.disposition.key


def plan(
    calls: Sequence[RequestedCall], dispositions: Sequence[pipeline.CallDisposition]
) -> list[PlannedCall]:
    """Return the calls that get an answer."""
    return [
        PlannedCall(call, read_arguments(call.arguments), disposition)
        for call, disposition in zip(calls, dispositions, strict=True)
        if disposition.action is not pipeline.HostAction.DROP
    ]


def run(batch: Sequence[PlannedCall], bench: Workbench, person: Person) -> list[CallResult]:
    """Settle every call of a batch in parallel; no failure cancels a sibling."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        pending = [
            (planned, pool.submit(task) if (task := _task(planned, bench, person)) else None)
            for planned in batch
        ]
        return [
            _not_run(planned, bench) if future is None else _result(planned, future.result(), bench)
            for planned, future in pending
        ]


def _task(
    planned: PlannedCall, bench: Workbench, person: Person
) -> Callable[[], Settlement] | None:
    """Return the task that runs a call; None for a call that is answered without running."""
    if planned.disposition.action is not pipeline.HostAction.RUN:
        return None
    tool = bench.tools.get(planned.disposition.tool)
    asks = tool is not None and tool.needs_permission
    if asks and person.permit(planned.disposition.tool) is Permission.CANCELLED:
        return lambda: not_started("The user did not allow this call.", is_cancelled=True)
    return lambda: execute(tool, planned.arguments, bench.hooks)


def _not_run(planned: PlannedCall, bench: Workbench) -> CallResult:
    tool = bench.tools.get(planned.disposition.tool)
    observation = planned.disposition.not_run(tool_type=None if tool is None else tool.tool_type)
    return CallResult(
        planned.call_id, planned.disposition.text or "", observation, ExecutionStatus.NOT_STARTED
    )


def _result(planned: PlannedCall, settled: Settlement, bench: Workbench) -> CallResult:
    tool = bench.tools.get(planned.disposition.tool)
    execution = settled.execution
    observation = repeated_failure.Observation(
        planned.disposition.key,
        planned.disposition.tool,
        tool_type=None if tool is None else tool.tool_type,
        terminal_status=settled.report.status,
        execution_status=execution.status if bench.reports_execution else None,
        # The execution's type, since a hook may have changed the report.
        error_type=execution.error_type if bench.reports_execution else None,
    )
    return CallResult(planned.call_id, settled.report.text, observation, execution.status)
