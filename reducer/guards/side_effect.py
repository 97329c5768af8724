"""The side-effect duplicate guard: what has an effect is done twice only if a person says so.

`SideEffectDuplicate.start` makes a state, `reduce` takes one event. All time comes with the events,
whose types are in side_effect_events; the settings and declarations are in side_effect_ladder.
"""

from reducer.guards.modes import mode_on
from reducer.guards.side_effect_answers import decided, ended, settled
from reducer.guards.side_effect_events import (
    Decided,
    Event,
    PromptStarted,
    Proposed,
    RequestEnded,
    Settled,
    SideEffectStep,
    ThreadEnded,
)
from reducer.guards.side_effect_proposal import proposed
from reducer.guards.side_effect_snapshot import dump, restore
from reducer.guards.side_effect_state import GUARD, SCHEMA, SideEffectDuplicate

__all__ = ["GUARD", "SCHEMA", "SideEffectDuplicate", "SideEffectStep", "dump", "reduce", "restore"]


def reduce(state: SideEffectDuplicate, event: Event) -> SideEffectStep:
    """Return the new state, the verdict on a call, and what goes with it.

    Raises:
        ValueError: the event is none of this guard's.
    """
    match event:
        case Proposed():
            return proposed(state, event)
        case Settled():
            return settled(state, event)
        case Decided():
            return decided(state, event)
        case PromptStarted(mode=mode, route=route):
            return SideEffectStep(
                SideEffectDuplicate(
                    mode_on(route, mode),
                    route,
                    state.ladder,
                    state.tracks,
                    state.requests,
                    state.is_enforcement_disabled,
                )
            )
        case RequestEnded() | ThreadEnded():
            return SideEffectStep(ended(state, event))
    raise ValueError(f"event is a {type(event).__name__}; pass one of side_effect_events.Event")
