"""Side-effect reduction: one event of the guard, and the end of calls, questions and requests."""

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.modes import mode_on
from guardwave.reducer.guards.side_effect.events import (
    Decided,
    Event,
    FirstUseToKeep,
    PromptStarted,
    Proposed,
    RequestEnded,
    Settled,
    SideEffectStep,
    ThreadEnded,
    Verdict,
)
from guardwave.reducer.guards.side_effect.ladder import ApprovalScope, Scope
from guardwave.reducer.guards.side_effect.proposal import propose
from guardwave.reducer.guards.side_effect.repeat import DuplicateError, FirstUse
from guardwave.reducer.guards.side_effect.request import WorkingCopy
from guardwave.reducer.guards.side_effect.rungs import REFUSE, advance
from guardwave.reducer.guards.side_effect.state import (
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
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.vocabulary import Decision, ExecutionStatus, GuardPhase, Mode


def reduce(state: SideEffectDuplicate, event: Event) -> SideEffectStep:
    """Return the state after an event, with the verdict on its call.

    Raises:
        ValueError: the state or the event is not of this guard.
    """
    if not isinstance(state, SideEffectDuplicate):
        remedy = (
            "pass the result of SideEffectDuplicate.start (guardwave.guards.side_effect) "
            "or of a step"
        )
        raise argument_error("state", state, remedy)
    match event:
        case Proposed():
            return propose(state, event)
        case Settled():
            work = WorkingCopy(state, event.request)
            step = settle(work, event.call_id, event.execution_status, event.now_ms)
            return step._replace(state=work.done())
        case Decided():
            return answer(state, event)
        case PromptStarted(mode=mode, route=route):
            return SideEffectStep(
                SideEffectDuplicate(
                    mode_on(route, mode), route, state.ladder, state.tracks, state.requests
                )
            )
        case RequestEnded() | ThreadEnded():
            return SideEffectStep(forget(state, event))
    raise argument_error("event", event, "pass one of guardwave.guards.side_effect.Event")


def settle(
    work: WorkingCopy, call_id: str, status: ExecutionStatus | None, now_ms: int
) -> SideEffectStep:
    """Record the end of a call; only a success becomes a first run, or a use for the store.

    A call that is not running changes nothing: it was exempt, or it settled before. `work` collects
    the changes; the state of the step is still the one before.
    """
    record = work.calls.get(call_id)
    if record is None or record.status is not CallStatus.RUNNING:
        return SideEffectStep(work.before, record=None if record is None else record.status)
    if status is not ExecutionStatus.SUCCESS:
        return _fail(work, call_id, record)
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
        # An equal call that came while the first one ran has moved the phase further.
        tracking = before if before.repeats else Mark(before.ordinal, GuardPhase.TRACKING)
        work.mark(home, tracking)
        if work.before.mode is not Mode.OFF:
            transitions = (work.before.transition(before, tracking, Decision.TRACKED),)
    work.follow(home, track)
    if work.is_threaded:
        _settle_in_request(work, home, use)
    keep = None if record.xid is None else FirstUseToKeep(record.xid, use)
    return SideEffectStep(work.before, None, transitions, CallStatus.SUCCEEDED, first_use=keep)


def _settle_in_request(work: WorkingCopy, home: str, use: FirstUse) -> None:
    """Make the run known to calls of the same request that have no thread."""
    for place in work.places_of(home)[1:]:
        track = work.track_of(place).without_running(work.request, use.call_id)
        first = use if track.first is None else track.first
        work.follow(place, Track(first, track.running, track.is_nudged))


def _fail(work: WorkingCopy, call_id: str, record: CallRecord) -> SideEffectStep:
    work.record(call_id, CallRecord(CallStatus.FAILED, is_approved=record.is_approved))
    if record.home is not None:
        for place in work.places_of(record.home):
            work.follow(place, work.track_of(place).without_running(work.request, call_id))
    return SideEffectStep(work.before, record=CallStatus.FAILED)


def answer(state: SideEffectDuplicate, event: Decided) -> SideEffectStep:
    """Run an approved call once, or remember a refusal for the request.

    Without an open question (a second answer, or a question that was lost with its state) the
    verdict is `unasked`: nothing runs and nothing changes.
    """
    work = WorkingCopy(state, event.request)
    record = work.calls.get(event.call_id)
    if record is None or record.question is None:
        status = None if record is None else record.status
        return SideEffectStep(state, Verdict.UNASKED, record=status)
    if event.is_approved:
        return _approve(work, event, record, record.question.home)
    return _refuse(work, event, record.question)


def _approve(work: WorkingCopy, event: Decided, record: CallRecord, home: str) -> SideEffectStep:
    # An approval for one attempt is spent before the effect runs, so a crash cannot reuse it.
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


def _refuse(work: WorkingCopy, event: Decided, question: OpenQuestion) -> SideEffectStep:
    """Deny the call and every other open question about the same effect, and remember it."""
    identities = _question_identities(question, event.request)
    twins = tuple(
        call_id
        for call_id, record in work.calls.items()
        if record.question is not None
        and call_id != event.call_id
        and not identities.isdisjoint(_question_identities(record.question, event.request))
    )
    work.refuse(identities, question.repeat.first)
    transitions: list[Transition] = []
    for call_id in (event.call_id, *twins):
        work.record(call_id, CallRecord(CallStatus.DENIED))
        if work.before.withholds:
            before = work.mark_of(question.about)
            after = advance(before, GuardPhase.LATCHED)._replace(repeats=before.repeats)
            work.mark(question.about, after)
            transitions.append(work.before.transition(before, after, REFUSE.decision))
    return SideEffectStep(
        work.done(),
        Verdict.REFUSED,
        tuple(transitions),
        record=CallStatus.DENIED,
        repeat=question.repeat,
        error=DuplicateError.of(question.repeat),
        text=messages.SIDE_EFFECT_REFUSED,
        resolved=twins,
    )


def _question_identities(question: OpenQuestion, request: str) -> frozenset[str]:
    # A refusal belongs to the request, so the thread of the question does not matter.
    identities = (question.home, question.about)
    return frozenset(in_request(identity, request) for identity in identities)


def forget(state: SideEffectDuplicate, event: RequestEnded | ThreadEnded) -> SideEffectDuplicate:
    """Return the state without the runs that only this request or thread could repeat."""
    if isinstance(event, ThreadEnded):
        prefix = place_key(Scope.THREAD, event.thread)
        tracks = {key: track for key, track in state.tracks.items() if not key.startswith(prefix)}
        return state.with_records(tracks, state.requests)
    prefix = place_key(Scope.REQUEST, event.request)
    settled_tracks = {
        key: track.without_runs_of(event.request)
        for key, track in state.tracks.items()
        if not key.startswith(prefix)
    }
    tracks = {key: track for key, track in settled_tracks.items() if track != NEW_TRACK}
    requests = {name: log for name, log in state.requests.items() if name != event.request}
    return state.with_records(tracks, requests)
