"""Duplicate call id, step by step: a replayed call is answered once, then it stops the turn.

The calls of a batch are compared with the ids of the session; then a verdict follows for each.
`docs/guards/duplicate_call_id.md` has the rules, the modes and their sources.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id.events import (
    BatchProposed,
    CallAction,
    CallVerdict,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
)
from guardwave.reducer.guards.duplicate_call_id.state import (
    GUARD,
    BatchNaming,
    DuplicateCallId,
    digest_of,
)
from guardwave.reducer.guards.modes import check_mode, check_route
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, LoopType, Mode, Route

Responses: TypeAlias = tuple[tuple[ToolCall, ...], ...]


class ReceivedCall(NamedTuple):
    """A call of the batch with its id, None for a missing one, and its digest.

    `is_second` means that its response already had a call under this id.
    """

    raw_id: str | None
    digest: bytes
    is_second: bool


def received_calls(responses: Responses) -> list[ReceivedCall]:
    """Return the calls of all responses in order.

    Raises:
        ValueError: a call id is not a text, or a fingerprint is not from `ToolCall.of`.
    """
    calls = []
    for response in responses:
        used: set[str] = set()
        for call in response:
            raw_id = id_of(call)
            calls.append(ReceivedCall(raw_id, digest_of(call.fingerprint), raw_id in used))
            if raw_id is not None:
                used.add(raw_id)
    return calls


def new_ids_of(
    responses: Responses, known: Mapping[str, bytes | None]
) -> dict[str, bytes | None] | None:
    """Return the ids and digests of a batch whose calls all use new and different ids, else None.

    Raises:
        ValueError: as `received_calls`.
    """
    digests: dict[str, bytes | None] = {}
    for response in responses:
        for call in response:
            raw_id = id_of(call)
            if raw_id is None or raw_id in digests or raw_id in known:
                return None
            digests[raw_id] = digest_of(call.fingerprint)
    return digests or None


def find_trigger(
    calls: list[ReceivedCall], *, handled: Mapping[str, bytes | None], answered: Mapping[str, int]
) -> str | None:
    """Return the id that opens the breaker: answered before, or replayed twice in this batch."""
    replays: dict[str, int] = {}
    for raw_id, digest, is_second in calls:
        if raw_id is None or is_second or not digest or raw_id not in handled:
            continue
        if handled[raw_id] == digest:
            replays[raw_id] = replays.get(raw_id, 0) + 1
    for raw_id, count in replays.items():
        if count > 1 or raw_id in answered:
            return raw_id
    return None


def id_of(call: ToolCall) -> str | None:
    """Return the provider's id; None for a missing or blank one.

    Raises:
        ValueError: the id is not a text.
    """
    call_id = call.call_id
    if call_id is None:
        return None
    if not isinstance(call_id, str):
        raise argument_error("call_id", call_id, "pass the provider's text, or None without one")
    return call_id if call_id.strip() else None


Event = HistorySeeded | PromptStarted | BatchProposed


class DuplicateCallIdStep(NamedTuple):
    """The new state, the transitions to report, and the verdicts on the calls, in order.

    `is_breaker_open` means that `trigger_id` dropped the whole batch. `loop_type` is set for the
    first such batch of a prompt, so that it is reported once.
    """

    state: DuplicateCallId
    transitions: tuple[Transition, ...] = ()
    verdicts: tuple[CallVerdict, ...] = ()
    is_breaker_open: bool = False
    trigger_id: str | None = None
    loop_type: LoopType | None = None
    turn_outcome: TurnOutcome = TurnOutcome.CONTINUE


def reduce(state: DuplicateCallId, event: Event) -> DuplicateCallIdStep:
    """Return the state after an event, with the reports and the verdict on each call.

    A call without an id or without a fingerprint never counts as a replay.

    Raises:
        ValueError: the state or event is not of this guard, a mode or route is a plain text, a
            call id is not a text, or a fingerprint is not from `ToolCall.of`.
    """
    if not isinstance(state, DuplicateCallId):
        remedy = (
            "pass the result of DuplicateCallId.start (guardwave.guards.duplicate_call_id) "
            "or of a step"
        )
        raise argument_error("state", state, remedy)
    match event:
        case PromptStarted():
            return DuplicateCallIdStep(_start_prompt(state, event))
        case HistorySeeded():
            return DuplicateCallIdStep(_seed(state, event))
        case BatchProposed(responses=responses):
            return decide(state, responses)
    raise argument_error(
        "event",
        event,
        "pass a HistorySeeded, PromptStarted or BatchProposed of "
        "guardwave.guards.duplicate_call_id",
    )


def _start_prompt(state: DuplicateCallId, event: PromptStarted) -> DuplicateCallId:
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


def _seed(state: DuplicateCallId, event: HistorySeeded) -> DuplicateCallId:
    if state.mode is Mode.OFF:
        return state
    naming = BatchNaming(state.names)
    phase = state.phase
    for entry in event.entries:
        call_id = id_of(entry.call)
        if call_id is None:
            continue
        if entry.is_answered and naming.first_digest(call_id) is None:
            naming.record(call_id, digest_of(entry.call.fingerprint))
            phase = GuardPhase.TRACKING if phase is GuardPhase.IDLE else phase
        else:
            naming.reserve(call_id)
    return state._replace(names=naming.done(), phase=phase)


def decide(state: DuplicateCallId, responses: Responses) -> DuplicateCallIdStep:
    """Return the step after a batch, with a tuple for each model response as in BatchProposed."""
    if state.mode is Mode.OFF:
        ids = [id_of(call) for response in responses for call in response]
        verdicts = tuple([CallVerdict(raw_id, CallAction.EXECUTE, raw_id) for raw_id in ids])
        return DuplicateCallIdStep(state, verdicts=verdicts)
    new_ids = new_ids_of(responses, state.names.ids)
    if new_ids is not None:
        return _admit_new(state, new_ids)
    calls = received_calls(responses)
    trigger = find_trigger(calls, handled=state.names.ids, answered=state.answered)
    if trigger is not None and state.active_mode is Mode.ENFORCE:
        return _drop(state, calls, trigger)
    return _admit(state, calls, trigger)


def _admit_new(state: DuplicateCallId, new_ids: dict[str, bytes | None]) -> DuplicateCallIdStep:
    """Admit the ordinary batch, in which every call uses a new id, without further comparison."""
    names = state.names._replace(ids=state.names.ids.plus(new_ids))
    verdicts = tuple([CallVerdict(raw_id, CallAction.EXECUTE, raw_id) for raw_id in new_ids])
    if state.phase is not GuardPhase.IDLE:
        return DuplicateCallIdStep(state._replace(names=names), (), verdicts)
    transition = _transition(state, Decision.TRACKED, GuardPhase.TRACKING)
    after = state._replace(names=names, phase=GuardPhase.TRACKING)
    return DuplicateCallIdStep(after, (transition,), verdicts)


def _drop(state: DuplicateCallId, calls: list[ReceivedCall], trigger: str) -> DuplicateCallIdStep:
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


def _admit(
    state: DuplicateCallId, calls: list[ReceivedCall], trigger: str | None
) -> DuplicateCallIdStep:
    naming = BatchNaming(state.names)
    answered = dict(state.answered)
    verdicts = [_verdict(call, naming, answered) for call in calls]
    if state.active_mode is Mode.SHADOW:
        verdicts = [
            CallVerdict(verdict.raw_id, CallAction.EXECUTE, verdict.raw_id) for verdict in verdicts
        ]
    transitions = _transitions(state, trigger, answered, is_any_recorded=naming.is_any_recorded)
    after = state._replace(
        names=naming.done(),
        answered=answered,
        phase=transitions[-1].phase_to if transitions else state.phase,
    )
    return DuplicateCallIdStep(after, transitions, tuple(verdicts))


def _verdict(call: ReceivedCall, naming: BatchNaming, answered: dict[str, int]) -> CallVerdict:
    """Return the verdict on one call, and record it in `naming` and `answered` for later calls."""
    raw_id, digest, is_second = call
    if is_second:
        return CallVerdict(raw_id, CallAction.DROP, None)
    name = naming.take(raw_id)
    if raw_id is None:
        return CallVerdict(None, CallAction.EXECUTE, name)
    first = naming.first_digest(raw_id)
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
    """Return the transitions of an admitted batch: first handled id, each replay, the breaker."""
    if state.phase is GuardPhase.LATCHED:
        return ()
    if trigger is not None:
        stop = _transition(state, Decision.WOULD_STOP, GuardPhase.LATCHED, answered[trigger])
        return (stop,)
    transitions = []
    if state.phase is GuardPhase.IDLE and is_any_recorded:
        transitions.append(_transition(state, Decision.TRACKED, GuardPhase.TRACKING))
        state = state._replace(phase=GuardPhase.TRACKING)
    word = Decision.WOULD_WARN if state.active_mode is Mode.SHADOW else Decision.WARNED
    for ordinal in range(len(state.answered) + 1, len(answered) + 1):
        transitions.append(_transition(state, word, GuardPhase.WARNED, ordinal))
        state = state._replace(phase=GuardPhase.WARNED)
    return tuple(transitions)


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
