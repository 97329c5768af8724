"""A proposed call: is it the same as one that was carried out, and what becomes of it.

The order of the decision is that of docs/guards/side_effect_duplicate.md.
"""

from typing import NamedTuple

from reducer.guards import texts
from reducer.guards.side_effect.case import Case, case_of, occasion_of
from reducer.guards.side_effect.events import Proposed, SideEffectStep, Verdict
from reducer.guards.side_effect.ladder import Action, ApprovalScope
from reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Layer,
    Question,
    Repeat,
)
from reducer.guards.side_effect.rungs import RUNGS, WITH_INCIDENT, advanced, due, reported
from reducer.guards.side_effect.state import (
    CallRecord,
    CallStatus,
    OpenQuestion,
    SideEffectDuplicate,
    identity_of,
)
from reducer.guards.side_effect.work import Work
from reducer.vocabulary import Mode

_REPLAYED_TEXTS = {
    CallStatus.REFLECTED: texts.SIDE_EFFECT_NUDGE,
    CallStatus.DENIED: texts.SIDE_EFFECT_REFUSED,
}


class _Found(NamedTuple):
    identity: str
    layer: Layer
    first: FirstUse
    is_refused: bool = False


def proposed(state: SideEffectDuplicate, event: Proposed) -> SideEffectStep:
    """Return the verdict on a proposed call.

    In shadow and warn every call runs; a call without an id can't be followed and runs too.
    """
    call_id = event.call.call_id
    if state.mode is Mode.OFF or call_id is None or not call_id.strip():
        return SideEffectStep(state, Verdict.EXECUTE)
    occasion = occasion_of(
        state.ladder, event.request, event.now_ms, thread=event.thread, channel=event.channel
    )
    work = Work(state, event.request)
    step = judged(work, case_of(event, occasion, call_id))
    return step._replace(state=work.done())


def judged(work: Work, case: Case) -> SideEffectStep:
    """Return the verdict on one call of a batch that no guard before it has answered.

    What it changes is kept in `work`; the step's own state is the one before the batch.
    """
    known = work.calls.get(case.call_id)
    step = None if known is None else _known(work.before, known)
    if step is None:
        step = _unanswered(work, case, known)
    if case.occasion.place.scope is work.before.ladder.scope:
        return step
    return step._replace(diagnostic=texts.SIDE_EFFECT_NO_THREAD)


def _known(state: SideEffectDuplicate, record: CallRecord) -> SideEffectStep | None:
    """Rule 1: the record of a finished call answers for it, an open question stays the one."""
    status = record.status
    if status.is_finished:
        verdict = Verdict.REPLAY if state.withholds else Verdict.EXECUTE
        text = _REPLAYED_TEXTS.get(status) if state.withholds else None
        return SideEffectStep(state, verdict, record=status, text=text)
    open_question = record.question
    if open_question is not None and state.withholds:
        waiting = RUNGS[Verdict.SUSPEND].text
        return SideEffectStep(
            state, Verdict.SUSPEND, record=status, repeat=open_question.repeat, text=waiting
        )
    return None


def _unanswered(work: Work, case: Case, known: CallRecord | None) -> SideEffectStep:
    """Rules 2 to 7, for a call that no record answers for."""
    declaration, ladder = case.declaration, work.before.ladder
    if declaration.is_keyed:
        return SideEffectStep(work.before, Verdict.EXEMPT)
    if not declaration.has_side_effect or ladder.action is Action.OFF:
        work.record(case.call_id, CallRecord(CallStatus.RUNNING))
        return SideEffectStep(work.before, Verdict.EXECUTE, record=CallStatus.RUNNING)
    # A call without a digest equals no other one: its own id stands for it.
    digest = case.fingerprint or f"of {_call_key(work.request, case.call_id)}"
    home = identity_of(case.occasion.place, Layer.ARGUMENTS, digest)
    is_approved = case.is_approved or (known is not None and known.is_approved)
    if is_approved and not (_is_running(known) and work.before.withholds):
        return _started(work, case, home, None)
    found = _repeated(work, case, home)
    return _started(work, case, home, None) if found is None else _met(work, case, home, found)


def _call_key(request: str, call_id: str) -> str:
    return f"{len(request)}/{request}/{call_id}"


def _repeated(work: Work, case: Case, home: str) -> _Found | None:
    """Return what the call repeats, first what a person refused, then from proof to likeness."""
    claimed = () if case.first_use is None and case.candidate is None else tuple(_claimed(case))
    refused = work.refused_of(home)
    if refused is not None:
        return _Found(home, Layer.ARGUMENTS, refused, is_refused=True)
    for each in claimed:
        if work.refused_of(each.identity) is not None:
            return each._replace(is_refused=True)
    track = work.track_of(home)
    if track.first is not None and not _is_expired(work, case, track.first):
        return _Found(home, Layer.ARGUMENTS, track.first)
    if track.running:
        return _Found(home, Layer.ARGUMENTS, track.running[0])
    return next((each for each in claimed if _is_visible(work, case, each)), None)


def _is_expired(work: Work, case: Case, use: FirstUse) -> bool:
    return work.before.ladder.is_expired(use.at_ms, case.occasion.now_ms)


def _claimed(case: Case) -> list[_Found]:
    """Return what the host's store and finder say that the call repeats, seen or not."""
    claimed: list[_Found] = []
    place, use = case.occasion.place, case.first_use
    if use is not None and case.xid is not None:
        claimed.append(_Found(identity_of(place, Layer.XID, case.xid), Layer.XID, use))
    likely = case.candidate
    if likely is not None and likely.thread.strip() and likely.thread == case.occasion.thread:
        like = _call_key(likely.use.request, likely.use.call_id)
        claimed.append(_Found(identity_of(place, Layer.SEMANTIC, like), Layer.SEMANTIC, likely.use))
    return claimed


def _is_visible(work: Work, case: Case, found: _Found) -> bool:
    """Whether a use from elsewhere counts: in time, no other's XID of the same request."""
    use = found.first
    if _is_expired(work, case, use):
        return False
    if found.layer is Layer.XID:
        return use.request != work.request
    return (use.request, use.call_id) != (work.request, case.call_id)


def _met(work: Work, case: Case, home: str, found: _Found) -> SideEffectStep:
    """Rule 7, and rule 5 for what a person refused: the rung in the state's mode."""
    state = work.before
    track = work.track_of(found.identity)
    known = work.calls.get(case.call_id)
    verdict = _verdict(state, known, found, is_nudged=track.is_nudged)
    rung = RUNGS[verdict]
    before = work.mark_of(found.identity)
    after = advanced(before, rung.phase)
    transitions = reported(state, before, after, rung)
    work.mark(found.identity, after)
    if verdict is Verdict.REFLECT:
        for place in work.places_of(found.identity):
            work.follow(place, work.track_of(place)._replace(is_nudged=True))
    repeat = Repeat(case.call_id, case.tool, case.fingerprint, found.first, found.layer)
    if state.withholds and verdict is not Verdict.EXECUTE_WITH_INCIDENT:
        step = SideEffectStep(
            state,
            verdict,
            transitions,
            repeat=repeat,
            incident=Incident(rung.action, repeat),
            text=rung.text,
        )
        return _withheld(work, case, step, OpenQuestion(home, found.identity, repeat))
    step = _started(work, case, home, found)._replace(transitions=transitions, repeat=repeat)
    if state.mode is Mode.SHADOW:
        return step
    incident = Incident(WITH_INCIDENT.action, repeat)
    return step._replace(verdict=Verdict.EXECUTE_WITH_INCIDENT, incident=incident)


def _verdict(
    state: SideEffectDuplicate, known: CallRecord | None, found: _Found, *, is_nudged: bool
) -> Verdict:
    if found.is_refused:
        return Verdict.REFUSE
    verdict = due(state.ladder.action, found.layer, is_nudged=is_nudged)
    # What runs already under this very id can be neither nudged nor asked about.
    if _is_running(known) and state.withholds and verdict is not Verdict.EXECUTE_WITH_INCIDENT:
        return Verdict.BLOCK
    return verdict


def _is_running(known: CallRecord | None) -> bool:
    return known is not None and known.status is CallStatus.RUNNING


def _withheld(work: Work, case: Case, step: SideEffectStep, asked: OpenQuestion) -> SideEffectStep:
    """Record a call that does not run. A blocked or refused one leaves no record (rule 7)."""
    if step.verdict is Verdict.REFLECT:
        work.record(case.call_id, CallRecord(CallStatus.REFLECTED))
        return step._replace(record=CallStatus.REFLECTED)
    if step.verdict is Verdict.SUSPEND:
        is_xid = asked.repeat.layer is Layer.XID
        record = CallRecord(
            CallStatus.SUSPENDED,
            xid=None if is_xid else case.xid,
            channel=case.occasion.channel,
            question=asked,
        )
        work.record(case.call_id, record)
        question = Question(asked.repeat, case.declaration.is_silent)
        return step._replace(record=CallStatus.SUSPENDED, question=question)
    return step._replace(error=DuplicateError.of(asked.repeat))


def _started(work: Work, case: Case, home: str, found: _Found | None) -> SideEffectStep:
    """Record a call that runs; what it repeats stays the first."""
    occasion, call_id = case.occasion, case.call_id
    use = FirstUse(call_id, work.request, occasion.now_ms, occasion.channel)
    known = work.calls.get(call_id)
    is_for_call = work.before.ladder.approvals is ApprovalScope.CALL
    record = CallRecord(
        CallStatus.RUNNING,
        home,
        None if found is not None and found.layer is Layer.XID else case.xid,
        occasion.channel,
        is_approved=(known is not None and known.is_approved) or (case.is_approved and is_for_call),
    )
    work.record(call_id, record)
    work.start(home, use)
    return SideEffectStep(work.before, Verdict.EXECUTE, record=CallStatus.RUNNING)
