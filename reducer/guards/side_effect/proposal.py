"""A proposed call: is it the same as one that was carried out, and what becomes of it.

The order of the decision is that of guards.md 5, rules 1 to 7.
"""

from collections.abc import Iterator
from typing import NamedTuple

from reducer.guards import texts
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
    NEW_TRACK,
    CallRecord,
    CallStatus,
    OpenQuestion,
    Place,
    SideEffectDuplicate,
    identity_of,
    place_of,
)
from reducer.vocabulary import Mode

_REPLAYED_TEXTS = {
    CallStatus.REFLECTED: texts.SIDE_EFFECT_NUDGE,
    CallStatus.DENIED: texts.SIDE_EFFECT_REFUSED,
}


class _Case(NamedTuple):
    """A proposed call that is followed, and the identity of its arguments."""

    event: Proposed
    call_id: str
    home: str


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
    place = place_of(state.ladder, event.request, event.thread)
    record = state.log_of(event.request).calls.get(call_id)
    step = _known(state, record) or _judged(state, event, call_id, place)
    if place.scope is state.ladder.scope:
        return step
    return step._replace(diagnostic=texts.SIDE_EFFECT_NO_THREAD)


def _known(state: SideEffectDuplicate, record: CallRecord | None) -> SideEffectStep | None:
    """Rule 1: the record of a finished call answers for it, an open question stays the one."""
    if record is None:
        return None
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


def _judged(
    state: SideEffectDuplicate, event: Proposed, call_id: str, place: Place
) -> SideEffectStep:
    """Rules 2 to 7, for a call that no record answers for."""
    if event.declaration.is_keyed:
        return SideEffectStep(state, Verdict.EXEMPT)
    if not event.declaration.has_side_effect or state.ladder.action is Action.OFF:
        record = CallRecord(CallStatus.RUNNING)
        log = state.log_of(event.request).with_call(call_id, record)
        return SideEffectStep(
            state.with_log(event.request, log), Verdict.EXECUTE, record=record.status
        )
    # A call without a digest equals no other one: its own id stands for it.
    digest = event.call.fingerprint or f"of {_call_key(event.request, call_id)}"
    case = _Case(event, call_id, identity_of(place, Layer.ARGUMENTS, digest))
    known = state.log_of(event.request).calls.get(call_id)
    is_approved = event.is_approved or (known is not None and known.is_approved)
    if is_approved and not (_is_running(known) and state.withholds):
        return _started(state, case, None)
    found = next(_repeats(state, case, place), None)
    return _started(state, case, None) if found is None else _met(state, case, found)


def _call_key(request: str, call_id: str) -> str:
    return f"{len(request)}/{request}/{call_id}"


def _repeats(state: SideEffectDuplicate, case: _Case, place: Place) -> Iterator[_Found]:
    """Yield what the call repeats, first what a person refused, then from proof to likeness."""
    event, home = case.event, case.home
    known = _claimed(event, place)
    refused = state.log_of(event.request).refused
    if home in refused:
        yield _Found(home, Layer.ARGUMENTS, refused[home], is_refused=True)
    yield from (each._replace(is_refused=True) for each in known if each.identity in refused)
    track = state.tracks.get(home, NEW_TRACK)
    if track.first is not None and not state.ladder.is_expired(track.first.at_ms, event.now_ms):
        yield _Found(home, Layer.ARGUMENTS, track.first)
    elif track.running:
        yield _Found(home, Layer.ARGUMENTS, track.running[0])
    yield from (each for each in known if _is_visible(state, event, each))


def _claimed(event: Proposed, place: Place) -> list[_Found]:
    """Return what the host's store and finder say that the call repeats, seen or not."""
    claimed: list[_Found] = []
    use = event.first_use
    if use is not None and event.xid is not None:
        claimed.append(_Found(identity_of(place, Layer.XID, event.xid), Layer.XID, use))
    likely = event.candidate
    if likely is not None and likely.thread.strip() and likely.thread == event.thread:
        like = _call_key(likely.use.request, likely.use.call_id)
        claimed.append(_Found(identity_of(place, Layer.SEMANTIC, like), Layer.SEMANTIC, likely.use))
    return claimed


def _is_visible(state: SideEffectDuplicate, event: Proposed, found: _Found) -> bool:
    """Whether a use from elsewhere counts: in time, no other's XID of the same request."""
    use = found.first
    if state.ladder.is_expired(use.at_ms, event.now_ms):
        return False
    if found.layer is Layer.XID:
        return use.request != event.request
    return (use.request, use.call_id) != (event.request, event.call.call_id)


def _met(state: SideEffectDuplicate, case: _Case, found: _Found) -> SideEffectStep:
    """Rule 7, and rule 5 for what a person refused: the rung in the state's mode."""
    call, request = case.event.call, case.event.request
    log = state.log_of(request)
    track = state.tracks.get(found.identity, NEW_TRACK)
    verdict = _verdict(state, log.calls.get(case.call_id), found, is_nudged=track.is_nudged)
    rung = RUNGS[verdict]
    before = log.mark_of(found.identity)
    after = advanced(before, rung.phase)
    transitions = reported(state, before, after, rung)
    if verdict is Verdict.REFLECT:
        track = track._replace(is_nudged=True)
    log = log.with_mark(found.identity, after)
    state = state.with_work(found.identity, track, request=request, log=log)
    repeat = Repeat(case.call_id, call.tool, call.fingerprint, found.first, found.layer)
    if state.withholds and verdict is not Verdict.EXECUTE_WITH_INCIDENT:
        step = _withheld(state, case, found, verdict=verdict, repeat=repeat)
        return step._replace(transitions=transitions)
    step = _started(state, case, found)._replace(transitions=transitions, repeat=repeat)
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


def _withheld(
    state: SideEffectDuplicate, case: _Case, found: _Found, *, verdict: Verdict, repeat: Repeat
) -> SideEffectStep:
    """Record a call that does not run. A blocked or refused one leaves no record (rule 7)."""
    event = case.event
    rung = RUNGS[verdict]
    step = SideEffectStep(
        state, verdict, repeat=repeat, incident=Incident(rung.action, repeat), text=rung.text
    )
    if verdict is Verdict.REFLECT:
        record = CallRecord(CallStatus.REFLECTED)
    elif verdict is Verdict.SUSPEND:
        record = CallRecord(
            CallStatus.SUSPENDED,
            xid=None if found.layer is Layer.XID else event.xid,
            channel=event.channel,
            question=OpenQuestion(case.home, found.identity, repeat),
        )
        step = step._replace(question=Question(repeat, event.declaration.is_silent))
    else:
        return step._replace(error=DuplicateError.of(repeat))
    log = state.log_of(event.request).with_call(case.call_id, record)
    return step._replace(state=state.with_log(event.request, log), record=record.status)


def _started(state: SideEffectDuplicate, case: _Case, found: _Found | None) -> SideEffectStep:
    """Record a call that runs; what it repeats stays the first, unless that has expired."""
    event, call_id, home = case
    log = state.log_of(event.request)
    track = state.tracks.get(home, NEW_TRACK)
    if track.first is not None and state.ladder.is_expired(track.first.at_ms, event.now_ms):
        track = track._replace(first=None)
        log = log.without_mark(home)
    use = FirstUse(call_id, event.request, event.now_ms, event.channel)
    is_first_use = found is None or found.layer is not Layer.XID
    known = log.calls.get(call_id)
    is_for_call = state.ladder.approvals is ApprovalScope.CALL
    record = CallRecord(
        CallStatus.RUNNING,
        home,
        xid=event.xid if is_first_use else None,
        channel=event.channel,
        is_approved=(known is not None and known.is_approved)
        or (event.is_approved and is_for_call),
    )
    log = log.with_call(call_id, record)
    state = state.with_work(home, track.with_running(use), request=event.request, log=log)
    return SideEffectStep(state, Verdict.EXECUTE, record=record.status)
