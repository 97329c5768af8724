import json

from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.side_effect import (
    Action,
    Decided,
    Ladder,
    Proposed,
    Scope,
    Settled,
    SideEffectDuplicate,
    Verdict,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.guards.side_effect.state import CallStatus
from guardwave.reducer.vocabulary import Decision, ExecutionStatus, GuardPhase, Mode
from tests.support.guards.side_effects import (
    after,
    answers,
    events,
    histories,
    ladders,
    proposals,
    settlements,
    work,
)

WITHHELD = {Verdict.REFLECT, Verdict.BLOCK, Verdict.SUSPEND, Verdict.REFUSE, Verdict.REPLAY}
STOPS = {Decision.STOPPED, Decision.SUSPENDED}
modes = st.sampled_from(Mode)


@given(modes, ladders, histories, events)
def test_a_snapshot_at_any_step_changes_nothing(mode, ladder, history, event):
    state = after(SideEffectDuplicate.start(mode, ladder=ladder), history)
    again = restore(json.loads(json.dumps(dump(state))))
    assert again == state
    assert reduce(again, event) == reduce(state, event)


@given(st.sampled_from([Mode.OFF, Mode.SHADOW, Mode.WARN]), ladders, work)
def test_below_enforce_every_call_runs(mode, ladder, history):
    state = SideEffectDuplicate.start(mode, ladder=ladder)
    for event in history:
        step = reduce(state, event)
        state = step.state
        assert step.verdict not in WITHHELD
        assert not {transition.decision for transition in step.transitions} & STOPS
        assert step.question is None
        assert step.text is None


@given(ladders, work)
def test_disabled_enforcement_never_stops(ladder, history):
    state = SideEffectDuplicate(Mode.ENFORCE, ladder=ladder, is_enforcement_disabled=True)
    for event in history:
        step = reduce(state, event)
        state = step.state
        assert step.verdict not in WITHHELD
        assert not {transition.decision for transition in step.transitions} & STOPS


@given(ladders, work)
def test_off_records_and_reports_nothing(ladder, history):
    start = SideEffectDuplicate.start(Mode.OFF, ladder=ladder)
    state = start
    for event in history:
        step = reduce(state, event)
        assert (step.state, step.transitions, step.incident) == (start, (), None)


@given(ladders, work)
def test_shadow_reports_no_incident_and_runs_silently(ladder, history):
    state = SideEffectDuplicate.start(Mode.SHADOW, ladder=ladder)
    for event in history:
        step = reduce(state, event)
        state = step.state
        assert step.incident is None
        assert step.verdict in {None, Verdict.EXECUTE, Verdict.EXEMPT, Verdict.UNASKED}


@given(st.sampled_from([Action.REFLECT, Action.BLOCK, Action.SUSPEND]), work)
def test_no_work_runs_twice_in_a_request_unless_a_person_agreed(action, history):
    state = SideEffectDuplicate.start(Mode.ENFORCE, ladder=Ladder(action=action))
    done: set[tuple[str, str]] = set()
    digests: dict[tuple[str, str], str] = {}
    for event in history:
        step = reduce(state, event)
        state = step.state
        match event:
            case Proposed(call=call, request=request):
                work_key = (request, call.fingerprint or "")
                guarded = event.declaration.has_side_effect and call.fingerprint is not None
                if step.verdict is Verdict.EXECUTE and guarded and (call.call_id or "").strip():
                    known = state.requests[request].calls[call.call_id or ""]
                    assert event.is_approved or known.is_approved or work_key not in done
                    digests[request, call.call_id or ""] = call.fingerprint or ""
            case Settled(execution_status=ExecutionStatus.SUCCESS):
                key = (event.request, event.call_id)
                if key in digests and step.record is CallStatus.SUCCEEDED:
                    done.add((event.request, digests[key]))
            case _:
                pass


@given(ladders, work, answers)
def test_an_answer_runs_a_call_at_most_once(ladder, history, answer):
    state = after(SideEffectDuplicate.start(Mode.ENFORCE, ladder=ladder), history)
    first = reduce(state, answer)
    second = reduce(first.state, answer)
    assert second.verdict is Verdict.UNASKED
    assert second.state == first.state


@given(ladders, work, proposals)
def test_a_question_is_put_once(ladder, history, proposal):
    state = after(SideEffectDuplicate.start(Mode.ENFORCE, ladder=ladder), history)
    first = reduce(state, proposal)
    second = reduce(first.state, proposal)
    if first.question is not None:
        assert (second.verdict, second.question) == (Verdict.SUSPEND, None)
        assert second.state == first.state


@given(ladders, work, settlements)
def test_a_call_settles_once(ladder, history, settlement):
    state = after(SideEffectDuplicate.start(Mode.ENFORCE, ladder=ladder), history)
    first = reduce(state, settlement)
    second = reduce(first.state, settlement)
    assert (second.state, second.transitions) == (first.state, ())


@given(modes, ladders, work)
def test_within_a_request_a_phase_never_falls_but_for_new_work(mode, ladder, history):
    order = list(GuardPhase)
    state = SideEffectDuplicate.start(mode, ladder=ladder)
    for event in history:
        step = reduce(state, event)
        state = step.state
        for transition in step.transitions:
            assert order.index(transition.phase_from) <= order.index(transition.phase_to)
            assert (transition.phase_from, transition.phase_to) != (
                GuardPhase.IDLE,
                GuardPhase.IDLE,
            )
            assert transition.candidate_ordinal >= 1


@given(work)
def test_requests_never_see_each_other_in_request_scope(history):
    together = SideEffectDuplicate.start(Mode.ENFORCE)
    apart = {name: SideEffectDuplicate.start(Mode.ENFORCE) for name in ("r1", "r2")}
    for event in history:
        assert isinstance(event, Proposed | Settled | Decided)
        whole = reduce(together, event)
        alone = reduce(apart[event.request], event)
        together, apart[event.request] = whole.state, alone.state
        assert whole[1:] == alone[1:]


@given(ladders, work)
def test_the_state_holds_only_what_the_events_named_and_digests(ladder, history):
    state = after(SideEffectDuplicate.start(Mode.ENFORCE, ladder=ladder), history)
    for log in state.requests.values():
        for record in log.calls.values():
            assert (record.question is not None) is (record.status == "suspended")
    if ladder.scope is Scope.REQUEST:
        assert all(key.startswith("request/2/r") for key in state.tracks)
