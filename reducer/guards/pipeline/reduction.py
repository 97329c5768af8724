"""One event of the pipeline in: what each guard in turn makes of it."""

from collections.abc import Mapping

from reducer.guards import (
    duplicate_call_id,
    identical_call,
    invalid_params,
    repeated_failure,
    side_effect,
)
from reducer.guards.duplicate_call_id import HistorySeeded
from reducer.guards.identical_call import RunAction, RunStarted, TurnStarted
from reducer.guards.identical_call.reduction import settled as evidence_brought
from reducer.guards.invalid_params import InvalidParams
from reducer.guards.mistakes import mistaken
from reducer.guards.pipeline.events import (
    Answered,
    BatchProposed,
    BatchSettled,
    CallFate,
    Event,
    Fate,
    PipelineStep,
    PromptStarted,
    TurnStarting,
)
from reducer.guards.pipeline.proposal import proposed, stop_of
from reducer.guards.pipeline.state import (
    Pipeline,
    RunningCall,
    effective,
)
from reducer.guards.repeated_failure import FailureAction, RepeatedFailure, SettledBatch
from reducer.guards.side_effect import SideEffectDuplicate
from reducer.guards.side_effect.answers import settled
from reducer.guards.side_effect.events import (
    Decided,
    FirstUseToKeep,
    RequestEnded,
    Verdict,
)
from reducer.guards.side_effect.work import Work
from reducer.guards.total_calls import TotalCalls
from reducer.guards.transition import Transition
from reducer.vocabulary import ExecutionStatus, LoopType


def reduce(state: Pipeline, event: Event) -> PipelineStep:
    """Return the state after an event, with what to report and to do.

    After a stop nothing runs any more until a new prompt begins.

    Raises:
        ValueError: no state or event of the pipeline, or one that a guard refuses; naming the
            field.
    """
    if not isinstance(state, Pipeline):
        remedy = "pass what Pipeline.start (reducer.guards.pipeline) or a step gave"
        raise mistaken("state", state, remedy)
    match event:
        case BatchSettled():
            return _settled(state, event)
        case BatchProposed():
            return proposed(state, event)
        case TurnStarting():
            return _turn(state, event)
        case Answered():
            return _answered(state, event)
        case PromptStarted():
            return PipelineStep(_prompt(state, event))
        case HistorySeeded():
            duplicate = duplicate_call_id.reduce(state.duplicate, event).state
            return PipelineStep(state._replace(duplicate=duplicate))
    raise mistaken("event", event, "pass one of reducer.guards.pipeline.Event")


def _prompt(state: Pipeline, event: PromptStarted) -> Pipeline:
    mode_of = effective(event.modes, event.route)
    ladder = state.side_effect
    if state.request is not None:
        ladder = side_effect.reduce(ladder, RequestEnded(state.request)).state
    ladder_start = side_effect.PromptStarted(mode_of[side_effect.GUARD], event.route)
    ids_start = duplicate_call_id.PromptStarted(mode_of[duplicate_call_id.GUARD], event.route)
    run_start = RunStarted(mode_of[identical_call.GUARD], event.route)
    return Pipeline(
        duplicate_call_id.reduce(state.duplicate, ids_start).state,
        identical_call.reduce(state.identical, run_start).state,
        side_effect.reduce(ladder, ladder_start).state,
        RepeatedFailure.start(mode_of[repeated_failure.GUARD], route=event.route),
        InvalidParams(state.invalid.limit),
        TotalCalls(state.total.limit),
        last_key=state.last_key,
    )


def _turn(state: Pipeline, event: TurnStarting) -> PipelineStep:
    if state.stopped_by is not None:
        return PipelineStep(state, stop=stop_of(state.stopped_by))
    step = identical_call.reduce(state.identical, TurnStarted(event.budget))
    after = state._replace(identical=step.state, running=())
    if step.action is RunAction.FAIL:
        # What fails before the model is called is the budget: a loop shows in what it asks for.
        return PipelineStep(after, stop=stop_of(None))
    return PipelineStep(after, step.transitions, step.turn)


def _answered(state: Pipeline, event: Answered) -> PipelineStep:
    """Pass on what a person said; an answer that comes to no open question changes nothing."""
    waiting = {call.key: call for call in state.running}
    if state.request is None or event.key not in waiting:
        return PipelineStep(state)
    decided = Decided(event.key, state.request, event.is_approved, event.now_ms)
    step = side_effect.reduce(state.side_effect, decided)
    if step.verdict is Verdict.UNASKED:
        return PipelineStep(state)
    if step.verdict is Verdict.EXECUTE:
        run = _fate(waiting[event.key], Fate.RUN, None)
        return PipelineStep(state._replace(side_effect=step.state), fates=(run,))
    over = (event.key, *(key for key in step.resolved if key in waiting))
    after = state._replace(
        side_effect=step.state,
        running=tuple(call for call in state.running if call.key not in over),
    )
    fates = tuple(_fate(waiting[key], Fate.ANSWER, step.text) for key in over)
    return PipelineStep(after, step.transitions, fates=fates)


def _fate(call: RunningCall, fate: Fate, text: str | None) -> CallFate:
    return CallFate(fate, call.key, call.call_id, call.tool, text)


def _settled(state: Pipeline, event: BatchSettled) -> PipelineStep:
    counted = evidence_brought(state.identical, event.evidence)
    ladder, transitions, first_uses = _work_done(state, event)
    invalid, loop = state.invalid, None
    if _has_news(event.batch):
        # What a person said meanwhile outranks a stop: the model is to see it first.
        invalid = invalid_params.interrupted(invalid)
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
        counted.state,
        ladder,
        repeated,
        invalid,
        state.total,
        state.request,
        stopped_by=state.stopped_by if loop is None else loop,
        last_key=state.last_key,
    )
    return PipelineStep(
        after,
        (*counted.transitions, *transitions),
        reminder=reminder,
        stop=None if loop is None else stop_of(loop),
        first_uses=first_uses,
    )


def _has_news(batch: SettledBatch) -> bool:
    """Whether the person spoke while the batch ran, or nobody knows whether they did."""
    return not batch.is_input_reliable or batch.has_external_input or batch.has_queued_prompt


def _work_done(
    state: Pipeline, event: BatchSettled
) -> tuple[SideEffectDuplicate, tuple[Transition, ...], tuple[FirstUseToKeep, ...]]:
    """Tell the side-effect guard how each call that ran has ended."""
    ladder, request = state.side_effect, state.request
    if request is None:
        return ladder, (), ()
    # The guard knows nothing of a call that does no harm when it is repeated.
    known = ladder.log_of(request).calls
    ran = {call.key for call in state.running if call.key in known}
    seen = [each for each in event.batch.observations if each.call_id in ran]
    if not seen:
        return ladder, (), ()
    work = Work(ladder, request)
    transitions: list[Transition] = []
    first_uses: list[FirstUseToKeep] = []
    for each in seen:
        assert each.call_id is not None
        step = settled(work, each.call_id, _STATUSES.get(each.execution_status), event.now_ms)
        transitions += step.transitions
        if step.first_use is not None:
            first_uses.append(step.first_use)
    return work.done(), tuple(transitions), tuple(first_uses)


_STATUSES: Mapping[str | None, ExecutionStatus] = {word.value: word for word in ExecutionStatus}
