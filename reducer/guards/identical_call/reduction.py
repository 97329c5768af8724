"""Identical call, step by step: a synthesis turn one call before the limit, failure at the limit.

`docs/guards/identical_call.md` has the rules, the modes and their sources.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.identical_call.events import (
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
from guardwave.reducer.guards.identical_call.state import (
    GUARD,
    IdenticalCall,
    PendingCall,
    Tally,
    evidence_digest,
)
from guardwave.reducer.guards.transition import FailureBucket, Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, ResetReason


class IdenticalCallStep(NamedTuple):
    """The new state, the transitions to report, and the host's action.

    `turn` is the form of the model call, None if the model must not be called. With the action
    `fail` nothing of the batch runs, and `failure` is the reason. `loop_type` is set once, by the
    step that found the loop.
    """

    state: IdenticalCall
    transitions: tuple[Transition, ...] = ()
    action: RunAction = RunAction.NONE
    turn: Turn | None = None
    failure: Failure | None = None
    loop_type: LoopType | None = None


def reduce(state: IdenticalCall, event: Event) -> IdenticalCallStep:
    """Return the state after an event, with the reports and the host's action.

    A call without a fingerprint never counts. A failed run stays failed until a new run.

    Raises:
        ValueError: the state or event is not of this guard, a mode or route is a plain text, the
            budget is not a `Budget`, or an evidence key is not a text.
    """
    if not isinstance(state, IdenticalCall):
        remedy = (
            "pass the result of IdenticalCall.start (guardwave.guards.identical_call) or of a step"
        )
        raise argument_error("state", state, remedy)
    match event:
        case RunStarted():
            return IdenticalCallStep(_start_run(state, event))
        case TurnStarted(budget=budget):
            return _start_turn(state, _check_budget(budget))
        case CallsProposed(calls=calls):
            return propose(state, calls)
        case BatchSettled(evidence=evidence):
            return settle(state, evidence)
    raise argument_error(
        "event",
        event,
        "pass a RunStarted, TurnStarted, CallsProposed or BatchSettled of "
        "guardwave.guards.identical_call",
    )


def _check_budget(budget: Budget) -> Budget:
    try:
        return Budget(budget)
    except ValueError:
        words = ", ".join(f"Budget.{word.name}" for word in Budget)
        raise argument_error(
            "budget", budget, f"pass one of {words} (guardwave.guards.identical_call)"
        ) from None


def _start_run(state: IdenticalCall, event: RunStarted) -> IdenticalCall:
    return IdenticalCall.start(
        state.mode if event.mode is None else event.mode,
        route=state.route if event.route is None else event.route,
        threshold=state.threshold,
        max_evidence_resets=state.max_evidence_resets,
    )


def _start_turn(state: IdenticalCall, budget: Budget) -> IdenticalCallStep:
    if state.failure is not None:
        return _fail_again(state, state.failure)
    if budget is Budget.EXHAUSTED:
        return _fail(state._replace(turn=None, pending=None), Failure.BUDGET_EXCEEDED)
    # An open turn is a retry of a failed call, and its spent reserve stays spent.
    was_reserve = state.turn is not None and state.turn.cause is SynthesisCause.BUDGET
    is_due = state.is_repeating and state.active_mode is not Mode.OFF
    transitions: tuple[Transition, ...] = ()
    turn = Turn()
    phase = state.phase
    if budget is Budget.RESERVE or was_reserve:
        turn = Turn(TurnMode.SYNTHESIS_ONLY, SynthesisCause.BUDGET)
    elif is_due:
        turn = _TURNS[state.active_mode]
        if phase not in {GuardPhase.WARNED, GuardPhase.LATCHED}:
            phase = GuardPhase.WARNED
            word = Decision.WOULD_WARN if state.active_mode is Mode.SHADOW else Decision.WARNED
            transitions = (_transition(state, word, phase, state.tallies.leading),)
    after = state._replace(turn=turn, phase=phase, pending=None, is_finished=False)
    return IdenticalCallStep(after, transitions, turn=turn)


def propose(state: IdenticalCall, calls: tuple[ToolCall, ...]) -> IdenticalCallStep:
    """Return the step after the calls of `CallsProposed`."""
    if state.failure is not None:
        return _fail_again(state, state.failure)
    if not calls:
        after = state._replace(turn=None, pending=None, is_finished=True)
        return IdenticalCallStep(after, action=RunAction.COMPLETE)
    turn = state.turn
    if turn is not None and turn.mode is TurnMode.SYNTHESIS_ONLY:
        ended = state._replace(turn=None, pending=None)
        if turn.cause is SynthesisCause.BUDGET:
            return _fail(ended, Failure.BUDGET_EXCEEDED)
        return _stop_loop(ended, state.tallies.leading)
    if state.mode is Mode.OFF:
        pending = tuple(PendingCall(call.call_id, None) for call in calls)
        after = state._replace(turn=None, pending=pending, is_finished=False)
        return IdenticalCallStep(after, action=RunAction.DISPATCH)
    return _count(state, calls)


def _count(state: IdenticalCall, calls: tuple[ToolCall, ...]) -> IdenticalCallStep:
    fingerprints = [call.fingerprint for call in calls if call.fingerprint is not None]
    stops = state.active_mode is Mode.ENFORCE
    tallies, over = state.tallies.add_calls(
        fingerprints,
        streak_from=min(_STREAK_FROM, state.threshold - 1),
        threshold=state.threshold,
        stops=stops,
    )
    if over is not None and stops:
        return _stop_loop(state._replace(tallies=tallies, turn=None, pending=None), over)
    most = _NO_CALL
    for fingerprint in fingerprints:
        if tallies.by_call[fingerprint].times > most.times:
            most = tallies.by_call[fingerprint]
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


def settle(state: IdenticalCall, evidence: Mapping[str, str | None]) -> IdenticalCallStep:
    """Return the step after a batch, with the evidence of `BatchSettled`."""
    if state.failure is not None:
        return _fail_again(state, state.failure)
    digests = list(_evidence(state, evidence)) if evidence else []
    if not digests:
        return IdenticalCallStep(state._replace(pending=None))
    tallies, restarted = state.tallies.add_evidence(digests, max_resets=state.max_evidence_resets)
    after = state._replace(tallies=tallies, pending=None)
    if not restarted or state.phase is GuardPhase.LATCHED:
        return IdenticalCallStep(after)
    phase = _phase_after_restart(after)
    transition = _transition(after, Decision.RESET, phase, restarted[0])
    return IdenticalCallStep(after._replace(phase=phase), (transition,))


def _evidence(
    state: IdenticalCall, evidence: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the fingerprint and the evidence digest of each counted call with evidence."""
    for call_id, fingerprint in state.pending or ():
        key = None if call_id is None else evidence.get(call_id)
        if key is not None and not isinstance(key, str):
            raise argument_error("one of evidence", key, "pass a digest of the result as text")
        if key and fingerprint is not None:
            yield fingerprint, evidence_digest(key)


def _phase_after_restart(state: IdenticalCall) -> GuardPhase:
    # The warning is about a call that did not restart: to ask for it again would have latched.
    if state.phase is GuardPhase.WARNED:
        return GuardPhase.WARNED
    return GuardPhase.TRACKING if state.max_count >= _STREAK_FROM else GuardPhase.IDLE


def _fail_again(state: IdenticalCall, failure: Failure) -> IdenticalCallStep:
    return IdenticalCallStep(state, action=RunAction.FAIL, failure=failure)


def _fail(state: IdenticalCall, failure: Failure) -> IdenticalCallStep:
    return _fail_again(state._replace(failure=failure), failure)


def _stop_loop(state: IdenticalCall, tally: Tally) -> IdenticalCallStep:
    step = _fail(state, Failure.TOOL_LOOP_DETECTED)
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
        # Only evidence restarts a count: the call succeeded and had a new result.
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
