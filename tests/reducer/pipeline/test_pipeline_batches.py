"""Pipeline batches: their traces while they run, when they settle, and when they are dropped."""

import pytest

from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import Action, FirstUse, Ladder
from guardwave.reducer.guards.transition import Transition
from guardwave.reducer.pipeline import (
    GUARDS,
    CallDisposition,
    HostAction,
    Limits,
    Pipeline,
    PipelineStep,
    Proposal,
)
from guardwave.reducer.pipeline.state import RunningCall
from guardwave.reducer.vocabulary import Decision, LoopType, Mode
from tests.support.guards.pipelines import SENDS, Session, ask, every

DUPLICATE, IDENTICAL, SIDE_EFFECT, REPEATED = GUARDS
TO_ANN = {"declaration": SENDS, "to": "ann"}


def test_a_final_answer_finishes_the_run_and_leaves_nothing_running_or_blocked():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", **TO_ANN))
    session.propose(ask("s2", "send", **TO_ANN), ask("r", path="1"))
    before = session.state
    assert before.is_blocked is True
    step = session.propose()
    finished = before.identical._replace(turn=None, pending=None, is_finished=True)
    assert step == PipelineStep(before._replace(identical=finished, running=(), is_blocked=False))
    assert session.state.is_blocked is False


def test_a_batch_that_runs_is_known_with_its_request_until_the_next_prompt():
    session = Session()
    step = session.propose(ask("s1", "send", **TO_ANN), ask("r", path="1"))
    assert session.state.running == (RunningCall("s1", "s1", "send"), RunningCall("r", "r", "read"))
    assert (session.state.request, session.state.last_key) == ("r1", 0)
    assert session.state.is_blocked is False
    session.settle(step.dispositions)
    assert session.state.request == "r1"
    assert not session.state.running
    session.prompt()
    assert (session.state.request, session.state.side_effect.requests) == (None, {})


def test_a_batch_that_settles_after_a_stop_does_not_undo_it():
    session = Session(limits=Limits(total_calls=2))
    step = session.propose(ask("a", path="1"))
    session.propose(ask("b", path="2"), ask("c", path="3"))
    assert session.settle(step.dispositions).stop is None
    assert session.state.stopped_by is LoopType.TOTAL_TOOL_CALLS


def test_each_settled_call_and_each_repeat_of_a_batch_is_reported():
    session = Session()
    first = session.propose(ask("s1", "send", **TO_ANN), ask("m", "mail", declaration=SENDS))
    tracked = session.settle(first.dispositions).transitions
    assert [(transition.guard, transition.decision) for transition in tracked] == [
        (SIDE_EFFECT, Decision.TRACKED)
    ] * 2
    again = session.propose(ask("s2", "send", **TO_ANN), ask("n", "mail", declaration=SENDS))
    assert [
        transition.decision for transition in again.transitions if transition.guard == SIDE_EFFECT
    ] == [Decision.SUSPENDED] * 2


def test_evidence_that_restarts_a_count_is_reported_before_the_batch():
    session = Session()
    resets: tuple[Transition, ...] = ()
    for page in ("p", "q"):
        step = session.propose(ask(f"r{page}", path="same"))
        resets = session.settle(step.dispositions, evidence={f"r{page}": page}).transitions
    assert [(reset.guard, reset.decision) for reset in resets] == [(IDENTICAL, Decision.RESET)]


def test_a_call_that_is_answered_or_dropped_keeps_its_place_and_its_tool():
    session = Session()
    session.round(ask("a", path="1"))
    step = session.propose(ask("a", path="1"), ask("b", "list", n=1), ask("b", "list", n=2))
    answered, _, dropped = step.dispositions
    assert (answered.action, answered.key, answered.tool) == ("answer", "a__dup_2", "read")
    assert dropped == CallDisposition(HostAction.DROP, "call#3", None, "list")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        pytest.param({"xid": 5}, "xid is of type int; pass a text", id="an identity of no text"),
        pytest.param(
            {"first_use": FirstUse("c", "r", 1)},
            "first_use is given without the xid",
            id="a use without its identity",
        ),
    ],
)
def test_a_proposal_with_an_identity_that_cannot_be_is_refused(made, words):
    with pytest.raises(ValueError, match=words):
        Session().propose(Proposal(ToolCall.of("s1", "send", {}), SENDS, **made))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        pytest.param({"thread": 5}, "thread is of type int; pass a text", id="a thread of no text"),
        pytest.param({"channel": ""}, "channel is not a text of 1 to 64", id="an empty channel"),
        pytest.param({"request": " "}, "request is blank; name the request", id="a blank request"),
    ],
)
def test_a_batch_from_a_place_that_cannot_be_is_refused(how, words):
    with pytest.raises(ValueError, match=words):
        Session().propose(ask("s1", "send", **TO_ANN), **how)


def test_a_batch_that_settles_without_a_known_request_changes_no_guard():
    session = Session()
    session.propose(ask("r", path="1"))
    dispositions = (CallDisposition(HostAction.RUN, "r", "r", "read"),)
    session.state = session.state._replace(request=None)
    before = session.state.side_effect
    session.settle(dispositions)
    assert session.state.side_effect == before


def test_a_blocked_call_is_not_forgotten_over_one_that_runs_after_it():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", **TO_ANN))
    step = session.propose(ask("s2", "send", **TO_ANN), ask("m", "mail", declaration=SENDS))
    assert [disposition.action for disposition in step.dispositions] == ["answer", "run"]
    assert session.state.is_blocked is True


@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        pytest.param(Mode.SHADOW, ["a#2", "a#3", "call#4"], id="by keys where nobody renames"),
        pytest.param(Mode.WARN, ["a__dup_2", "call_gen_1"], id="by the names that are given"),
    ],
)
def test_evidence_is_filed_under_the_key_of_its_call(mode, keys):
    session = Session(every(mode))
    session.round(ask("a", path="0"))
    session.propose(ask("a", path="1"), ask("a", path="2"), ask(None, path="3"))
    pending = session.state.identical.pending or ()
    assert [call.call_id for call in pending] == keys
    prints = [ask("x", path=path).call.fingerprint for path in "123"]
    assert {call.fingerprint for call in pending} <= set(prints)


def test_the_limits_of_a_session_are_these_unless_the_host_sets_its_own():
    state = Pipeline.start(every(Mode.ENFORCE))
    assert (state.total.limit, state.invalid.limit) == (100, 3)
    assert (state.identical.threshold, state.identical.max_evidence_resets) == (5, 32)
    assert state.side_effect.ladder == Ladder(Action.SUSPEND)


def test_only_what_a_provider_sent_twice_is_observed_as_its_duplicate():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK)))
    session.round(ask("s1", "send", **TO_ANN))
    step = session.propose(ask("s2", "send", **TO_ANN), ask("s1", "send", **TO_ANN))
    assert [disposition.action for disposition in step.dispositions] == ["answer", "answer"]
    assert [call.not_run().is_provider_duplicate for call in step.dispositions] == [False, True]
