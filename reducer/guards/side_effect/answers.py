"""What comes after a call was proposed: it settles, a person answers, its request ends."""

from reducer.guards import texts
from reducer.guards.side_effect.events import (
    Decided,
    FirstUseToKeep,
    RequestEnded,
    Settled,
    SideEffectStep,
    ThreadEnded,
    Verdict,
)
from reducer.guards.side_effect.ladder import ApprovalScope, Scope
from reducer.guards.side_effect.repeat import DuplicateError, FirstUse
from reducer.guards.side_effect.rungs import REFUSE, advanced
from reducer.guards.side_effect.state import (
    NEW_TRACK,
    CallRecord,
    CallStatus,
    Mark,
    OpenQuestion,
    RequestLog,
    SideEffectDuplicate,
    Track,
    place_key,
)
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, ExecutionStatus, GuardPhase, Mode


def settled(state: SideEffectDuplicate, event: Settled) -> SideEffectStep:
    """Record how a call ended; only a success is a first run, or a use to keep.

    A call that isn't running changes nothing: it was exempt, or has settled before.
    """
    record = state.log_of(event.request).calls.get(event.call_id)
    if record is None or record.status is not CallStatus.RUNNING:
        return SideEffectStep(state, record=None if record is None else record.status)
    is_success = event.execution_status is ExecutionStatus.SUCCESS
    status = CallStatus.SUCCEEDED if is_success else CallStatus.FAILED
    after = CallRecord(status, is_approved=record.is_approved and not is_success)
    log = state.log_of(event.request).with_call(event.call_id, after)
    home = record.home
    if home is None:
        return SideEffectStep(state.with_log(event.request, log), record=status)
    track = state.tracks.get(home, NEW_TRACK).without_running(event.request, event.call_id)
    if not is_success:
        state = state.with_work(home, track, request=event.request, log=log)
        return SideEffectStep(state, record=status)
    use = FirstUse(event.call_id, event.request, event.now_ms, record.channel)
    transitions: tuple[Transition, ...] = ()
    if track.first is None:
        track = Track(use, track.running, track.is_nudged)
        before = log.mark_of(home)
        # A twin that was met while the first one ran has taken the phase further.
        tracking = before if before.repeats else Mark(before.ordinal, GuardPhase.TRACKING)
        log = log.with_mark(home, tracking)
        if state.mode is not Mode.OFF:
            transitions = (state.transition(before, tracking, Decision.TRACKED),)
    state = state.with_work(home, track, request=event.request, log=log)
    keep = None if record.xid is None else FirstUseToKeep(record.xid, use)
    return SideEffectStep(state, None, transitions, record=status, first_use=keep)


def decided(state: SideEffectDuplicate, event: Decided) -> SideEffectStep:
    """Run an approved call once; remember a refusal for the request.

    An answer that comes to no open question (a second one, or one to a question that was lost
    with its state) is `unasked`: nothing runs, nothing changes.
    """
    record = state.log_of(event.request).calls.get(event.call_id)
    if record is None or record.question is None:
        return SideEffectStep(
            state, Verdict.UNASKED, record=None if record is None else record.status
        )
    if event.is_approved:
        return _approved(state, event, record, record.question.home)
    return _refused(state, event, record.question)


def _approved(
    state: SideEffectDuplicate, event: Decided, record: CallRecord, home: str
) -> SideEffectStep:
    # For one attempt the approval is spent before the effect runs, so that a crash can't reuse it.
    is_for_call = state.ladder.approvals is ApprovalScope.CALL
    running = CallRecord(
        CallStatus.RUNNING,
        home,
        xid=record.xid,
        channel=record.channel,
        is_approved=is_for_call,
    )
    log = state.log_of(event.request).with_call(event.call_id, running)
    use = FirstUse(event.call_id, event.request, event.now_ms, record.channel)
    track = state.tracks.get(home, NEW_TRACK).with_running(use)
    state = state.with_work(home, track, request=event.request, log=log)
    return SideEffectStep(state, Verdict.EXECUTE, record=running.status)


def _refused(state: SideEffectDuplicate, event: Decided, question: OpenQuestion) -> SideEffectStep:
    """Deny the call and every other open question about the same, and remember the refusal."""
    log = state.log_of(event.request)
    identities = frozenset({question.home, question.about})
    twins = tuple(
        call_id
        for call_id, each in log.calls.items()
        if each.question is not None
        and call_id != event.call_id
        and not identities.isdisjoint({each.question.home, each.question.about})
    )
    denied = CallRecord(CallStatus.DENIED)
    log = RequestLog(
        {**log.calls, **dict.fromkeys((event.call_id, *twins), denied)},
        {**log.refused, **dict.fromkeys(identities, question.repeat.first)},
        log.marks,
        log.next_ordinal,
    )
    transitions: list[Transition] = []
    if state.withholds:
        for _ in (event.call_id, *twins):
            before = log.mark_of(question.about)
            after = advanced(before, GuardPhase.LATCHED)._replace(repeats=before.repeats)
            log = log.with_mark(question.about, after)
            transitions.append(state.transition(before, after, REFUSE.decision))
    return SideEffectStep(
        state.with_log(event.request, log),
        Verdict.REFUSED,
        tuple(transitions),
        record=CallStatus.DENIED,
        repeat=question.repeat,
        error=DuplicateError.of(question.repeat),
        text=texts.SIDE_EFFECT_REFUSED,
        resolved=twins,
    )


def ended(state: SideEffectDuplicate, event: RequestEnded | ThreadEnded) -> SideEffectDuplicate:
    """Return the state without what only the request or thread could still repeat."""
    if isinstance(event, ThreadEnded):
        prefix = place_key(Scope.THREAD, event.thread)
        tracks = {key: each for key, each in state.tracks.items() if not key.startswith(prefix)}
        return state.with_known(tracks, state.requests)
    prefix = place_key(Scope.REQUEST, event.request)
    settled_tracks = {
        key: track.without_runs_of(event.request)
        for key, track in state.tracks.items()
        if not key.startswith(prefix)
    }
    tracks = {key: track for key, track in settled_tracks.items() if track != NEW_TRACK}
    requests = {name: log for name, log in state.requests.items() if name != event.request}
    return state.with_known(tracks, requests)
