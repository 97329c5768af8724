"""Duplicate provider tool-call id: a replayed call is answered once, then stops the turn.

The rules, the modes and their sources stand in docs/guards/duplicate_call_id.md.
"""

from typing import NamedTuple

from reducer.guards.duplicate_call_id.batch import (
    ReceivedCall,
    Responses,
    firsts_of,
    id_of,
    received,
    trigger_of,
)
from reducer.guards.duplicate_call_id.events import (
    BatchProposed,
    CallAction,
    CallVerdict,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
)
from reducer.guards.duplicate_call_id.names import Naming, digest_of
from reducer.guards.duplicate_call_id.state import (
    GUARD,
    DuplicateCallId,
)
from reducer.guards.mistakes import mistaken
from reducer.guards.modes import check_mode, check_route
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, Route

Event = HistorySeeded | PromptStarted | BatchProposed


class DuplicateCallIdStep(NamedTuple):
    """The new state, what to report, and what to do with each call of the batch, in its order.

    `is_breaker_open`: the batch was dropped whole, `trigger_id` being the id that did it.
    `loop_type` is set for the first such batch of a prompt: report it once.
    """

    state: DuplicateCallId
    transitions: tuple[Transition, ...] = ()
    verdicts: tuple[CallVerdict, ...] = ()
    is_breaker_open: bool = False
    trigger_id: str | None = None
    loop_type: LoopType | None = None
    turn_outcome: TurnOutcome = TurnOutcome.CONTINUE


def reduce(state: DuplicateCallId, event: Event) -> DuplicateCallIdStep:
    """Return the state after an event, with what to report and to do with each call.

    A call without an id or without a fingerprint is never taken for a replay.

    Raises:
        ValueError: no state or event of this guard, a mode or route that is a plain text, a call
            id that is no text, or a fingerprint that `ToolCall.of` did not make.
    """
    if not isinstance(state, DuplicateCallId):
        remedy = "pass what DuplicateCallId.start (reducer.guards.duplicate_call_id) or a step gave"
        raise mistaken("state", state, remedy)
    match event:
        case PromptStarted():
            return DuplicateCallIdStep(_started(state, event))
        case HistorySeeded():
            return DuplicateCallIdStep(_seeded(state, event))
        case BatchProposed(responses=responses):
            return decided(state, responses)
    raise mistaken(
        "event",
        event,
        "pass a HistorySeeded, PromptStarted or BatchProposed of reducer.guards.duplicate_call_id",
    )


def _started(state: DuplicateCallId, event: PromptStarted) -> DuplicateCallId:
    mode = state.mode if event.mode is None else event.mode
    route = state.route if event.route is None else event.route
    check_mode(GUARD, mode)
    check_route(route)
    return state._replace(
        mode=mode,
        route=route,
        answered={},
        phase=GuardPhase.IDLE if state.phase is GuardPhase.IDLE else GuardPhase.TRACKING,
        is_enforcement_disabled=False,
    )


def _seeded(state: DuplicateCallId, event: HistorySeeded) -> DuplicateCallId:
    if state.mode is Mode.OFF:
        return state
    naming = Naming(state.names)
    phase = state.phase
    for entry in event.entries:
        call_id = id_of(entry.call)
        if call_id is None:
            continue
        if entry.is_answered and naming.first(call_id) is None:
            naming.record(call_id, digest_of(entry.call.fingerprint))
            phase = GuardPhase.TRACKING if phase is GuardPhase.IDLE else phase
        else:
            naming.reserve(call_id)
    return state._replace(names=naming.done(), phase=phase)


def decided(state: DuplicateCallId, responses: Responses) -> DuplicateCallIdStep:
    """Return the step after a batch, given per model response as in BatchProposed."""
    if state.mode is Mode.OFF:
        ids = [id_of(call) for response in responses for call in response]
        verdicts = tuple([CallVerdict(raw_id, CallAction.EXECUTE, raw_id) for raw_id in ids])
        return DuplicateCallIdStep(state, verdicts=verdicts)
    firsts = firsts_of(responses, state.names.ids)
    if firsts is not None:
        return _began(state, firsts)
    calls = received(responses)
    trigger = trigger_of(calls, handled=state.names.ids, answered=state.answered)
    if trigger is not None and state.acts_as is Mode.ENFORCE:
        return _dropped(state, calls, trigger)
    return _admitted(state, calls, trigger)


def _began(state: DuplicateCallId, firsts: dict[str, bytes | None]) -> DuplicateCallIdStep:
    """Admit the ordinary batch, in which every call is the first under its id."""
    names = state.names._replace(ids=state.names.ids.plus(firsts))
    verdicts = tuple([CallVerdict(raw_id, CallAction.EXECUTE, raw_id) for raw_id in firsts])
    if state.phase is not GuardPhase.IDLE:
        return DuplicateCallIdStep(state._replace(names=names), (), verdicts)
    transition = _transition(state, Decision.TRACKED, GuardPhase.TRACKING)
    after = state._replace(names=names, phase=GuardPhase.TRACKING)
    return DuplicateCallIdStep(after, (transition,), verdicts)


def _dropped(
    state: DuplicateCallId, calls: list[ReceivedCall], trigger: str
) -> DuplicateCallIdStep:
    is_first = state.phase is not GuardPhase.LATCHED
    ordinal = state.answered.get(trigger, len(state.answered) + 1)
    is_watched = state.route is Route.INTERACTIVE_FOREGROUND
    return DuplicateCallIdStep(
        state=state._replace(phase=GuardPhase.LATCHED),
        transitions=(_transition(state, Decision.STOPPED, GuardPhase.LATCHED, ordinal),)
        if is_first
        else (),
        verdicts=tuple(
            CallVerdict(raw_id, CallAction.DROP if is_second else CallAction.BATCH_DROPPED, None)
            for raw_id, _, is_second in calls
        ),
        is_breaker_open=True,
        trigger_id=trigger,
        loop_type=LoopType.GLOBAL_TOOL_CALL_DUPLICATE if is_first else None,
        turn_outcome=TurnOutcome.LOOP_DETECTED_ERROR if is_watched else TurnOutcome.END_TURN,
    )


def _admitted(
    state: DuplicateCallId, calls: list[ReceivedCall], trigger: str | None
) -> DuplicateCallIdStep:
    naming = Naming(state.names)
    answered = dict(state.answered)
    verdicts = [_verdict(call, naming, answered) for call in calls]
    if state.acts_as is Mode.SHADOW:
        verdicts = [CallVerdict(each.raw_id, CallAction.EXECUTE, each.raw_id) for each in verdicts]
    transitions = _transitions(state, trigger, answered, is_any_recorded=naming.is_any_recorded)
    after = state._replace(
        names=naming.done(),
        answered=answered,
        phase=transitions[-1].phase_to if transitions else state.phase,
    )
    return DuplicateCallIdStep(after, transitions, tuple(verdicts))


def _verdict(call: ReceivedCall, naming: Naming, answered: dict[str, int]) -> CallVerdict:
    """Decide about one call, after those before it; what it changes is kept in the other two."""
    raw_id, digest, is_second = call
    if is_second:
        return CallVerdict(raw_id, CallAction.DROP, None)
    name = naming.take(raw_id)
    if raw_id is None:
        return CallVerdict(None, CallAction.EXECUTE, name)
    first = naming.first(raw_id)
    if first is None:
        naming.record(raw_id, digest)
    elif digest and first == digest:
        answered.setdefault(raw_id, len(answered) + 1)
        return CallVerdict(raw_id, CallAction.SYNTHETIC, name)
    return CallVerdict(raw_id, CallAction.EXECUTE, name)


def _transitions(
    state: DuplicateCallId,
    trigger: str | None,
    answered: dict[str, int],
    *,
    is_any_recorded: bool,
) -> tuple[Transition, ...]:
    """Return what an admitted batch reports: the first handled id, each replay, the breaker."""
    if state.phase is GuardPhase.LATCHED:
        return ()
    if trigger is not None:
        stop = _transition(state, Decision.WOULD_STOP, GuardPhase.LATCHED, answered[trigger])
        return (stop,)
    found = []
    if state.phase is GuardPhase.IDLE and is_any_recorded:
        found.append(_transition(state, Decision.TRACKED, GuardPhase.TRACKING))
        state = state._replace(phase=GuardPhase.TRACKING)
    word = Decision.WOULD_WARN if state.acts_as is Mode.SHADOW else Decision.WARNED
    for ordinal in range(len(state.answered) + 1, len(answered) + 1):
        found.append(_transition(state, word, GuardPhase.WARNED, ordinal))
        state = state._replace(phase=GuardPhase.WARNED)
    return tuple(found)


def _transition(
    state: DuplicateCallId, decision: Decision, phase: GuardPhase, ordinal: int = 0
) -> Transition:
    return Transition(
        guard=GUARD,
        route=state.route,
        mode=state.mode,
        phase_from=state.phase,
        phase_to=phase,
        decision=decision,
        candidate_ordinal=ordinal,
    )
