"""Identical call: the model concludes one call short of the limit, at the limit the run fails.

The rules, the modes and their sources stand in docs/guards/identical_call.md.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reducer.guards.calls import ToolCall
from reducer.guards.identical_call.events import (
    BatchSettled,
    Budget,
    CallsProposed,
    Event,
    Failure,
    RunAction,
    RunStarted,
    SynthesisCause,
    Turn,
    TurnMode,
    TurnStarted,
)
from reducer.guards.identical_call.state import (
    GUARD,
    IdenticalCall,
    PendingCall,
)
from reducer.guards.identical_call.tally import Tally, evidence_digest
from reducer.guards.mistakes import mistaken
from reducer.guards.transition import FailureBucket, Transition
from reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, ResetReason


class IdenticalCallStep(NamedTuple):
    """The new state, what to report, and what a host does.

    `turn` says how to call the model, None when it must not be called. With the action `fail`
    nothing of the batch runs, and `failure` says why. `loop_type` is set once, by the step that
    found the loop.
    """

    state: IdenticalCall
    transitions: tuple[Transition, ...] = ()
    action: RunAction = RunAction.NONE
    turn: Turn | None = None
    failure: Failure | None = None
    loop_type: LoopType | None = None


def reduce(state: IdenticalCall, event: Event) -> IdenticalCallStep:
    """Return the state after an event, with what to report and to do.

    A call without a fingerprint is never counted. A failed run stays failed until a new one.

    Raises:
        ValueError: no state or event of this guard, a mode or route that is a plain text, a
            budget that is no `Budget`, or an evidence key that is no text.
    """
    if not isinstance(state, IdenticalCall):
        remedy = "pass what IdenticalCall.start (reducer.guards.identical_call) or a step gave"
        raise mistaken("state", state, remedy)
    match event:
        case RunStarted():
            return IdenticalCallStep(_started(state, event))
        case TurnStarted(budget=budget):
            return _turn_started(state, _budget(budget))
        case CallsProposed(calls=calls):
            return proposed(state, calls)
        case BatchSettled(evidence=evidence):
            return settled(state, evidence)
    raise mistaken(
        "event",
        event,
        "pass a RunStarted, TurnStarted, CallsProposed or BatchSettled of "
        "reducer.guards.identical_call",
    )


def _budget(found: Budget) -> Budget:
    try:
        return Budget(found)
    except ValueError:
        words = ", ".join(f"Budget.{each.name}" for each in Budget)
        raise mistaken(
            "budget", found, f"pass one of {words} (reducer.guards.identical_call)"
        ) from None


def _started(state: IdenticalCall, event: RunStarted) -> IdenticalCall:
    return IdenticalCall.start(
        state.mode if event.mode is None else event.mode,
        route=state.route if event.route is None else event.route,
        threshold=state.threshold,
        max_evidence_resets=state.max_evidence_resets,
    )


def _turn_started(state: IdenticalCall, budget: Budget) -> IdenticalCallStep:
    if state.failure is not None:
        return _over(state, state.failure)
    if budget is Budget.EXHAUSTED:
        return _failed(state._replace(turn=None, pending=None), Failure.BUDGET_EXCEEDED)
    # A turn that is still open is tried once more: what was spent before is not given back.
    was_reserve = state.turn is not None and state.turn.cause is SynthesisCause.BUDGET
    is_owed = state.is_repeating and state.acts_as is not Mode.OFF
    transitions: tuple[Transition, ...] = ()
    turn = Turn()
    phase = state.phase
    if budget is Budget.RESERVE or was_reserve:
        turn = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.BUDGET)
    elif is_owed:
        turn = _TURNS[state.acts_as]
        if phase not in {GuardPhase.WARNED, GuardPhase.LATCHED}:
            phase = GuardPhase.WARNED
            word = Decision.WOULD_WARN if state.acts_as is Mode.SHADOW else Decision.WARNED
            transitions = (_transition(state, word, phase, state.tallies.leading),)
    after = state._replace(turn=turn, phase=phase, pending=None, is_finished=False)
    return IdenticalCallStep(after, transitions, turn=turn)


def proposed(state: IdenticalCall, calls: tuple[ToolCall, ...]) -> IdenticalCallStep:
    """Return the step after calls were proposed, as CallsProposed tells them."""
    if state.failure is not None:
        return _over(state, state.failure)
    if not calls:
        after = state._replace(turn=None, pending=None, is_finished=True)
        return IdenticalCallStep(after, action=RunAction.COMPLETE)
    turn = state.turn
    if turn is not None and turn.mode is TurnMode.SYNTHESIS_ONLY:
        closed = state._replace(turn=None, pending=None)
        if turn.cause is SynthesisCause.BUDGET:
            return _failed(closed, Failure.BUDGET_EXCEEDED)
        return _looped(closed, state.tallies.leading)
    if state.mode is Mode.OFF:
        pending = tuple(PendingCall(call.call_id, None) for call in calls)
        after = state._replace(turn=None, pending=pending, is_finished=False)
        return IdenticalCallStep(after, action=RunAction.DISPATCH)
    return _counted(state, calls)


def _counted(state: IdenticalCall, calls: tuple[ToolCall, ...]) -> IdenticalCallStep:
    asked = [call.fingerprint for call in calls if call.fingerprint is not None]
    stops = state.acts_as is Mode.ENFORCE
    tallies, over = state.tallies.counted(
        asked,
        streak_from=min(_STREAK_FROM, state.threshold - 1),
        threshold=state.threshold,
        stops=stops,
    )
    if over is not None and stops:
        return _looped(state._replace(tallies=tallies, turn=None, pending=None), over)
    most = _NO_CALL
    for call in asked:
        if tallies.by_call[call].times > most.times:
            most = tallies.by_call[call]
    transitions: tuple[Transition, ...] = ()
    phase = state.phase
    if phase is not GuardPhase.LATCHED:
        if over is not None:
            phase = GuardPhase.LATCHED
            transitions = (_transition(state, Decision.WOULD_STOP, phase, over),)
        elif most.times >= _STREAK_FROM:
            phase = phase if phase is GuardPhase.WARNED else GuardPhase.TRACKING
            transitions = (_transition(state, Decision.TRACKED, phase, most),)
    after = state._replace(
        tallies=tallies,
        turn=None,
        pending=tuple([PendingCall(call.call_id, call.fingerprint) for call in calls]),
        is_finished=False,
        phase=phase,
    )
    return IdenticalCallStep(after, transitions, RunAction.DISPATCH)


def settled(state: IdenticalCall, evidence: Mapping[str, str | None]) -> IdenticalCallStep:
    """Return the step after a batch has settled, with the evidence of BatchSettled."""
    if state.failure is not None:
        return _over(state, state.failure)
    found = list(_evidence(state, evidence)) if evidence else []
    if not found:
        return IdenticalCallStep(state._replace(pending=None))
    tallies, restarted = state.tallies.settled(found, max_resets=state.max_evidence_resets)
    after = state._replace(tallies=tallies, pending=None)
    if not restarted or state.phase is GuardPhase.LATCHED:
        return IdenticalCallStep(after)
    phase = _phase_after_restart(after)
    transition = _transition(after, Decision.RESET, phase, restarted[0])
    return IdenticalCallStep(after._replace(phase=phase), (transition,))


def _evidence(
    state: IdenticalCall, evidence: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the fingerprint of each counted call that brought evidence, and its key's digest."""
    for call_id, fingerprint in state.pending or ():
        key = None if call_id is None else evidence.get(call_id)
        if key is not None and not isinstance(key, str):
            raise mistaken("one of evidence", key, "pass a digest of the result as text")
        if key and fingerprint is not None:
            yield fingerprint, evidence_digest(key)


def _phase_after_restart(state: IdenticalCall) -> GuardPhase:
    # A warned guard owes its turn to a call that was not restarted: that one would be latched.
    if state.phase is GuardPhase.WARNED:
        return GuardPhase.WARNED
    return GuardPhase.TRACKING if state.max_count >= _STREAK_FROM else GuardPhase.IDLE


def _over(state: IdenticalCall, failure: Failure) -> IdenticalCallStep:
    return IdenticalCallStep(state, action=RunAction.FAIL, failure=failure)


def _failed(state: IdenticalCall, failure: Failure) -> IdenticalCallStep:
    return _over(state._replace(failure=failure), failure)


def _looped(state: IdenticalCall, tally: Tally) -> IdenticalCallStep:
    step = _failed(state, Failure.TOOL_LOOP_DETECTED)
    return step._replace(
        state=step.state._replace(phase=GuardPhase.LATCHED),
        transitions=(_transition(state, Decision.STOPPED, GuardPhase.LATCHED, tally),),
        loop_type=LoopType.IDENTICAL_TOOL_CALL,
    )


def _transition(
    state: IdenticalCall, decision: Decision, phase: GuardPhase, tally: Tally
) -> Transition:
    return Transition(
        guard=GUARD,
        route=state.route,
        mode=state.mode,
        phase_from=state.phase,
        phase_to=phase,
        decision=decision,
        # Only evidence restarts a count: the call went through and brought something new.
        reset_reason=ResetReason.SUCCESS if decision is Decision.RESET else None,
        failure_count=FailureBucket.of(tally.times),
        candidate_ordinal=tally.ordinal,
    )


_STREAK_FROM = 2
_NO_CALL = Tally()
_TURNS = {
    Mode.SHADOW: Turn(),
    Mode.WARN: Turn(TurnMode.NORMAL, SynthesisCause.REPETITION),
    Mode.ENFORCE: Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.REPETITION),
}
