"""Proposed calls: the search for the run that a call repeats, and the verdict on it.

The rules have the order of `docs/guards/side_effect_duplicate.md`.
"""

from typing import NamedTuple

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.side_effect.events import Proposed, SideEffectStep, Verdict
from guardwave.reducer.guards.side_effect.ladder import (
    Action,
    ApprovalScope,
    Ladder,
    ToolDeclaration,
)
from guardwave.reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Layer,
    Question,
    Repeat,
)
from guardwave.reducer.guards.side_effect.request import WorkingCopy
from guardwave.reducer.guards.side_effect.rungs import (
    RUNGS,
    WITH_INCIDENT,
    advance,
    transitions_of,
    verdict_for,
)
from guardwave.reducer.guards.side_effect.state import (
    CallRecord,
    CallStatus,
    OpenQuestion,
    Place,
    SideEffectDuplicate,
    identity_of,
    place_of,
)
from guardwave.reducer.guards.side_effect.xid import Candidate
from guardwave.reducer.vocabulary import Mode


class BatchContext(NamedTuple):
    """The context that the calls of one batch share; `place` is the reach of the search."""

    now_ms: int
    thread: str | None
    channel: str | None
    place: Place


class Case(NamedTuple):
    """One call of the batch, with the fields of `side_effect.Proposed`."""

    context: BatchContext
    call_id: str
    tool: str
    fingerprint: str | None
    declaration: ToolDeclaration
    is_approved: bool
    xid: str | None
    first_use: FirstUse | None
    candidate: Candidate | None


def batch_context(
    ladder: Ladder, request: str, now_ms: int, *, thread: str | None, channel: str | None
) -> BatchContext:
    """Return the shared context of a batch; the events have checked its fields."""
    return BatchContext(now_ms, thread, channel, place_of(ladder, request, thread))


def case_of(event: Proposed, context: BatchContext, call_id: str) -> Case:
    """Return the call of an event, under its id."""
    return Case(
        context,
        call_id,
        event.call.tool,
        event.call.fingerprint,
        event.declaration,
        event.is_approved,
        event.xid,
        event.first_use,
        event.candidate,
    )


_REPLAYED_TEXTS = {
    CallStatus.REFLECTED: messages.SIDE_EFFECT_NUDGE,
    CallStatus.DENIED: messages.SIDE_EFFECT_REFUSED,
}


class _Match(NamedTuple):
    """The earlier run that a call repeats, and the layer that shows it."""

    identity: str
    layer: Layer
    first: FirstUse
    is_refused: bool = False


def propose(state: SideEffectDuplicate, event: Proposed) -> SideEffectStep:
    """Return the verdict on a proposed call.

    In shadow and warn every call runs. A call without an id cannot be followed, so it runs too.
    """
    call_id = event.call.call_id
    if state.mode is Mode.OFF or call_id is None or not call_id.strip():
        return SideEffectStep(state, Verdict.EXECUTE)
    context = batch_context(
        state.ladder, event.request, event.now_ms, thread=event.thread, channel=event.channel
    )
    work = WorkingCopy(state, event.request)
    step = judge(work, case_of(event, context, call_id))
    return step._replace(state=work.done())


def judge(work: WorkingCopy, case: Case) -> SideEffectStep:
    """Return the verdict on one call of a batch that no earlier guard has answered.

    `work` collects the changes; the state of the step is still the one before the batch.
    """
    known = work.calls.get(case.call_id)
    step = None if known is None else _judge_known(work.before, known)
    if step is None:
        step = _judge_new(work, case, known)
    if case.context.place.scope is work.before.ladder.scope:
        return step
    return step._replace(diagnostic=messages.SIDE_EFFECT_NO_THREAD)


def _judge_known(state: SideEffectDuplicate, record: CallRecord) -> SideEffectStep | None:
    """Rule 1: a finished call gets its recorded answer, and a suspended one keeps its question."""
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


def _judge_new(work: WorkingCopy, case: Case, known: CallRecord | None) -> SideEffectStep:
    """Rules 2 to 7, for a call without a recorded answer."""
    declaration, ladder = case.declaration, work.before.ladder
    if declaration.is_keyed:
        return SideEffectStep(work.before, Verdict.EXEMPT)
    if not declaration.has_side_effect or ladder.action is Action.OFF:
        work.record(case.call_id, CallRecord(CallStatus.RUNNING))
        return SideEffectStep(work.before, Verdict.EXECUTE, record=CallStatus.RUNNING)
    # A call without a digest equals no other call, so its own id identifies it.
    digest = case.fingerprint or f"of {_call_key(work.request, case.call_id)}"
    home = identity_of(case.context.place, Layer.ARGUMENTS, digest)
    is_approved = case.is_approved or (known is not None and known.is_approved)
    if is_approved and not (_is_running(known) and work.before.withholds):
        return _start(work, case, home, None)
    match = _find_repeat(work, case, home)
    if match is None:
        return _start(work, case, home, None)
    return _judge_repeat(work, case, home, match)


def _call_key(request: str, call_id: str) -> str:
    return f"{len(request)}/{request}/{call_id}"


def _find_repeat(work: WorkingCopy, case: Case, home: str) -> _Match | None:
    """Return the run that the call repeats: first refused ones, then from proof to likeness."""
    claims = () if case.first_use is None and case.candidate is None else tuple(_claims(case))
    refused = work.refused_of(home)
    if refused is not None:
        return _Match(home, Layer.ARGUMENTS, refused, is_refused=True)
    for claim in claims:
        if work.refused_of(claim.identity) is not None:
            return claim._replace(is_refused=True)
    track = work.track_of(home)
    if track.first is not None and not _is_expired(work, case, track.first):
        return _Match(home, Layer.ARGUMENTS, track.first)
    if track.running:
        return _Match(home, Layer.ARGUMENTS, track.running[0])
    return next((claim for claim in claims if _is_visible(work, case, claim)), None)


def _is_expired(work: WorkingCopy, case: Case, use: FirstUse) -> bool:
    return work.before.ladder.is_expired(use.at_ms, case.context.now_ms)


def _claims(case: Case) -> list[_Match]:
    """Return the runs that the host's store and finder propose, before any check."""
    claims: list[_Match] = []
    place, use = case.context.place, case.first_use
    if use is not None and case.xid is not None:
        claims.append(_Match(identity_of(place, Layer.XID, case.xid), Layer.XID, use))
    likely = case.candidate
    if likely is not None and likely.thread.strip() and likely.thread == case.context.thread:
        key = _call_key(likely.use.request, likely.use.call_id)
        claims.append(_Match(identity_of(place, Layer.SEMANTIC, key), Layer.SEMANTIC, likely.use))
    return claims


def _is_visible(work: WorkingCopy, case: Case, claim: _Match) -> bool:
    """Whether a proposed run counts: it has not expired and is not of this request or call."""
    use = claim.first
    if _is_expired(work, case, use):
        return False
    if claim.layer is Layer.XID:
        return use.request != work.request
    return (use.request, use.call_id) != (work.request, case.call_id)


def _judge_repeat(work: WorkingCopy, case: Case, home: str, match: _Match) -> SideEffectStep:
    """Rule 7, and rule 5 for a refused repeat: apply the rung in the state's mode."""
    state = work.before
    track = work.track_of(match.identity)
    known = work.calls.get(case.call_id)
    verdict = _verdict(state, known, match, is_nudged=track.is_nudged)
    rung = RUNGS[verdict]
    before = work.mark_of(match.identity)
    after = advance(before, rung.phase)
    transitions = transitions_of(state, before, after, rung)
    work.mark(match.identity, after)
    if verdict is Verdict.REFLECT:
        for place in work.places_of(match.identity):
            work.follow(place, work.track_of(place)._replace(is_nudged=True))
    repeat = Repeat(case.call_id, case.tool, case.fingerprint, match.first, match.layer)
    if state.withholds and verdict is not Verdict.EXECUTE_WITH_INCIDENT:
        step = SideEffectStep(
            state,
            verdict,
            transitions,
            repeat=repeat,
            incident=Incident(rung.action, repeat),
            text=rung.text,
        )
        return _withhold(work, case, step, OpenQuestion(home, match.identity, repeat))
    step = _start(work, case, home, match)._replace(transitions=transitions, repeat=repeat)
    if state.mode is Mode.SHADOW:
        return step
    incident = Incident(WITH_INCIDENT.action, repeat)
    return step._replace(verdict=Verdict.EXECUTE_WITH_INCIDENT, incident=incident)


def _verdict(
    state: SideEffectDuplicate, known: CallRecord | None, match: _Match, *, is_nudged: bool
) -> Verdict:
    if match.is_refused:
        return Verdict.REFUSE
    verdict = verdict_for(state.ladder.action, match.layer, is_nudged=is_nudged)
    # A call that already runs under this id can be neither nudged nor suspended.
    if _is_running(known) and state.withholds and verdict is not Verdict.EXECUTE_WITH_INCIDENT:
        return Verdict.BLOCK
    return verdict


def _is_running(known: CallRecord | None) -> bool:
    return known is not None and known.status is CallStatus.RUNNING


def _withhold(
    work: WorkingCopy, case: Case, step: SideEffectStep, waiting: OpenQuestion
) -> SideEffectStep:
    """Record a call that does not run; a blocked or refused call leaves no record (rule 7)."""
    if step.verdict is Verdict.REFLECT:
        work.record(case.call_id, CallRecord(CallStatus.REFLECTED))
        return step._replace(record=CallStatus.REFLECTED)
    if step.verdict is Verdict.SUSPEND:
        is_xid = waiting.repeat.layer is Layer.XID
        record = CallRecord(
            CallStatus.SUSPENDED,
            xid=None if is_xid else case.xid,
            channel=case.context.channel,
            question=waiting,
        )
        work.record(case.call_id, record)
        question = Question(waiting.repeat, case.declaration.is_silent)
        return step._replace(record=CallStatus.SUSPENDED, question=question)
    return step._replace(error=DuplicateError.of(waiting.repeat))


def _start(work: WorkingCopy, case: Case, home: str, match: _Match | None) -> SideEffectStep:
    """Record a call that runs; the run that it repeats stays the first."""
    context, call_id = case.context, case.call_id
    use = FirstUse(call_id, work.request, context.now_ms, context.channel)
    known = work.calls.get(call_id)
    is_for_call = work.before.ladder.approvals is ApprovalScope.CALL
    record = CallRecord(
        CallStatus.RUNNING,
        home,
        None if match is not None and match.layer is Layer.XID else case.xid,
        context.channel,
        is_approved=(known is not None and known.is_approved) or (case.is_approved and is_for_call),
    )
    work.record(call_id, record)
    work.start(home, use)
    return SideEffectStep(work.before, Verdict.EXECUTE, record=CallStatus.RUNNING)
