"""Pipeline: the most specific guard decides first, and the first that stops gives the reason."""

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.duplicate_call_id import HistoryCall
from guardwave.reducer.guards.identical_call import Budget, SynthesisCause, TurnMode
from guardwave.reducer.guards.side_effect import (
    Action,
    Candidate,
    FirstUse,
    Ladder,
    Layer,
    Scope,
    ToolDeclaration,
)
from guardwave.reducer.pipeline import (
    GUARDS,
    HistorySeeded,
    Limits,
    PipelineStep,
    Proposal,
)
from guardwave.reducer.vocabulary import Decision, LoopType, Mode
from tests.support.guards.pipelines import SENDS, Session, actions, ask, every

DUPLICATE, IDENTICAL, SIDE_EFFECT, REPEATED = GUARDS


def fail_until_warned(session):
    """Fail twice with four calls each, so that the next failure of this kind is the last."""
    first, last = ([ask(f"w{at}", path=str(at)) for at in row] for row in (range(4), range(4, 8)))
    session.round(*first, outcome="timeout")
    return session.round(*last, outcome="timeout")


def test_calls_without_any_fault_run_and_are_hardly_spoken_of():
    session = Session()
    step = session.propose(ask("a", path="1"), ask("b", path="2"))
    assert actions(step) == ["run", "run"]
    names = [(call.key, call.call_id, call.tool) for call in step.dispositions]
    assert names == [("a", "a", "read"), ("b", "b", "read")]
    done = session.settle(step.dispositions)
    assert (done.stop, done.reminder) == (None, None)
    assert [(transition.guard, transition.decision) for transition in session.transitions] == [
        (DUPLICATE, Decision.TRACKED)
    ]


def test_a_replayed_call_is_answered_and_then_stops_the_turn():
    session = Session()
    session.round(ask("a", path="1"))
    answered = session.propose(ask("a", path="1"), ask("b", path="2"))
    replayed, fresh = answered.dispositions
    assert (replayed.action, replayed.call_id, replayed.text) == (
        "answer",
        "a__dup_2",
        messages.DUPLICATE_CALL_ANSWER,
    )
    assert replayed.not_run().is_provider_duplicate
    assert fresh.action == "run"
    session.settle(answered.dispositions)
    stopped = session.propose(ask("a", path="1"), ask("c", path="3"))
    assert actions(stopped) == ["drop", "drop"]
    assert stopped.stop == (LoopType.GLOBAL_TOOL_CALL_DUPLICATE, messages.DUPLICATE_CALL_STOP)


def test_the_third_call_with_invalid_parameters_stops_the_turn():
    session = Session()
    for number in range(2):
        assert session.round(ask(f"i{number}", n=number), outcome="invalid").stop is None
    step = session.round(ask("i3", n=3), outcome="invalid")
    assert step.stop == (LoopType.INVALID_TOOL_PARAMS, messages.INVALID_PARAMS_STOP)


def test_an_identical_call_ends_in_a_turn_without_tools_and_then_in_a_stop():
    session = Session()
    for number in range(4):
        assert session.turn().turn.mode is TurnMode.NORMAL
        session.round(ask(f"c{number}", path="same"))
    turn = session.turn().turn
    assert (turn.mode, turn.cause) == (TurnMode.SYNTHESIS_ONLY, SynthesisCause.REPETITION)
    assert turn.note == messages.REPETITION_NOTE
    step = session.propose(ask("c9", "other"))
    assert step.stop == (LoopType.IDENTICAL_TOOL_CALL, messages.IDENTICAL_CALL_STOP)
    assert actions(step) == ["drop"]


def test_evidence_restarts_an_identical_call():
    session = Session()
    for number in range(8):
        session.turn()
        step = session.propose(ask(f"c{number}", path="same"))
        session.settle(step.dispositions, evidence={step.dispositions[0].key: f"page {number}"})
    assert session.turn().turn.mode is TurnMode.NORMAL


def test_a_used_up_budget_ends_the_turn_without_a_loop():
    session = Session()
    assert session.turn(budget=Budget.RESERVE).turn.cause is SynthesisCause.BUDGET
    assert session.turn(budget=Budget.EXHAUSTED).stop == (None, None)


def test_a_repeated_side_effect_waits_for_a_person_who_may_allow_it_once():
    session = Session()
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    step = session.propose(ask("s2", "send", declaration=SENDS, to="ann"), ask("r", path="1"))
    asked, read = step.dispositions
    assert (asked.action, read.action) == ("ask", "run")
    assert asked.question.repeat.first.call_id == "s1"
    (allowed,) = session.answer("s2", is_approved=True).dispositions
    assert (allowed.action, allowed.key, allowed.call_id, allowed.tool) == (
        "run",
        "s2",
        "s2",
        "send",
    )
    assert session.settle((allowed, read)).stop is None
    assert actions(session.propose(ask("s3", "send", declaration=SENDS, to="ann"))) == ["ask"]


def test_a_refusal_answers_the_call_and_its_twins_and_is_remembered():
    session = Session()
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    twins = [ask(f"t{at}", "send", declaration=SENDS, to="ann") for at in range(2)]
    step = session.propose(*twins)
    assert actions(step) == ["ask", "ask"]
    refused = session.answer("t0", is_approved=False)
    assert [(call.key, call.action, call.text) for call in refused.dispositions] == [
        ("t0", "answer", messages.SIDE_EFFECT_REFUSED),
        ("t1", "answer", messages.SIDE_EFFECT_REFUSED),
    ]
    assert session.settle(refused.dispositions).stop is None
    again = session.propose(ask("s9", "send", declaration=SENDS, to="ann"))
    assert [(call.action, call.text) for call in again.dispositions] == [
        ("answer", messages.SIDE_EFFECT_REFUSED)
    ]


@pytest.mark.parametrize("key", ["nobody", "s1"])
def test_an_answer_to_no_open_question_changes_nothing(key):
    session = Session()
    assert session.answer(key, is_approved=True) == PipelineStep(session.state)
    session.propose(ask("s1", "send", declaration=SENDS, to="ann"))
    assert session.answer(key, is_approved=True) == PipelineStep(session.state)


def test_a_blocked_side_effect_ends_the_turn_once_its_siblings_have_settled():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    step = session.propose(ask("s2", "send", declaration=SENDS, to="ann"), ask("r", path="1"))
    assert actions(step) == ["answer", "run"]
    assert step.dispositions[0].error.first_call_id == "s1"
    assert step.stop is None
    done = session.settle(step.dispositions)
    assert done.stop == (LoopType.SIDE_EFFECT_DUPLICATE, messages.SIDE_EFFECT_STOP)


def test_calls_that_do_no_harm_leave_no_trace_in_the_side_effect_guard():
    session = Session()
    keyed = ToolDeclaration(side_effect=True, idempotency_key_fields=("to",))
    step = session.propose(ask("r", path="1"), ask("k", "send", declaration=keyed, to="ann"))
    assert (session.state.side_effect.requests, session.state.side_effect.tracks) == ({}, {})
    session.settle(step.dispositions)
    assert (session.state.side_effect.requests, session.state.side_effect.tracks) == ({}, {})


def test_a_replay_that_was_answered_is_no_repeat_of_its_side_effect():
    session = Session()
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    (answered,) = session.propose(ask("s1", "send", declaration=SENDS, to="ann")).dispositions
    assert (answered.action, answered.text) == ("answer", messages.DUPLICATE_CALL_ANSWER)
    assert [
        transition
        for transition in session.transitions
        if transition.decision is Decision.SUSPENDED
    ] == []


def test_the_first_use_of_a_declared_identity_is_handed_to_the_hosts_store():
    session = Session()
    act = Proposal(ToolCall.of("s1", "send", {"to": "ann"}), SENDS, xid="act")
    step = session.propose(act, channel="mail")
    (kept,) = session.settle(step.dispositions).first_uses
    assert (kept.xid, kept.use) == ("act", FirstUse("s1", "r1", session.now_ms, "mail"))


def test_work_done_through_another_channel_is_asked_about():
    session = Session()
    use = FirstUse("x7", "another request", 5, "chat")
    act = Proposal(ToolCall.of("s1", "send", {"to": "ann"}), SENDS, xid="act", first_use=use)
    (asked,) = session.propose(act).dispositions
    repeat = asked.question.repeat
    assert (asked.action, repeat.layer, repeat.first) == ("ask", Layer.XID, use)
    assert asked.incident.action is Action.SUSPEND


def test_work_that_looks_alike_is_asked_about_in_its_thread():
    session = Session()
    use = FirstUse("x7", "another request", 5)
    like = Proposal(ToolCall.of("s1", "send", {"to": "ann"}), SENDS, candidate=Candidate("t1", use))
    (asked,) = session.propose(like, thread="t1").dispositions
    assert (asked.action, asked.question.repeat.layer) == ("ask", Layer.SEMANTIC)


def test_in_warn_a_repeat_runs_with_an_incident():
    session = Session(every(Mode.WARN))
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    (call,) = session.propose(ask("s2", "send", declaration=SENDS, to="ann")).dispositions
    assert (call.action, call.incident.repeat.first.call_id) == ("run", "s1")


def test_a_nudge_does_not_end_the_turn():
    session = Session(limits=Limits(ladder=Ladder(Action.REFLECT)))
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    step = session.propose(ask("s2", "send", declaration=SENDS, to="ann"))
    assert (actions(step), step.dispositions[0].text) == (["answer"], messages.SIDE_EFFECT_NUDGE)
    assert step.dispositions[0].incident.action is Action.REFLECT
    assert session.settle(step.dispositions).stop is None


def test_a_tool_that_keeps_failing_gets_one_reminder_and_then_a_stop():
    session = Session()
    step = fail_until_warned(session)
    assert (step.reminder, step.stop) == (messages.REPEATED_FAILURE_REMINDER, None)
    step = session.round(ask("x", path="x"), outcome="timeout")
    assert step.reminder is None
    assert step.stop == (LoopType.REPEATED_TOOL_EXECUTION_FAILURE, messages.REPEATED_FAILURE_STOP)


def test_the_total_cap_is_the_last_to_stop_a_turn():
    session = Session(limits=Limits(total_calls=3))
    session.round(*(ask(f"c{at}", path=str(at)) for at in range(3)))
    step = session.propose(ask("d", path="d"))
    assert step.stop == (LoopType.TOTAL_TOOL_CALLS, messages.TOTAL_CALLS_STOP)


@pytest.mark.parametrize(
    ("call", "loop"),
    [
        pytest.param(
            ask("c0", path="same"), LoopType.GLOBAL_TOOL_CALL_DUPLICATE, id="call-id replay first"
        ),
        pytest.param(ask("new", path="same"), LoopType.IDENTICAL_TOOL_CALL, id="then identical"),
        pytest.param(ask("new", path="other"), LoopType.TOTAL_TOOL_CALLS, id="the cap at last"),
    ],
)
def test_of_several_guards_that_would_drop_a_batch_the_most_specific_owns_it(call, loop):
    session = Session(limits=Limits(total_calls=2, identical_threshold=3))
    session.round(ask("c0", path="same"))
    session.round(ask("c0", path="same"))
    session.round(ask("c1", path="1"))
    before = len(session.transitions)
    step = session.propose(call, ask("fine", path="2"))
    assert step.stop.loop is loop
    stops = [transition.guard for transition in session.transitions[before:]]
    owner = {
        LoopType.GLOBAL_TOOL_CALL_DUPLICATE: [DUPLICATE],
        LoopType.IDENTICAL_TOOL_CALL: [IDENTICAL],
        LoopType.TOTAL_TOOL_CALLS: [],
    }
    assert stops == owner[loop]


def test_of_two_that_stop_at_the_end_of_a_batch_the_more_specific_owns_it():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    wrong = [ask(f"i{at}", n=at) for at in range(3)]
    session.round(*wrong[:2], outcome="invalid")
    step = session.propose(wrong[2], ask("s2", "send", declaration=SENDS, to="ann"))
    assert actions(step) == ["run", "answer"]
    done = session.settle(step.dispositions, "invalid")
    assert done.stop.loop is LoopType.INVALID_TOOL_PARAMS


def test_a_reminder_is_not_given_in_a_batch_that_another_guard_ends():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", declaration=SENDS, to="ann"))
    before = session.state.repeated
    step = session.propose(ask("s2", "send", declaration=SENDS, to="ann"))
    assert session.settle(step.dispositions).reminder is None
    assert session.state.repeated == before


def test_a_batch_that_a_broader_guard_drops_never_was_for_the_narrower_ones():
    session = Session(limits=Limits(total_calls=1))
    session.round(ask("a", path="1"))
    before = session.state
    step = session.propose(
        ask("b", path="2"), ask("s", "send", declaration=SENDS, to="ann"), ask("a", path="1")
    )
    assert step.stop.loop is LoopType.TOTAL_TOOL_CALLS
    assert step.transitions == ()
    assert session.state.duplicate == before.duplicate
    assert session.state.identical == before.identical
    assert session.state.side_effect == before.side_effect


def test_after_a_stop_nothing_runs_until_a_new_prompt_begins():
    session = Session(limits=Limits(total_calls=1))
    session.propose(ask("a", path="1"), ask("b", path="2"))
    reported = list(session.transitions)
    assert session.turn().stop.loop is LoopType.TOTAL_TOOL_CALLS
    again = session.propose(ask("c", path="3"))
    assert (actions(again), again.stop.loop) == (["drop"], LoopType.TOTAL_TOOL_CALLS)
    assert session.transitions == reported
    session.prompt()
    assert session.turn().stop is None
    assert actions(session.propose(ask("d", path="4"))) == ["run"]


def test_a_new_prompt_keeps_call_ids_and_forgets_counts():
    session = Session()
    session.round(ask("a", path="1"))
    fail_until_warned(session)
    session.prompt()
    assert session.round(ask("x", path="x"), outcome="timeout").stop is None
    assert actions(session.propose(ask("a", path="1"))) == ["answer"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        pytest.param(Scope.REQUEST, "run", id="another request is never compared"),
        pytest.param(Scope.THREAD, "ask", id="a thread spans requests"),
    ],
)
def test_runs_of_a_prompt_stay_known_within_their_scope(scope, expected):
    session = Session(limits=Limits(ladder=Ladder(scope=scope)))
    send = {"declaration": SENDS, "to": "ann"}
    step = session.propose(ask("s1", "send", **send), request="r1", thread="t")
    session.settle(step.dispositions)
    session.prompt()
    step = session.propose(ask("s2", "send", **send), request="r2", thread="t")
    assert actions(step) == [expected]


def test_thread_scope_without_a_thread_gives_the_operator_a_diagnostic():
    session = Session(limits=Limits(ladder=Ladder(scope=Scope.THREAD)))
    step = session.propose(ask("s1", "send", declaration=SENDS, to="ann"))
    assert step.diagnostics == (messages.SIDE_EFFECT_NO_THREAD,)


def test_a_transcript_seeds_the_ids_that_were_answered():
    session = Session()
    call = ToolCall.of("old", "read", {"path": "1"})
    session.take(HistorySeeded((HistoryCall(call), HistoryCall(call, is_answered=False))))
    assert session.transitions == []
    assert actions(session.propose(ask("old", path="1"), ask("new", path="2"))) == ["answer", "run"]
