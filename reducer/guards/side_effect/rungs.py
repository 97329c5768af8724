"""What each verdict on a repeat means: in telemetry, to the model, as an incident, in each mode."""

from collections.abc import Iterator
from typing import NamedTuple

from reducer.guards import texts
from reducer.guards.side_effect.events import Verdict
from reducer.guards.side_effect.ladder import Action
from reducer.guards.side_effect.repeat import Layer
from reducer.guards.side_effect.state import Mark, SideEffectDuplicate
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, GuardPhase, Mode


class Rung(NamedTuple):
    """A verdict's decision word, the word where it is only what would have been, and the rest."""

    decision: Decision
    would: Decision
    phase: GuardPhase
    action: Action
    text: str | None


WITH_INCIDENT = Rung(Decision.WARNED, Decision.WOULD_WARN, GuardPhase.WARNED, Action.WARN, None)
_REFLECT = WITH_INCIDENT._replace(action=Action.REFLECT, text=texts.SIDE_EFFECT_NUDGE)
_SUSPEND = Rung(
    Decision.SUSPENDED,
    Decision.WOULD_SUSPEND,
    GuardPhase.WARNED,
    Action.SUSPEND,
    texts.SIDE_EFFECT_WAITING,
)
_BLOCK = Rung(
    Decision.STOPPED,
    Decision.WOULD_STOP,
    GuardPhase.LATCHED,
    Action.BLOCK,
    texts.SIDE_EFFECT_BLOCKED,
)
REFUSE = _BLOCK._replace(action=Action.SUSPEND, text=texts.SIDE_EFFECT_REFUSED)
RUNGS = {
    Verdict.EXECUTE_WITH_INCIDENT: WITH_INCIDENT,
    Verdict.REFLECT: _REFLECT,
    Verdict.SUSPEND: _SUSPEND,
    Verdict.BLOCK: _BLOCK,
    Verdict.REFUSE: REFUSE,
}
_RANK = {phase: rank for rank, phase in enumerate(GuardPhase)}


def due(action: Action, layer: Layer, *, is_nudged: bool) -> Verdict:
    """Return the verdict that a rung has for a repeat, when nothing stands against it."""
    if action is Action.WARN:
        return Verdict.EXECUTE_WITH_INCIDENT
    # Likeness is no proof: above an incident only a person decides.
    if action is Action.SUSPEND or layer is Layer.SEMANTIC:
        return Verdict.SUSPEND
    if action is Action.REFLECT and not is_nudged:
        return Verdict.REFLECT
    return Verdict.BLOCK


def advanced(mark: Mark, phase: GuardPhase) -> Mark:
    """Return the mark after one more repeat; a phase is never taken back within a request."""
    later = max(mark.phase, phase, key=_RANK.__getitem__)
    return Mark(mark.ordinal, later, mark.repeats + 1)


def reported(
    state: SideEffectDuplicate, before: Mark, after: Mark, rung: Rung
) -> tuple[Transition, ...]:
    """Return the transitions of one repeat in the state's mode (docs/guards).

    Where a repeat runs with an incident although the rung would have kept it back, both are said:
    the incident, and what enforcing would have done. The gate compares the second with `stopped`.
    """
    if state.mode is Mode.SHADOW:
        return (state.transition(before, after, rung.would),)
    if state.withholds or rung.decision is Decision.WARNED:
        return (state.transition(before, after, rung.decision),)
    return tuple(_warned_and_would(state, before, after, rung))


def _warned_and_would(
    state: SideEffectDuplicate, before: Mark, after: Mark, rung: Rung
) -> Iterator[Transition]:
    between = advanced(before, GuardPhase.WARNED)
    yield state.transition(before, between, Decision.WARNED)
    yield state.transition(between, after, rung.would)
