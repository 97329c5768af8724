"""A proposed batch on its way through the guards: each call's fate, or the first stop."""

from itertools import chain
from typing import NamedTuple

from reducer.guards import texts, total_calls
from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id import CallAction, CallVerdict
from reducer.guards.duplicate_call_id.reduction import decided
from reducer.guards.identical_call import RunAction
from reducer.guards.identical_call.reduction import proposed as asked_for
from reducer.guards.pipeline.events import (
    BatchProposed,
    CallFate,
    Fate,
    PipelineStep,
    Proposal,
    Stop,
)
from reducer.guards.pipeline.state import Pipeline, RunningCall
from reducer.guards.side_effect import SideEffectDuplicate
from reducer.guards.side_effect.case import Case, Occasion, occasion_of
from reducer.guards.side_effect.events import (
    SideEffectStep,
    Verdict,
)
from reducer.guards.side_effect.ladder import ToolDeclaration
from reducer.guards.side_effect.proposal import judged
from reducer.guards.side_effect.work import Work
from reducer.guards.transition import Transition
from reducer.vocabulary import LoopType, Mode


class _Judged(NamedTuple):
    """The batch after the side-effect guard."""

    ladder: SideEffectDuplicate
    transitions: tuple[Transition, ...] = ()
    is_blocked: bool = False
    diagnostics: tuple[str, ...] = ()


_STOPS = {
    LoopType.GLOBAL_TOOL_CALL_DUPLICATE: texts.DUPLICATE_CALL_STOP,
    LoopType.INVALID_TOOL_PARAMS: texts.INVALID_PARAMS_STOP,
    LoopType.IDENTICAL_TOOL_CALL: texts.IDENTICAL_CALL_STOP,
    LoopType.SIDE_EFFECT_DUPLICATE: texts.SIDE_EFFECT_STOP,
    LoopType.REPEATED_TOOL_EXECUTION_FAILURE: texts.REPEATED_FAILURE_STOP,
    LoopType.TOTAL_TOOL_CALLS: texts.TOTAL_CALLS_STOP,
}


def stop_of(loop: LoopType | None) -> Stop:
    """Return the stop of a protection with its text; None stands for a budget that is used up."""
    return Stop(loop, None if loop is None else _STOPS[loop])


def proposed(state: Pipeline, event: BatchProposed) -> PipelineStep:
    """Return each call's fate, or the stop of the first guard that drops the batch.

    A guard that drops it speaks for itself alone: for those before it the batch never was, or a
    call that did not run would be taken for one that did.
    """
    proposals = list(chain.from_iterable(event.responses))
    if state.stopped_by is not None:
        return _dropped(state, proposals, state.stopped_by)
    if not proposals:
        done = asked_for(state.identical, ())
        after = state._replace(identical=done.state, running=(), is_blocked=False)
        return PipelineStep(after)
    batch = tuple([tuple([each.call for each in response]) for response in event.responses])
    named = decided(state.duplicate, batch)
    if named.is_breaker_open:
        after = state._replace(duplicate=named.state)
        loop = LoopType.GLOBAL_TOOL_CALL_DUPLICATE
        return _dropped(after, proposals, loop, named.transitions)
    fates = _named(state, proposals, named.verdicts)
    counted = asked_for(state.identical, _asked(fates, proposals))
    if counted.action is RunAction.FAIL:
        after = state._replace(identical=counted.state)
        return _dropped(after, proposals, counted.loop_type, counted.transitions)
    judged = _judged(state.side_effect, event, proposals, fates)
    running = tuple(
        [
            RunningCall(each.key, each.call_id, each.tool)
            for each in fates
            if each.fate is Fate.RUN or each.fate is Fate.ASK
        ]
    )
    total = total_calls.reduce(state.total, len(running))
    if total.loop_type is not None:
        return _dropped(state._replace(total=total.state), proposals, total.loop_type)
    after = Pipeline(
        named.state,
        counted.state,
        judged.ladder,
        state.repeated,
        state.invalid,
        total.state,
        request=event.request,
        running=running,
        is_blocked=judged.is_blocked,
        last_key=state.last_key if state.renames else state.last_key + len(proposals),
    )
    transitions = named.transitions + counted.transitions + judged.transitions
    return PipelineStep(after, transitions, fates=tuple(fates), diagnostics=judged.diagnostics)


def _dropped(
    state: Pipeline,
    proposals: list[Proposal],
    loop: LoopType | None,
    transitions: tuple[Transition, ...] = (),
) -> PipelineStep:
    fates = tuple(CallFate(Fate.DROP, "", None, each.call.tool) for each in proposals)
    after = state._replace(stopped_by=loop, running=(), is_blocked=False)
    return PipelineStep(after, transitions, fates=fates, stop=stop_of(loop))


def _named(
    state: Pipeline, proposals: list[Proposal], verdicts: tuple[CallVerdict, ...]
) -> list[CallFate]:
    """Return the fates by the call-id guard alone, with a key for each call."""
    fates = []
    number = state.last_key
    renames = state.renames
    for proposal, (_, action, name) in zip(proposals, verdicts, strict=True):
        number += 1
        # An id that may come twice is no key; one that the guard gave out is.
        key = name if renames and name is not None else f"{name or 'call'}#{number}"
        tool = proposal.call.tool
        if action is CallAction.EXECUTE:
            fates.append(CallFate(Fate.RUN, key, name, tool))
        elif action is CallAction.SYNTHETIC:
            answer = texts.DUPLICATE_CALL_ANSWER
            fates.append(CallFate(Fate.ANSWER, key, name, tool, answer, is_provider_duplicate=True))
        else:
            fates.append(CallFate(Fate.DROP, key, None, tool))
    return fates


def _asked(fates: list[CallFate], proposals: list[Proposal]) -> tuple[ToolCall, ...]:
    """Return the calls that count as asked for: all but those that get no answer at all."""
    return tuple(
        [
            _under(fate.key, proposal.call)
            for fate, proposal in zip(fates, proposals, strict=True)
            if fate.fate is not Fate.DROP
        ]
    )


def _under(key: str, call: ToolCall) -> ToolCall:
    if key == call.call_id:
        return call
    return call._replace(call_id=key)


def _judged(
    ladder: SideEffectDuplicate,
    event: BatchProposed,
    proposals: list[Proposal],
    fates: list[CallFate],
) -> _Judged:
    """Let the side-effect guard see each call that would run, and change its fate in the list."""
    if ladder.mode is Mode.OFF:
        return _Judged(ladder)
    asked = [
        (at, fate, proposals[at])
        for at, fate in enumerate(fates)
        if fate.fate is Fate.RUN and not _is_harmless(proposals[at].declaration)
    ]
    if not asked:
        return _Judged(ladder)
    occasion = occasion_of(
        ladder.ladder, event.request, event.now_ms, thread=event.thread, channel=event.channel
    )
    work = Work(ladder, event.request)
    transitions: list[Transition] = []
    diagnostics: set[str] = set()
    is_blocked = False
    for at, fate, proposal in asked:
        step = judged(work, _case(occasion, proposal, fate))
        transitions += step.transitions
        fates[at] = _fate(fate, step)
        is_blocked |= step.verdict is Verdict.BLOCK
        if step.diagnostic is not None:
            diagnostics.add(step.diagnostic)
    return _Judged(work.done(), tuple(transitions), is_blocked, tuple(sorted(diagnostics)))


def _is_harmless(tool: ToolDeclaration) -> bool:
    """Whether the ladder has no say (docs/guards); keys never come twice here."""
    return tool.is_keyed or not tool.has_side_effect


def _case(occasion: Occasion, proposal: Proposal, fate: CallFate) -> Case:
    asked = (proposal.declaration, False, proposal.xid, proposal.first_use, proposal.candidate)
    return Case(occasion, fate.key, fate.tool, proposal.call.fingerprint, *asked)


def _fate(fate: CallFate, step: SideEffectStep) -> CallFate:
    verdict = step.verdict
    if verdict is not None and verdict.runs:
        if step.incident is None:
            return fate
        return fate._replace(incident=step.incident)
    kind = Fate.ANSWER if step.question is None else Fate.ASK
    return CallFate(
        kind,
        fate.key,
        fate.call_id,
        fate.tool,
        step.text,
        step.question,
        step.incident,
        step.error,
    )
