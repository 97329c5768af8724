"""Pipeline state: its records between two events, and the report of a call that did not run."""

import json

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.identical_call import Budget, Failure
from guardwave.reducer.guards.repeated_failure import Observation
from guardwave.reducer.guards.side_effect import Action, Ladder, ToolDeclaration
from guardwave.reducer.pipeline import (
    GUARDS,
    CallDisposition,
    HostAction,
    Limits,
    Pipeline,
    PipelineStep,
    Proposal,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.pipeline.events import Answered
from guardwave.reducer.pipeline.state import RunningCall
from guardwave.reducer.vocabulary import Decision, LoopType, Mode, Route
from tests.support.guards.pipelines import SENDS, Session, ask, every

DUPLICATE, IDENTICAL, SIDE_EFFECT, REPEATED = GUARDS
TO_ANN = {"declaration": SENDS, "to": "ann"}


def waiting():
    """Return a session in which two calls wait for a person, and a third one runs."""
    session = Session()
    session.round(ask("s1", "send", **TO_ANN))
    session.propose(ask("s2", "send", **TO_ANN), ask("s3", "send", **TO_ANN), ask("r", path="1"))
    return session


def guards_of(state):
    return (state.duplicate, state.identical, state.side_effect, state.repeated)


def test_each_guard_takes_its_own_mode_and_the_route_from_a_new_prompt():
    session = Session(every(Mode.OFF))
    modes = dict(zip(GUARDS, [Mode.SHADOW, Mode.WARN, Mode.ENFORCE, Mode.SHADOW], strict=True))
    session.prompt(modes)
    assert [guard.mode for guard in guards_of(session.state)] == list(modes.values())
    session.prompt(every(Mode.ENFORCE), route=Route.CRON)
    assert {guard.mode for guard in guards_of(session.state)} == {Mode.OFF}
    assert {guard.route for guard in guards_of(session.state)} == {Route.CRON}


def test_each_guard_takes_its_own_mode_and_the_route_from_the_start():
    modes = dict(zip(GUARDS, [Mode.SHADOW, Mode.WARN, Mode.ENFORCE, Mode.SHADOW], strict=True))
    assert [guard.mode for guard in guards_of(Pipeline.start(modes))] == list(modes.values())
    elsewhere = Pipeline.start(modes, route=Route.CHANNEL)
    assert {guard.mode for guard in guards_of(elsewhere)} == {Mode.OFF}
    assert {guard.route for guard in guards_of(elsewhere)} == {Route.CHANNEL}


def test_a_new_prompt_keeps_settings_and_numbers_and_drops_the_rest():
    limits = Limits(Ladder(Action.BLOCK), "~", "g", identical_threshold=4, total_calls=9)
    session = Session(every(Mode.SHADOW), limits=limits)
    session.round(ask("i", n=1), outcome="invalid")
    session.propose(ask("s1", "send", **TO_ANN), ask("s2", "send", **TO_ANN))
    session.prompt()
    after = session.state
    assert (after.duplicate.names.suffix, after.duplicate.names.generated_prefix) == ("~", "g")
    assert (after.identical.threshold, after.side_effect.ladder) == (4, Ladder(Action.BLOCK))
    assert (after.total.limit, after.total.count, after.last_key) == (9, 0, 3)
    assert (after.invalid.count, after.request, after.running) == (0, None, ())
    assert (after.is_blocked, after.stopped_by) == (False, None)
    assert after.side_effect.requests == {}


def test_keys_go_on_after_a_new_prompt():
    session = Session(every(Mode.SHADOW))
    session.round(ask("a", n=1))
    session.prompt(every(Mode.SHADOW))
    (disposition,) = session.propose(ask("a", n=1)).dispositions
    assert disposition.key == "a#2"


@pytest.mark.parametrize("budget", [Budget.NONE, Budget.EXHAUSTED])
def test_a_turn_leaves_nothing_running(budget):
    session = waiting()
    assert [call.key for call in session.state.running] == ["s2", "s3", "r"]
    session.turn(budget=budget)
    assert session.state.running == ()


def test_a_used_up_budget_fails_the_run_again_and_again():
    session = Session()
    before = session.state
    step = session.turn(budget=Budget.EXHAUSTED)
    assert step.transitions == ()
    assert step.state.identical.failure is Failure.BUDGET_EXCEEDED
    assert guards_of(step.state)[2:] == guards_of(before)[2:]
    assert step.state.stopped_by is None
    assert session.turn().stop == (None, None)


def test_an_approved_call_is_known_to_run_and_is_not_approved_twice():
    session = waiting()
    approved = session.answer("s2", is_approved=True)
    assert (approved.transitions, approved.stop) == ((), None)
    before = session.state
    assert [call.key for call in before.running] == ["s2", "s3", "r"]
    assert session.answer("s2", is_approved=True) == PipelineStep(before)


def test_a_refused_call_and_its_twins_run_no_longer_and_each_is_reported_as_a_stop():
    session = waiting()
    refused = session.answer("s2", is_approved=False)
    assert [call.key for call in session.state.running] == ["r"]
    assert [transition.decision for transition in refused.transitions] == [Decision.STOPPED] * 2
    assert [
        (disposition.key, disposition.call_id, disposition.tool, disposition.action)
        for disposition in refused.dispositions
    ] == [
        ("s2", "s2", "send", "answer"),
        ("s3", "s3", "send", "answer"),
    ]


def test_an_answer_to_a_call_that_runs_unasked_changes_nothing():
    session = waiting()
    before = session.state
    assert session.answer("r", is_approved=True) == PipelineStep(before)


def test_an_answer_that_comes_after_the_next_turn_began_changes_nothing():
    session = waiting()
    session.turn()
    before = session.state
    assert session.answer("s2", is_approved=True) == PipelineStep(before)


def test_an_answer_changes_nothing_where_no_request_is_known():
    state = waiting().state._replace(request=None)
    assert reduce(state, Answered("s2", True, 5)) == PipelineStep(state)


def test_a_dropped_batch_leaves_neither_keys_nor_running_nor_blocked_calls():
    session = Session(limits=Limits(ladder=Ladder(Action.BLOCK), total_calls=2))
    session.round(ask("s1", "send", **TO_ANN))
    session.propose(ask("s2", "send", **TO_ANN), ask("r", path="1"))
    assert (session.state.is_blocked, len(session.state.running)) == (True, 1)
    step = session.propose(ask("a", path="2"), ask("b", "write", path="3"))
    assert step.dispositions == (
        CallDisposition(HostAction.DROP, "", None, "read"),
        CallDisposition(HostAction.DROP, "", None, "write"),
    )
    after = session.state
    assert (after.running, after.is_blocked) == ((), False)
    assert after.stopped_by is LoopType.TOTAL_TOOL_CALLS


@pytest.mark.parametrize(
    ("declaration", "is_named"),
    [
        pytest.param(SENDS, False, id="declared to have a side effect"),
        pytest.param(ToolDeclaration(), True, id="declared to be nothing"),
    ],
)
def test_a_question_names_the_tool_and_how_to_declare_it(declaration, is_named):
    session = Session()
    session.round(ask("s1", "send", declaration=declaration, to="ann"))
    (asked,) = session.propose(ask("s2", "send", declaration=declaration, to="ann")).dispositions
    assert (asked.question.repeat.tool, asked.question.repeat.call_id) == ("send", "s2")
    assert (messages.SIDE_EFFECT_DECLARATION in asked.question.text) is is_named


@pytest.mark.parametrize("is_provider_duplicate", [True, False])
def test_a_call_that_did_not_run_is_observed_as_an_error_that_never_started(is_provider_duplicate):
    disposition = CallDisposition(
        HostAction.ANSWER, "k", "id", "send", is_provider_duplicate=is_provider_duplicate
    )
    assert disposition.not_run(tool_type="mcp") == Observation(
        "k",
        "send",
        tool_type="mcp",
        terminal_status="error",
        execution_status="not_started",
        is_provider_duplicate=is_provider_duplicate,
    )
    assert disposition.not_run().tool_type is None


def test_a_dump_holds_the_whole_state_and_is_read_back():
    session = Session(every(Mode.SHADOW))
    session.round(ask("i", n=1), outcome="invalid")
    session.propose(Proposal(ToolCall("x", "read", None)), Proposal(ToolCall(None, "send", None)))
    state = session.state._replace(is_blocked=True, stopped_by=LoopType.IDENTICAL_TOOL_CALL)
    document = json.loads(json.dumps(dump(state)))
    assert {name: found for name, found in document.items() if not isinstance(found, dict)} == {
        "guard": "pipeline",
        "schema": 1,
        "request": "r1",
        "running": [["x#2", "x", "read"], ["call#3", None, "send"]],
        "is_blocked": True,
        "stopped_by": "identical_tool_call",
        "last_key": 3,
    }
    assert {
        name: found["guard"] for name, found in document.items() if isinstance(found, dict)
    } == {
        "duplicate": "duplicate_call_id",
        "identical": "identical_call",
        "side_effect": "side_effect_duplicate",
        "repeated": "repeated_tool_failure",
        "invalid": "invalid_tool_params",
        "total": "total_tool_calls",
    }
    found = restore(document)
    assert found == state
    assert found.running == (RunningCall("x#2", "x", "read"), RunningCall("call#3", None, "send"))
    assert (found.invalid.count, found.total.count) == (1, 3)


@pytest.mark.parametrize("running", [[["a", "b"]], [["a", 7, "read"]], [[None, "b", "read"]]])
def test_a_running_call_that_is_cut_short_is_refused(running):
    words = "running must be a list of a key, a call id and a tool each; start the guard anew"
    with pytest.raises(ValueError, match=words):
        restore({**dump(waiting().state), "running": running})


def test_a_restored_session_answers_for_the_calls_that_wait():
    session = waiting()
    session.state = restore(json.loads(json.dumps(dump(session.state))))
    assert (
        session.answer("s2", is_approved=False).dispositions[0].text == messages.SIDE_EFFECT_REFUSED
    )
    assert session.state.side_effect.requests["r1"].calls["s2"].status == "denied"
