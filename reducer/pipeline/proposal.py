"""Proposed batch: its way through the guards, to a disposition for each call or the first stop."""

from itertools import chain
from typing import NamedTuple

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import CallAction, CallVerdict, decide
from guardwave.reducer.guards.identical_call import RunAction
from guardwave.reducer.guards.identical_call import propose as count_calls
from guardwave.reducer.guards.side_effect import (
    BatchContext,
    Case,
    SideEffectDuplicate,
    SideEffectStep,
    ToolDeclaration,
    Verdict,
    WorkingCopy,
    batch_context,
    judge,
)
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.pipeline import total_calls
from guardwave.reducer.pipeline.events import (
    BatchProposed,
    CallDisposition,
    HostAction,
    PipelineStep,
    Proposal,
    Stop,
)
from guardwave.reducer.pipeline.state import Pipeline, RunningCall
from guardwave.reducer.vocabulary import LoopType, Mode


class _SideEffectResult(NamedTuple):
    """The result of the side-effect guard for a batch."""

    guard: SideEffectDuplicate
    transitions: tuple[Transition, ...] = ()
    is_blocked: bool = False
    diagnostics: tuple[str, ...] = ()


_STOPS = {
    LoopType.GLOBAL_TOOL_CALL_DUPLICATE: messages.DUPLICATE_CALL_STOP,
    LoopType.INVALID_TOOL_PARAMS: messages.INVALID_PARAMS_STOP,
    LoopType.IDENTICAL_TOOL_CALL: messages.IDENTICAL_CALL_STOP,
    LoopType.SIDE_EFFECT_DUPLICATE: messages.SIDE_EFFECT_STOP,
    LoopType.REPEATED_TOOL_EXECUTION_FAILURE: messages.REPEATED_FAILURE_STOP,
    LoopType.TOTAL_TOOL_CALLS: messages.TOTAL_CALLS_STOP,
}


def stop_of(loop: LoopType | None) -> Stop:
    """Return the stop of a protection with its text; None means that the budget is used up."""
    return Stop(loop, None if loop is None else _STOPS[loop])


def propose(state: Pipeline, event: BatchProposed) -> PipelineStep:
    """Return each call's disposition, or the stop of the first guard that drops the batch.

    Only the guard that drops the batch changes its state. The guards before it forget the batch,
    or they would take a call that did not run for one that did.
    """
    proposals = list(chain.from_iterable(event.responses))
    if state.stopped_by is not None:
        return _drop(state, proposals, state.stopped_by)
    if not proposals:
        concluded = count_calls(state.identical, ())
        after = state._replace(identical=concluded.state, running=(), is_blocked=False)
        return PipelineStep(after)
    batch = tuple([tuple([proposal.call for proposal in response]) for response in event.responses])
    ids = decide(state.duplicate, batch)
    if ids.is_breaker_open:
        after = state._replace(duplicate=ids.state)
        loop = LoopType.GLOBAL_TOOL_CALL_DUPLICATE
        return _drop(after, proposals, loop, ids.transitions)
    dispositions = _name_calls(state, proposals, ids.verdicts)
    count = count_calls(state.identical, _answered_calls(dispositions, proposals))
    if count.action is RunAction.FAIL:
        after = state._replace(identical=count.state)
        return _drop(after, proposals, count.loop_type, count.transitions)
    effects = _judge_side_effects(state.side_effect, event, proposals, dispositions)
    running = tuple(
        [
            RunningCall(disposition.key, disposition.call_id, disposition.tool)
            for disposition in dispositions
            if disposition.action is HostAction.RUN or disposition.action is HostAction.ASK
        ]
    )
    total = total_calls.reduce(state.total, len(running))
    if total.loop_type is not None:
        return _drop(state._replace(total=total.state), proposals, total.loop_type)
    after = Pipeline(
        ids.state,
        count.state,
        effects.guard,
        state.repeated,
        state.invalid,
        total.state,
        request=event.request,
        running=running,
        is_blocked=effects.is_blocked,
        last_key=state.last_key if state.renames else state.last_key + len(proposals),
    )
    transitions = ids.transitions + count.transitions + effects.transitions
    return PipelineStep(
        after, transitions, dispositions=tuple(dispositions), diagnostics=effects.diagnostics
    )


def _drop(
    state: Pipeline,
    proposals: list[Proposal],
    loop: LoopType | None,
    transitions: tuple[Transition, ...] = (),
) -> PipelineStep:
    dispositions = tuple(
        CallDisposition(HostAction.DROP, "", None, proposal.call.tool) for proposal in proposals
    )
    after = state._replace(stopped_by=loop, running=(), is_blocked=False)
    return PipelineStep(after, transitions, dispositions=dispositions, stop=stop_of(loop))


def _name_calls(
    state: Pipeline, proposals: list[Proposal], verdicts: tuple[CallVerdict, ...]
) -> list[CallDisposition]:
    """Return the dispositions of the call-id guard, with a key for each call."""
    dispositions = []
    number = state.last_key
    renames = state.renames
    for proposal, (_, action, name) in zip(proposals, verdicts, strict=True):
        number += 1
        # The names of the guard are unique, ids of a provider are not.
        key = name if renames and name is not None else f"{name or 'call'}#{number}"
        tool = proposal.call.tool
        if action is CallAction.EXECUTE:
            dispositions.append(CallDisposition(HostAction.RUN, key, name, tool))
        elif action is CallAction.SYNTHETIC:
            answer = messages.DUPLICATE_CALL_ANSWER
            dispositions.append(
                CallDisposition(
                    HostAction.ANSWER, key, name, tool, answer, is_provider_duplicate=True
                )
            )
        else:
            dispositions.append(CallDisposition(HostAction.DROP, key, None, tool))
    return dispositions


def _answered_calls(
    dispositions: list[CallDisposition], proposals: list[Proposal]
) -> tuple[ToolCall, ...]:
    """Return the calls that get an answer, each under its key."""
    return tuple(
        [
            _with_key(disposition.key, proposal.call)
            for disposition, proposal in zip(dispositions, proposals, strict=True)
            if disposition.action is not HostAction.DROP
        ]
    )


def _with_key(key: str, call: ToolCall) -> ToolCall:
    if key == call.call_id:
        return call
    return call._replace(call_id=key)


def _judge_side_effects(
    guard: SideEffectDuplicate,
    event: BatchProposed,
    proposals: list[Proposal],
    dispositions: list[CallDisposition],
) -> _SideEffectResult:
    """Let the side-effect guard judge each call that would run, and change the list in place."""
    if guard.mode is Mode.OFF:
        return _SideEffectResult(guard)
    relevant = [
        (at, disposition, proposals[at])
        for at, disposition in enumerate(dispositions)
        if disposition.action is HostAction.RUN and not _is_harmless(proposals[at].declaration)
    ]
    if not relevant:
        return _SideEffectResult(guard)
    context = batch_context(
        guard.ladder, event.request, event.now_ms, thread=event.thread, channel=event.channel
    )
    work = WorkingCopy(guard, event.request)
    transitions: list[Transition] = []
    diagnostics: set[str] = set()
    is_blocked = False
    for at, disposition, proposal in relevant:
        step = judge(work, _case(context, proposal, disposition))
        transitions += step.transitions
        dispositions[at] = _disposition(disposition, step)
        is_blocked |= step.verdict is Verdict.BLOCK
        if step.diagnostic is not None:
            diagnostics.add(step.diagnostic)
    return _SideEffectResult(
        work.done(), tuple(transitions), is_blocked, tuple(sorted(diagnostics))
    )


def _is_harmless(tool: ToolDeclaration) -> bool:
    """Whether the guard leaves the tool alone (`docs/guards`). Keys are unique here."""
    return tool.is_keyed or not tool.has_side_effect


def _case(context: BatchContext, proposal: Proposal, disposition: CallDisposition) -> Case:
    layers = (proposal.declaration, False, proposal.xid, proposal.first_use, proposal.candidate)
    return Case(context, disposition.key, disposition.tool, proposal.call.fingerprint, *layers)


def _disposition(disposition: CallDisposition, step: SideEffectStep) -> CallDisposition:
    verdict = step.verdict
    if verdict is not None and verdict.runs:
        if step.incident is None:
            return disposition
        return disposition._replace(incident=step.incident)
    kind = HostAction.ANSWER if step.question is None else HostAction.ASK
    return CallDisposition(
        kind,
        disposition.key,
        disposition.call_id,
        disposition.tool,
        step.text,
        step.question,
        step.incident,
        step.error,
    )
