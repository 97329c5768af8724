"""Side-effect answers: the answer of a person, and its reach."""

import pytest

from guardwave.reducer.guards.side_effect import (
    Action,
    ApprovalScope,
    CallStatus,
    FirstUse,
    Scope,
    Verdict,
)
from guardwave.reducer.vocabulary import Decision
from tests.support.guards.side_effects import ERROR, Host

BLOCK, REFLECT, SUSPEND, WARN = Action.BLOCK, Action.REFLECT, Action.SUSPEND, Action.WARN


def test_an_approved_call_that_is_running_is_not_started_again():
    host = Host()
    host.run("c1")
    host.run("c2")
    assert host.answer("c2", True).verdict is Verdict.EXECUTE
    assert host.propose("c2").verdict is Verdict.BLOCK
    assert host.propose("c2", is_approved=True).verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    ("approvals", "again"),
    [
        pytest.param(ApprovalScope.CALL, Verdict.EXECUTE, id="for the call: it may fail and run"),
        pytest.param(ApprovalScope.ATTEMPT, Verdict.SUSPEND, id="for one attempt: asked again"),
    ],
)
def test_the_reach_of_an_approval(approvals, again):
    host = Host(approvals=approvals)
    host.run("c1")
    host.run("c2")
    step = host.answer("c2", True)
    assert (step.verdict, step.record, step.transitions) == (
        Verdict.EXECUTE,
        CallStatus.RUNNING,
        (),
    )
    assert host.settle("c2", status=ERROR).record is CallStatus.FAILED
    assert host.propose("c2").verdict is again
    host.settle("c2", status=ERROR)
    assert host.propose("c2").verdict is again


@pytest.mark.parametrize(
    ("approvals", "again"),
    [
        pytest.param(ApprovalScope.CALL, Verdict.EXECUTE, id="for the call"),
        pytest.param(ApprovalScope.ATTEMPT, Verdict.SUSPEND, id="for one attempt"),
    ],
)
def test_the_reach_of_an_approval_given_beforehand(approvals, again):
    host = Host(approvals=approvals)
    host.run("c1")
    assert host.run("c2", is_approved=True, status=ERROR).verdict is Verdict.EXECUTE
    assert host.propose("c2").verdict is again


def test_an_approved_call_that_succeeded_answers_by_its_record():
    host = Host()
    host.run("c1")
    host.run("c2")
    host.answer("c2", True)
    host.settle("c2")
    assert host.propose("c2").verdict is Verdict.REPLAY
    assert host.propose("c3").verdict is Verdict.SUSPEND


def test_a_call_approved_beforehand_is_a_first_run_like_any_other():
    host = Host(action=BLOCK, ttl_ms=100)
    host.run("c1", is_approved=True)
    assert host.propose("c2", at=1).verdict is Verdict.BLOCK
    assert host.run("c3", at=101, is_approved=True).verdict is Verdict.EXECUTE
    step = host.propose("c4", at=201)
    assert (step.verdict, step.repeat and step.repeat.first.call_id) == (Verdict.BLOCK, "c3")


@pytest.mark.parametrize(
    ("answered_at", "asked_at", "first"),
    [
        pytest.param(100, 101, None, id="within the window: it does not renew it"),
        pytest.param(100, 100, "c1", id="within the window: the first stays the first"),
        pytest.param(101, 201, "c2", id="after it: the run becomes the first"),
        pytest.param(101, 202, None, id="after it: for a ttl of its own"),
    ],
)
@pytest.mark.parametrize("scope", Scope)
def test_a_run_that_is_approved_after_the_first_one_expired_becomes_the_first(
    answered_at, asked_at, first, scope
):
    host = Host(ttl_ms=100, scope=scope)
    host.run("c1", at=0, thread="t")
    host.propose("c2", at=50, thread="t")
    assert host.answer("c2", True, at=answered_at).verdict is Verdict.EXECUTE
    host.settle("c2", at=answered_at)
    step = host.propose("c3", at=asked_at, thread="t")
    assert (step.repeat and step.repeat.first.call_id) == first


def test_a_run_approved_after_the_first_one_expired_is_a_new_candidate():
    host = Host(ttl_ms=100)
    host.run("c1", at=0)
    assert host.propose("c2", at=50).transitions[0].candidate_ordinal == 1
    host.answer("c2", True, at=500)
    (transition,) = host.settle("c2", at=500).transitions
    assert (transition.decision, transition.candidate_ordinal) == (Decision.TRACKED, 2)


def test_a_call_approved_beforehand_outranks_a_refusal():
    host = Host()
    host.run("c1")
    host.run("c2")
    host.answer("c2", False)
    assert host.propose("c3", is_approved=True).verdict is Verdict.EXECUTE


@pytest.mark.parametrize("approved", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("first", [True, False], ids=["after a yes", "after a no"])
def test_a_second_answer_changes_nothing(first, approved):
    host = Host()
    host.run("c1")
    host.run("c2")
    host.answer("c2", first)
    before = host.guard
    step = host.answer("c2", approved)
    record = CallStatus.RUNNING if first else CallStatus.DENIED
    assert (step.verdict, step.record, step.transitions) == (Verdict.UNASKED, record, ())
    assert host.guard == before


def test_an_answer_to_a_question_nobody_put_changes_nothing():
    host = Host()
    host.run("c1")
    before = host.guard
    step = host.answer("lost", True)
    assert (step.verdict, step.record, host.guard) == (Verdict.UNASKED, None, before)


def test_a_refusal_answers_the_other_open_questions_about_the_same():
    host = Host()
    host.run("c1")
    for call_id in ("c2", "c3", "c4"):
        host.run(call_id)
    host.run("d1", args={"order": "9"})
    host.run("d2", args={"order": "9"})
    step = host.answer("c3", False)
    assert step.resolved == ("c2", "c4")
    assert len(step.transitions) == 3
    for call_id in ("c2", "c3", "c4"):
        assert host.propose(call_id).record is CallStatus.DENIED
    assert host.propose("d2").record is CallStatus.SUSPENDED


def test_an_approval_answers_no_other_question():
    host = Host()
    host.run("c1")
    host.run("c2")
    host.run("c3")
    assert host.answer("c2", True).resolved == ()
    assert host.propose("c3").record is CallStatus.SUSPENDED


def test_a_refusal_outlives_the_ttl():
    host = Host(ttl_ms=100)
    host.run("c1")
    host.run("c2")
    host.answer("c2", False)
    step = host.propose("c3", at=1_000)
    assert (step.verdict, step.repeat and step.repeat.first.call_id) == (Verdict.REFUSE, "c1")


def test_in_thread_scope_a_refusal_is_for_its_request_alone():
    host = Host(scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.run("c2", thread="t", request="r2")
    host.run("c3", thread="t", request="r3")
    host.answer("c2", False, request="r2")
    assert host.propose("c4", thread="t", request="r2").verdict is Verdict.REFUSE
    assert host.propose("c3", thread="t", request="r3").record is CallStatus.SUSPENDED
    assert host.propose("c5", thread="t", request="r4").verdict is Verdict.SUSPEND


def test_an_approval_leaves_the_rest_of_the_request_as_it_was():
    host = Host()
    host.run("c1")
    host.run("c2")
    host.answer("c2", True)
    assert host.propose("c1").verdict is Verdict.REPLAY


def test_an_approved_call_is_in_flight_from_the_answer_on():
    host = Host()
    host.propose("c1")
    host.propose("c2", at=3, channel="mail")
    host.settle("c1", status=ERROR)
    host.answer("c2", True, at=9)
    step = host.propose("c3", at=10)
    assert step.repeat is not None
    assert step.repeat.first == FirstUse("c2", "r1", 9, "mail")
