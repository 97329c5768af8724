"""What comes after a call was proposed: it settles, a person answers, its request ends."""

from reducer.guards import texts
from reducer.guards.side_effect.events import (
    Decided,
    FirstUseToKeep,
    RequestEnded,
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
    SideEffectDuplicate,
    Track,
    in_request,
    place_key,
)
from reducer.guards.side_effect.work import Work
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, ExecutionStatus, GuardPhase, Mode


def settled(
    work: Work, call_id: str, status: ExecutionStatus | None, now_ms: int
) -> SideEffectStep:
    """Record how a call ended; only a success is a first run, or a use to keep.

    A call that isn't running changes nothing: it was exempt, or has settled before. What changes
    is kept in `work`; the step's own state is the one before.
    """
    record = work.calls.get(call_id)
    if record is None or record.status is not CallStatus.RUNNING:
        return SideEffectStep(work.before, record=None if record is None else record.status)
    if status is not ExecutionStatus.SUCCESS:
        return _failed(work, call_id, record)
    work.record(call_id, CallRecord(CallStatus.SUCCEEDED))
    home = record.home
    if home is None:
        return SideEffectStep(work.before, record=CallStatus.SUCCEEDED)
    use = FirstUse(call_id, work.request, now_ms, record.channel)
    transitions: tuple[Transition, ...] = ()
    track = work.track_of(home).without_running(work.request, call_id)
    if track.first is None:
        track = Track(use, track.running, track.is_nudged)
        before = work.mark_of(home)
        # A twin that was met while the first one ran has taken the phase further.
        tracking = before if before.repeats else Mark(before.ordinal, GuardPhase.TRACKING)
        work.mark(home, tracking)
        if work.before.mode is not Mode.OFF:
            transitions = (work.before.transition(before, tracking, Decision.TRACKED),)
    work.follow(home, track)
    if work.is_threaded:
        _settled_in_request(work, home, use)
    keep = None if record.xid is None else FirstUseToKeep(record.xid, use)
    return SideEffectStep(work.before, None, transitions, CallStatus.SUCCEEDED, first_use=keep)


def _settled_in_request(work: Work, home: str, use: FirstUse) -> None:
    """Let calls without a thread see what one with a thread did in their request."""
    for place in work.places_of(home)[1:]:
        track = work.track_of(place).without_running(work.request, use.call_id)
        first = use if track.first is None else track.first
        work.follow(place, Track(first, track.running, track.is_nudged))


def _failed(work: Work, call_id: str, record: CallRecord) -> SideEffectStep:
    work.record(call_id, CallRecord(CallStatus.FAILED, is_approved=record.is_approved))
    if record.home is not None:
        for place in work.places_of(record.home):
            work.follow(place, work.track_of(place).without_running(work.request, call_id))
    return SideEffectStep(work.before, record=CallStatus.FAILED)


def decided(state: SideEffectDuplicate, event: Decided) -> SideEffectStep:
    """Run an approved call once; remember a refusal for the request.

    An answer that comes to no open question (a second one, or one to a question that was lost
    with its state) is `unasked`: nothing runs, nothing changes.
    """
    work = Work(state, event.request)
    record = work.calls.get(event.call_id)
    if record is None or record.question is None:
        status = None if record is None else record.status
        return SideEffectStep(state, Verdict.UNASKED, record=status)
    if event.is_approved:
        return _approved(work, event, record, record.question.home)
    return _refused(work, event, record.question)


def _approved(work: Work, event: Decided, record: CallRecord, home: str) -> SideEffectStep:
    # For one attempt the approval is spent before the effect runs, so that a crash can't reuse it.
    is_for_call = work.before.ladder.approvals is ApprovalScope.CALL
    running = CallRecord(
        CallStatus.RUNNING,
        home,
        xid=record.xid,
        channel=record.channel,
        is_approved=is_for_call,
    )
    work.record(event.call_id, running)
    use = FirstUse(event.call_id, event.request, event.now_ms, record.channel)
    work.start(home, use)
    return SideEffectStep(work.done(), Verdict.EXECUTE, record=running.status)


def _refused(work: Work, event: Decided, question: OpenQuestion) -> SideEffectStep:
    """Deny the call and every other open question about the same, and remember the refusal."""
    identities = _asked_about(question, event.request)
    twins = tuple(
        call_id
        for call_id, each in work.calls.items()
        if each.question is not None
        and call_id != event.call_id
        and not identities.isdisjoint(_asked_about(each.question, event.request))
    )
    work.refuse(identities, question.repeat.first)
    transitions: list[Transition] = []
    for call_id in (event.call_id, *twins):
        work.record(call_id, CallRecord(CallStatus.DENIED))
        if work.before.withholds:
            before = work.mark_of(question.about)
            after = advanced(before, GuardPhase.LATCHED)._replace(repeats=before.repeats)
            work.mark(question.about, after)
            transitions.append(work.before.transition(before, after, REFUSE.decision))
    return SideEffectStep(
        work.done(),
        Verdict.REFUSED,
        tuple(transitions),
        record=CallStatus.DENIED,
        repeat=question.repeat,
        error=DuplicateError.of(question.repeat),
        text=texts.SIDE_EFFECT_REFUSED,
        resolved=twins,
    )


def _asked_about(question: OpenQuestion, request: str) -> frozenset[str]:
    # A refusal is the request's, so the thread that a call was asked about in does not matter.
    return frozenset(in_request(each, request) for each in (question.home, question.about))


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
