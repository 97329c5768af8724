"""Side-effect places: the reach of the search for repeats, and the end of a request or thread."""

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import (
    Action,
    Proposed,
    RequestEnded,
    Scope,
    ThreadEnded,
    Verdict,
)
from tests.support.guards.side_effects import ERROR, Host

BLOCK, REFLECT, SUSPEND, WARN = Action.BLOCK, Action.REFLECT, Action.SUSPEND, Action.WARN


def test_in_thread_scope_a_nudge_counts_in_the_next_request():
    host = Host(action=REFLECT, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.run("c2", thread="t")
    assert host.run("c3", thread="t", request="r2").verdict is Verdict.BLOCK


def test_in_thread_scope_a_nudge_counts_after_its_request_ended():
    host = Host(action=REFLECT, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.run("c2", thread="t")
    host.take(RequestEnded("r1"))
    assert host.run("c3", thread="t", request="r2").verdict is Verdict.BLOCK


@pytest.mark.parametrize("thread", [None, "", "  "], ids=["none", "empty", "blank"])
def test_thread_scope_without_a_thread_is_request_scope_with_a_diagnostic(thread):
    host = Host(action=BLOCK, scope=Scope.THREAD)
    step = host.run("c1", thread=thread)
    assert step.diagnostic == messages.SIDE_EFFECT_NO_THREAD
    assert host.run("c2", thread=thread).verdict is Verdict.BLOCK
    assert host.run("c3", thread=thread, request="r2").verdict is Verdict.EXECUTE
    assert host.run("c4", thread="t").diagnostic is None


def test_request_scope_needs_no_thread_and_gives_no_diagnostic():
    assert Host().run("c1").diagnostic is None


def test_request_and_thread_of_one_name_are_two_places():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1", request="x")
    assert host.run("c2", request="r2", thread="x").verdict is Verdict.EXECUTE


def test_a_call_id_belongs_to_its_request():
    host = Host(action=BLOCK)
    host.run("c1")
    assert host.run("c1", request="r2").verdict is Verdict.EXECUTE


@pytest.mark.parametrize("call_id", [None, "", "  "], ids=["none", "empty", "blank"])
def test_a_call_without_an_id_runs_and_is_not_followed(call_id):
    host = Host(action=BLOCK)
    host.run("c1")
    before = host.guard
    step = host.propose(call_id)
    assert (step.verdict, step.record, host.guard) == (Verdict.EXECUTE, None, before)


def test_a_call_without_a_digest_equals_no_other_one():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    for request, call_id in (("r1", "c1"), ("r1", "c2"), ("r2", "c1")):
        call = ToolCall(call_id, "charge", None)
        step = host.take(Proposed(call, request, 0, thread="t"))
        host.settle(call_id, request=request)
        assert step.verdict is Verdict.EXECUTE
    assert host.take(Proposed(ToolCall("c1", "charge", None), "r1", 0)).verdict is Verdict.REPLAY


def test_the_end_of_a_request_forgets_all_of_it_and_nothing_else():
    host = Host(action=BLOCK)
    only_other = Host(action=BLOCK)
    for guarded in (host, only_other):
        guarded.run("c1", request="r2")
    host.run("c1")
    host.propose("c2", args={"order": "9"})
    host.take(RequestEnded("r1"))
    assert host.guard == only_other.guard
    assert host.run("c3").verdict is Verdict.EXECUTE


def test_the_end_of_a_request_keeps_what_its_thread_did_but_not_what_never_settled():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.propose("c2", thread="t", args={"order": "9"})
    host.propose("c3", thread="t", args={"order": "9"}, request="r2", is_approved=True)
    host.take(RequestEnded("r1"))
    assert host.propose("d1", thread="t", request="r3").verdict is Verdict.BLOCK
    step = host.propose("d2", thread="t", request="r3", args={"order": "9"})
    assert step.repeat is not None
    assert step.repeat.first.call_id == "c3"
    host.take(RequestEnded("r2"))
    assert host.propose("d3", thread="t", request="r3", args={"order": "9"}).verdict is (
        Verdict.EXECUTE
    )


def test_the_end_of_a_thread_forgets_what_was_done_in_it():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.run("c1", thread="t2", request="r2")
    host.take(ThreadEnded("t"))
    assert host.run("c2", thread="t", request="r3").verdict is Verdict.EXECUTE
    assert host.run("c2", thread="t2", request="r4").verdict is Verdict.BLOCK


def ask(host, call_id, **where):
    return host.propose(call_id, **where).verdict


@pytest.mark.parametrize(
    ("thread", "request_id", "verdict"),
    [
        pytest.param(None, "r1", Verdict.BLOCK, id="without a thread, in its request"),
        pytest.param(None, "r2", Verdict.EXECUTE, id="without a thread, in another request"),
        pytest.param("t", "r2", Verdict.BLOCK, id="in its thread, in another request"),
        pytest.param("t2", "r1", Verdict.EXECUTE, id="in another thread of its request"),
    ],
)
@pytest.mark.parametrize("has_settled", [True, False], ids=["finished", "in flight"])
def test_a_first_run_of_a_thread_is_seen_in_its_request_by_calls_without_one(
    thread, request_id, verdict, *, has_settled
):
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.propose("c1", thread="t")
    if has_settled:
        host.settle("c1")
    step = host.propose("c2", thread=thread, request=request_id)
    assert step.verdict is verdict
    if step.repeat is not None:
        assert step.repeat.first.call_id == "c1"


def test_a_failed_run_of_a_thread_leaves_nothing_to_repeat_in_its_request():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1", thread="t", status=ERROR)
    assert host.guard.tracks == {}
    assert ask(host, "c2") is Verdict.EXECUTE


def test_a_request_keeps_its_own_first_run_beside_that_of_its_thread():
    host = Host(action=SUSPEND, scope=Scope.THREAD)
    host.run("c1", thread="t", request="r1")
    host.propose("c2", thread="t", request="r2")
    host.answer("c2", approved=True, request="r2")
    host.settle("c2", request="r2")
    of_thread = host.propose("c3", thread="t", request="r2")
    of_request = host.propose("c4", request="r2")
    assert [step.repeat.first.call_id for step in (of_thread, of_request)] == ["c1", "c2"]


@pytest.mark.parametrize("thread", ["t", "t2", None], ids=["the same", "another", "none"])
def test_a_refusal_holds_for_its_request_whatever_the_thread(thread):
    host = Host(action=SUSPEND, scope=Scope.THREAD)
    host.run("c1", thread="t")
    host.propose("c2", thread="t")
    host.answer("c2", approved=False)
    assert ask(host, "c3", thread=thread) is Verdict.REFUSE
    assert ask(host, "c4", thread="t", request="r2") is Verdict.SUSPEND


def test_a_refusal_answers_open_questions_about_the_same_in_every_thread_of_the_request():
    host = Host(action=SUSPEND, scope=Scope.THREAD)
    for thread in ("t", "t2"):
        host.run(f"first-{thread}", thread=thread)
        host.propose(f"again-{thread}", thread=thread)
    host.propose("again")
    step = host.answer("again-t", approved=False)
    assert set(step.resolved) == {"again-t2", "again"}


def test_a_refusal_without_a_thread_holds_for_calls_with_one():
    host = Host(action=SUSPEND, scope=Scope.THREAD)
    host.run("c1")
    host.propose("c2")
    host.answer("c2", approved=False)
    assert ask(host, "c3", thread="t") is Verdict.REFUSE


def test_a_nudge_in_a_thread_is_the_one_nudge_of_its_request():
    host = Host(action=REFLECT, scope=Scope.THREAD)
    host.run("c1", thread="t")
    assert ask(host, "c2", thread="t") is Verdict.REFLECT
    assert ask(host, "c3") is Verdict.BLOCK


def test_repeats_with_and_without_the_thread_are_one_candidate_of_the_request():
    host = Host(action=WARN, scope=Scope.THREAD)
    host.run("c1", thread="t")
    steps = [host.run("c2", thread="t"), host.run("c3")]
    assert [step.transitions[-1].candidate_ordinal for step in steps] == [1, 1]


def test_names_of_threads_and_requests_may_hold_any_character():
    host = Host(action=SUSPEND, scope=Scope.THREAD)
    odd = "thread/2/a/arguments/"
    host.run("c1", thread=odd, request="r/1/x")
    step = host.propose("c2", request="r/1/x")
    assert step.verdict is Verdict.SUSPEND
    host.answer("c2", approved=False, request="r/1/x")
    assert ask(host, "c3", thread=odd, request="r/1/x") is Verdict.REFUSE


def test_a_run_of_a_thread_that_settled_runs_no_more_in_its_request_either():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1", thread="t")
    tracks = list(host.guard.tracks.values())
    assert [track.running for track in tracks] == [(), ()]
    assert [track.first and track.first.call_id for track in tracks] == ["c1", "c1"]


def test_a_run_of_a_thread_is_not_the_first_of_a_request_that_had_one():
    host = Host(action=BLOCK, scope=Scope.THREAD)
    host.run("c1")
    assert host.run("c2", thread="t").verdict is Verdict.EXECUTE
    step = host.run("c3")
    assert step.verdict is Verdict.BLOCK
    assert step.repeat.first.call_id == "c1"


def test_a_run_of_a_thread_forgives_no_nudge_of_its_request():
    host = Host(action=REFLECT, scope=Scope.THREAD)
    host.run("c1")
    assert host.run("c2").verdict is Verdict.REFLECT
    assert host.run("c3", thread="t").verdict is Verdict.EXECUTE
    assert host.run("c4").verdict is Verdict.BLOCK
