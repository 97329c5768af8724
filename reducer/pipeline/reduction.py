"""Pipeline reduction: each event, passed through the guards in turn."""

from collections.abc import Mapping

from guardwave.reducer.guards import (
    duplicate_call_id,
    identical_call,
    repeated_failure,
    side_effect,
)
from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.duplicate_call_id import HistorySeeded
from guardwave.reducer.guards.identical_call import RunAction, RunStarted, TurnStarted
from guardwave.reducer.guards.identical_call import settle as settle_calls
from guardwave.reducer.guards.repeated_failure import FailureAction, RepeatedFailure, SettledBatch
from guardwave.reducer.guards.side_effect import (
    Decided,
    FirstUseToKeep,
    RequestEnded,
    SideEffectDuplicate,
    Verdict,
    WorkingCopy,
    settle,
)
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.pipeline import invalid_params
from guardwave.reducer.pipeline.events import (
    Answered,
    BatchProposed,
    BatchSettled,
    CallDisposition,
    Event,
    HostAction,
    PipelineStep,
    PromptStarted,
    TurnStarting,
)
from guardwave.reducer.pipeline.invalid_params import InvalidParams
from guardwave.reducer.pipeline.proposal import propose, stop_of
from guardwave.reducer.pipeline.state import Pipeline, RunningCall, modes_on_route
from guardwave.reducer.pipeline.total_calls import TotalCalls
from guardwave.reducer.vocabulary import ExecutionStatus, LoopType


def reduce(state: Pipeline, event: Event) -> PipelineStep:
    """Return the state after an event, with the reports and instructions for the host.

    After a stop nothing runs until a new prompt begins.

    Raises:
        ValueError: the state or event is not of the pipeline, or a guard rejects it; it names
            the field.
    """
    if not isinstance(state, Pipeline):
        remedy = "pass the result of Pipeline.start (guardwave.guards.pipeline) or of a step"
        raise argument_error("state", state, remedy)
    match event:
        case BatchSettled():
            return _settle(state, event)
        case BatchProposed():
            return propose(state, event)
        case TurnStarting():
            return _start_turn(state, event)
        case Answered():
            return _answer(state, event)
        case PromptStarted():
            return PipelineStep(_start_prompt(state, event))
        case HistorySeeded():
            duplicate = duplicate_call_id.reduce(state.duplicate, event).state
            return PipelineStep(state._replace(duplicate=duplicate))
    raise argument_error("event", event, "pass one of guardwave.guards.pipeline.Event")


def _start_prompt(state: Pipeline, event: PromptStarted) -> Pipeline:
    mode_of = modes_on_route(event.modes, event.route)
    effects = state.side_effect
    if state.request is not None:
        effects = side_effect.reduce(effects, RequestEnded(state.request)).state
    effects_start = side_effect.PromptStarted(mode_of[side_effect.GUARD], event.route)
    ids_start = duplicate_call_id.PromptStarted(mode_of[duplicate_call_id.GUARD], event.route)
    run_start = RunStarted(mode_of[identical_call.GUARD], event.route)
    return Pipeline(
        duplicate_call_id.reduce(state.duplicate, ids_start).state,
        identical_call.reduce(state.identical, run_start).state,
        side_effect.reduce(effects, effects_start).state,
        RepeatedFailure.start(mode_of[repeated_failure.GUARD], route=event.route),
        InvalidParams(state.invalid.limit),
        TotalCalls(state.total.limit),
        last_key=state.last_key,
    )


def _start_turn(state: Pipeline, event: TurnStarting) -> PipelineStep:
    if state.stopped_by is not None:
        return PipelineStep(state, stop=stop_of(state.stopped_by))
    step = identical_call.reduce(state.identical, TurnStarted(event.budget))
    after = state._replace(identical=step.state, running=())
    if step.action is RunAction.FAIL:
        # Only the budget can fail a turn before the model is called.
        return PipelineStep(after, stop=stop_of(None))
    return PipelineStep(after, step.transitions, step.turn)


def _answer(state: Pipeline, event: Answered) -> PipelineStep:
    """Pass on a person's answer; without an open question it changes nothing."""
    waiting = {call.key: call for call in state.running}
    if state.request is None or event.key not in waiting:
        return PipelineStep(state)
    answer = Decided(event.key, state.request, event.is_approved, event.now_ms)
    step = side_effect.reduce(state.side_effect, answer)
    if step.verdict is Verdict.UNASKED:
        return PipelineStep(state)
    if step.verdict is Verdict.EXECUTE:
        run = _disposition(waiting[event.key], HostAction.RUN, None)
        return PipelineStep(state._replace(side_effect=step.state), dispositions=(run,))
    refused = (event.key, *(key for key in step.resolved if key in waiting))
    after = state._replace(
        side_effect=step.state,
        running=tuple(call for call in state.running if call.key not in refused),
    )
    dispositions = tuple(
        _disposition(waiting[key], HostAction.ANSWER, step.text) for key in refused
    )
    return PipelineStep(after, step.transitions, dispositions=dispositions)


def _disposition(call: RunningCall, action: HostAction, text: str | None) -> CallDisposition:
    return CallDisposition(action, call.key, call.call_id, call.tool, text)


def _settle(state: Pipeline, event: BatchSettled) -> PipelineStep:
    identical = settle_calls(state.identical, event.evidence)
    effects, transitions, first_uses = _settle_side_effects(state, event)
    invalid, loop = state.invalid, None
    if _may_have_input(event.batch):
        # Input of a person outranks a stop: the model must see it first.
        invalid = invalid_params.interrupt(invalid)
    else:
        invalid, loop = invalid_params.reduce(invalid, event.batch.observations)
        if loop is None and state.is_blocked:
            loop = LoopType.SIDE_EFFECT_DUPLICATE
    repeated, reminder = state.repeated, None
    if loop is None:
        step = repeated_failure.reduce(repeated, event.batch)
        repeated = step.state
        transitions = (*transitions, *step.transitions)
        loop = step.action.loop_type
        reminder = step.action.text if step.action is FailureAction.REMIND else None
    after = Pipeline(
        state.duplicate,
        identical.state,
        effects,
        repeated,
        invalid,
        state.total,
        state.request,
        stopped_by=state.stopped_by if loop is None else loop,
        last_key=state.last_key,
    )
    return PipelineStep(
        after,
        (*identical.transitions, *transitions),
        reminder=reminder,
        stop=None if loop is None else stop_of(loop),
        first_uses=first_uses,
    )


def _may_have_input(batch: SettledBatch) -> bool:
    """Whether the person spoke while the batch ran, or the host does not know."""
    return not batch.is_input_reliable or batch.has_external_input or batch.has_queued_prompt


def _settle_side_effects(
    state: Pipeline, event: BatchSettled
) -> tuple[SideEffectDuplicate, tuple[Transition, ...], tuple[FirstUseToKeep, ...]]:
    """Report to the side-effect guard how each call that ran has ended."""
    guard, request = state.side_effect, state.request
    if request is None:
        return guard, (), ()
    # The guard has no record of a call whose tool can be repeated without harm.
    recorded = guard.log_of(request).calls
    keys = {call.key for call in state.running if call.key in recorded}
    observations = [call for call in event.batch.observations if call.call_id in keys]
    if not observations:
        return guard, (), ()
    work = WorkingCopy(guard, request)
    transitions: list[Transition] = []
    first_uses: list[FirstUseToKeep] = []
    for call in observations:
        assert call.call_id is not None
        step = settle(work, call.call_id, _STATUSES.get(call.execution_status), event.now_ms)
        transitions += step.transitions
        if step.first_use is not None:
            first_uses.append(step.first_use)
    return work.done(), tuple(transitions), tuple(first_uses)


_STATUSES: Mapping[str | None, ExecutionStatus] = {word.value: word for word in ExecutionStatus}
