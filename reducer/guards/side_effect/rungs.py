"""Rungs: each verdict on a repeat with its telemetry, its text and its incident."""

from collections.abc import Iterator
from typing import NamedTuple

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.side_effect.events import Verdict
from guardwave.reducer.guards.side_effect.ladder import Action
from guardwave.reducer.guards.side_effect.repeat import Layer
from guardwave.reducer.guards.side_effect.state import Mark, SideEffectDuplicate
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode


class Rung(NamedTuple):
    """The decision of a verdict, the decision while it is not enforced, and its other effects."""

    decision: Decision
    unenforced: Decision
    phase: GuardPhase
    action: Action
    text: str | None


WITH_INCIDENT = Rung(Decision.WARNED, Decision.WOULD_WARN, GuardPhase.WARNED, Action.WARN, None)
_REFLECT = WITH_INCIDENT._replace(action=Action.REFLECT, text=messages.SIDE_EFFECT_NUDGE)
_SUSPEND = Rung(
    Decision.SUSPENDED,
    Decision.WOULD_SUSPEND,
    GuardPhase.WARNED,
    Action.SUSPEND,
    messages.SIDE_EFFECT_WAITING,
)
_BLOCK = Rung(
    Decision.STOPPED,
    Decision.WOULD_STOP,
    GuardPhase.LATCHED,
    Action.BLOCK,
    messages.SIDE_EFFECT_BLOCKED,
)
REFUSE = _BLOCK._replace(action=Action.SUSPEND, text=messages.SIDE_EFFECT_REFUSED)
RUNGS = {
    Verdict.EXECUTE_WITH_INCIDENT: WITH_INCIDENT,
    Verdict.REFLECT: _REFLECT,
    Verdict.SUSPEND: _SUSPEND,
    Verdict.BLOCK: _BLOCK,
    Verdict.REFUSE: REFUSE,
}
_RANK = {phase: rank for rank, phase in enumerate(GuardPhase)}


def verdict_for(action: Action, layer: Layer, *, is_nudged: bool) -> Verdict:
    """Return the verdict of a rung on a repeat."""
    if action is Action.WARN:
        return Verdict.EXECUTE_WITH_INCIDENT
    # Likeness is no proof: anything above an incident needs a person.
    if action is Action.SUSPEND or layer is Layer.SEMANTIC:
        return Verdict.SUSPEND
    if action is Action.REFLECT and not is_nudged:
        return Verdict.REFLECT
    return Verdict.BLOCK


def advance(mark: Mark, phase: GuardPhase) -> Mark:
    """Return the mark after one more repeat; its phase never falls within a request."""
    later = max(mark.phase, phase, key=_RANK.__getitem__)
    return Mark(mark.ordinal, later, mark.repeats + 1)


def transitions_of(
    state: SideEffectDuplicate, before: Mark, after: Mark, rung: Rung
) -> tuple[Transition, ...]:
    """Return the transitions of one repeat in the state's mode (`docs/guards`).

    If a repeat runs with an incident although the rung would have stopped it, both are reported:
    the incident and the unenforced decision. The gate compares the second with `stopped`.
    """
    if state.mode is Mode.SHADOW:
        return (state.transition(before, after, rung.unenforced),)
    if state.withholds or rung.decision is Decision.WARNED:
        return (state.transition(before, after, rung.decision),)
    return tuple(_warned_and_unenforced(state, before, after, rung))


def _warned_and_unenforced(
    state: SideEffectDuplicate, before: Mark, after: Mark, rung: Rung
) -> Iterator[Transition]:
    between = advance(before, GuardPhase.WARNED)
    yield state.transition(before, between, Decision.WARNED)
    yield state.transition(between, after, rung.unenforced)
