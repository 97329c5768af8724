"""One event of the side-effect duplicate guard in, the new state and a verdict out."""

from reducer.guards.mistakes import mistaken
from reducer.guards.modes import mode_on
from reducer.guards.side_effect.answers import decided, ended, settled
from reducer.guards.side_effect.events import (
    Decided,
    Event,
    PromptStarted,
    Proposed,
    RequestEnded,
    Settled,
    SideEffectStep,
    ThreadEnded,
)
from reducer.guards.side_effect.proposal import proposed
from reducer.guards.side_effect.state import SideEffectDuplicate
from reducer.guards.side_effect.work import Work


def reduce(state: SideEffectDuplicate, event: Event) -> SideEffectStep:
    """Return the new state, the verdict on a call, and what goes with it.

    Raises:
        ValueError: the state or the event is none of this guard's.
    """
    if not isinstance(state, SideEffectDuplicate):
        remedy = "pass what SideEffectDuplicate.start (reducer.guards.side_effect) or a step gave"
        raise mistaken("state", state, remedy)
    match event:
        case Proposed():
            return proposed(state, event)
        case Settled():
            work = Work(state, event.request)
            step = settled(work, event.call_id, event.execution_status, event.now_ms)
            return step._replace(state=work.done())
        case Decided():
            return decided(state, event)
        case PromptStarted(mode=mode, route=route):
            return SideEffectStep(
                SideEffectDuplicate(
                    mode_on(route, mode), route, state.ladder, state.tracks, state.requests
                )
            )
        case RequestEnded() | ThreadEnded():
            return SideEffectStep(ended(state, event))
    raise mistaken("event", event, "pass one of reducer.guards.side_effect.Event")
