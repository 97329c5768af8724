"""Side-effect layers: repeats by XID or by likeness, on the same ladder."""

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import (
    Action,
    Candidate,
    FirstUse,
    FirstUseToKeep,
    Layer,
    Question,
    Repeat,
    Scope,
    ToolDeclaration,
    Verdict,
    find_candidate,
)
from guardwave.reducer.guards.side_effect.xid import Fields
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode
from tests.support.guards.side_effects import ERROR, Host, transition_words

XID = "e" * 32
EARLIER = FirstUse("a1", "r0", 1_000, "mail")
LIKE = Candidate("t", EARLIER)
DECLARED = ToolDeclaration(side_effect=True)
IDLE, TRACKING, WARNED, LATCHED = GuardPhase


def across(host, call_id="c1", **more):
    return host.propose(call_id, xid=XID, first_use=EARLIER, at=2_000, **more)


def alike(host, call_id="c1", **more):
    return host.propose(call_id, thread="t", candidate=LIKE, at=2_000, **more)


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        pytest.param(Action.OFF, Verdict.EXECUTE, id="off"),
        pytest.param(Action.WARN, Verdict.EXECUTE_WITH_INCIDENT, id="warn"),
        pytest.param(Action.REFLECT, Verdict.REFLECT, id="reflect"),
        pytest.param(Action.BLOCK, Verdict.BLOCK, id="block"),
        pytest.param(Action.SUSPEND, Verdict.SUSPEND, id="suspend"),
    ],
)
def test_an_act_done_elsewhere_meets_the_same_ladder(action, verdict):
    step = across(Host(action=action))
    assert step.verdict is verdict
    if step.repeat is not None:
        assert (step.repeat.first, step.repeat.layer) == (EARLIER, Layer.XID)


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        pytest.param(Action.OFF, Verdict.EXECUTE, id="off"),
        pytest.param(Action.WARN, Verdict.EXECUTE_WITH_INCIDENT, id="warn"),
        pytest.param(Action.REFLECT, Verdict.SUSPEND, id="reflect"),
        pytest.param(Action.BLOCK, Verdict.SUSPEND, id="block"),
        pytest.param(Action.SUSPEND, Verdict.SUSPEND, id="suspend"),
    ],
)
def test_likeness_above_an_incident_is_for_a_person_to_judge(action, verdict):
    step = alike(Host(action=action))
    assert step.verdict is verdict
    if verdict is Verdict.SUSPEND:
        assert step.question is not None
        assert step.question.text.startswith(messages.SIDE_EFFECT_LIKENESS)
        assert step.incident is not None
        assert step.incident.action is Action.SUSPEND


def test_each_layer_has_identities_of_its_own():
    host = Host(action=Action.WARN)
    across(host, "c1")
    alike(host, "c2", args={"order": "43"})
    marks = host.guard.requests["r1"].marks
    assert set(marks) == {f"request/2/r1/xid/{XID}", "request/2/r1/semantic/2/r0/a1"}
    digest = ToolCall.of("c1", "charge", {"order": "43"}).fingerprint
    assert f"request/2/r1/arguments/{digest}" in host.guard.tracks


def test_in_shadow_likeness_would_have_suspended():
    step = alike(Host(Mode.SHADOW, action=Action.BLOCK))
    assert step.verdict is Verdict.EXECUTE
    assert transition_words(step) == [(IDLE, WARNED, Decision.WOULD_SUSPEND)]


def test_the_question_names_time_and_channel_of_the_first_run():
    question = across(Host(), declaration=DECLARED).question
    assert question is not None
    assert question.text == (
        f"{messages.SIDE_EFFECT_QUESTION} "
        "The first run was at 1970-01-01 00:00:01 UTC through mail."
    )


def test_the_question_about_an_undeclared_tool_names_the_remedy():
    question = across(Host()).question
    assert question is not None
    assert question.names_declaration
    assert question.text.endswith(messages.SIDE_EFFECT_DECLARATION)
    assert "side_effect: false" in question.text


@pytest.mark.parametrize(
    ("at_ms", "channel", "words"),
    [
        pytest.param(0, None, "The first run was at 1970-01-01 00:00:00 UTC.", id="the epoch"),
        pytest.param(-1, None, "The first run was at -1 ms.", id="before it"),
        pytest.param(
            253_402_300_799_999, "app", "at 9999-12-31 23:59:59 UTC through app.", id="the last"
        ),
        pytest.param(
            253_402_300_800_000, "app", "at 253402300800000 ms through app.", id="beyond it"
        ),
    ],
)
def test_any_time_can_be_written(at_ms, channel, words):
    first = FirstUse("a1", "r0", at_ms, channel)
    question = Question(Repeat("c1", "charge", None, first, Layer.ARGUMENTS), False)
    assert question.text.endswith(words)


def test_within_one_request_an_xid_is_not_looked_at():
    step = across(Host(action=Action.BLOCK), request="r0")
    assert step.verdict is Verdict.EXECUTE


@pytest.mark.parametrize(
    ("ttl_ms", "verdict"),
    [
        pytest.param(1_000, Verdict.BLOCK, id="exactly the ttl"),
        pytest.param(999, Verdict.EXECUTE, id="one more"),
    ],
)
def test_the_ttl_holds_for_acts_done_elsewhere(ttl_ms, verdict):
    assert across(Host(action=Action.BLOCK, ttl_ms=ttl_ms)).verdict is verdict
    expected = Verdict.SUSPEND if verdict is Verdict.BLOCK else verdict
    assert alike(Host(action=Action.BLOCK, ttl_ms=ttl_ms)).verdict is expected


def test_equal_arguments_are_the_nearer_proof():
    host = Host(action=Action.BLOCK)
    host.run("c1")
    step = across(host, "c2", thread="t", candidate=LIKE)
    assert step.repeat is not None
    assert (step.repeat.layer, step.repeat.first.call_id) == (Layer.ARGUMENTS, "c1")


def test_a_declared_identity_is_the_nearer_proof_than_likeness():
    step = across(Host(action=Action.BLOCK), thread="t", candidate=LIKE)
    assert step.verdict is Verdict.BLOCK
    assert step.repeat is not None
    assert step.repeat.layer is Layer.XID


def test_a_success_is_a_first_use_for_the_host_to_keep():
    host = Host()
    assert host.propose("c1", xid=XID, channel="chat", at=5).first_use is None
    kept = host.settle("c1", at=9).first_use
    assert kept == FirstUseToKeep(XID, FirstUse("c1", "r1", 9, "chat"))


def test_a_failure_and_a_call_without_xid_leave_no_first_use():
    host = Host()
    host.propose("c1", xid=XID)
    assert host.settle("c1", status=ERROR).first_use is None
    host.propose("d1", args={})
    assert host.settle("d1").first_use is None


def test_a_repeat_by_xid_is_no_first_use_but_a_first_run_of_its_arguments():
    host = Host(action=Action.WARN)
    across(host)
    step = host.settle("c1")
    assert step.first_use is None
    assert transition_words(step) == [(IDLE, TRACKING, Decision.TRACKED)]
    again = host.propose("c2")
    assert again.repeat is not None
    assert (again.repeat.first.call_id, again.repeat.layer) == ("c1", Layer.ARGUMENTS)


def test_an_approved_repeat_by_xid_is_no_first_use():
    host = Host()
    across(host)
    host.answer("c1", True)
    assert host.settle("c1").first_use is None


def test_an_approved_repeat_by_likeness_is_a_first_use():
    host = Host()
    alike(host, xid=XID, channel="chat")
    host.answer("c1", True)
    kept = host.settle("c1", at=3).first_use
    assert kept == FirstUseToKeep(XID, FirstUse("c1", "r1", 3, "chat"))


def test_an_expired_use_is_replaced_by_the_next():
    host = Host(ttl_ms=10)
    assert across(host).verdict is Verdict.EXECUTE
    assert host.settle("c1", at=2_000).first_use is not None


def test_the_nudge_about_an_act_done_elsewhere_is_given_once():
    host = Host(action=Action.REFLECT)
    assert across(host, "c1").verdict is Verdict.REFLECT
    assert across(host, "c2", args={"order": "43"}).verdict is Verdict.BLOCK


def test_a_refusal_holds_for_the_act_and_for_its_arguments():
    host = Host()
    across(host, "c1")
    host.answer("c1", False)
    step = across(host, "c2", args={"order": "43"})
    assert (step.verdict, step.repeat and step.repeat.layer) == (Verdict.REFUSE, Layer.XID)
    step = host.propose("c3")
    assert (step.verdict, step.repeat and step.repeat.layer) == (Verdict.REFUSE, Layer.ARGUMENTS)
    assert step.repeat is not None
    assert step.repeat.first == EARLIER
    assert host.propose("c4", args={"order": "44"}).verdict is Verdict.EXECUTE


def test_a_refusal_of_a_likeness_holds_for_the_earlier_run():
    host = Host()
    alike(host, "c1")
    host.answer("c1", False)
    assert alike(host, "c2", args={"order": "43"}).verdict is Verdict.REFUSE
    other = Candidate("t", EARLIER._replace(call_id="a2"))
    step = host.propose("c3", thread="t", candidate=other, args={"order": "43"})
    assert step.verdict is Verdict.SUSPEND


def test_a_refusal_of_an_act_answers_the_open_question_about_its_other_arguments():
    host = Host()
    across(host, "c1")
    across(host, "c2", args={"order": "43"})
    assert host.answer("c1", False).resolved == ("c2",)


@pytest.mark.parametrize(
    ("thread", "candidate"),
    [
        pytest.param(None, LIKE, id="a call outside a thread"),
        pytest.param("t2", LIKE, id="a candidate of another thread"),
        pytest.param(" ", Candidate(" ", EARLIER), id="a blank thread"),
        pytest.param("t", Candidate("t", FirstUse("c1", "r1", 0)), id="the call itself"),
    ],
)
def test_likeness_never_leaves_its_thread_and_never_means_the_call_itself(thread, candidate):
    host = Host(action=Action.BLOCK)
    assert host.propose("c1", thread=thread, candidate=candidate).verdict is Verdict.EXECUTE


@pytest.mark.parametrize(
    "use", [FirstUse("c1", "r2", 0), FirstUse("c2", "r1", 0)], ids=["request", "call id"]
)
def test_a_candidate_that_shares_only_an_id_with_the_call_is_another_run(use):
    host = Host()
    step = host.propose("c1", thread="t", candidate=Candidate("t", use))
    assert step.verdict is Verdict.SUSPEND


def test_a_paraphrase_in_another_conversation_is_not_seen():
    host = Host(action=Action.BLOCK, scope=Scope.THREAD)
    host.run("c1", thread="t", args={"text": "please refund order 42"})
    step = host.propose("c2", thread="t2", request="r2", args={"text": "refund no. 42"})
    assert step.verdict is Verdict.EXECUTE


class Finder:
    """A host's search that proposes the earlier run for every field it is asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Fields]] = []

    def find(self, thread: str, tool: str, fields: Fields) -> Candidate | None:
        self.asked.append((thread, tool, fields))
        return Candidate(thread, EARLIER)


def test_a_finder_is_asked_with_normalised_fields_of_one_thread():
    finder = Finder()
    arguments = {"to": ["B", "a "], "subject": "Hello  You", "body": None}
    paths = ("to", "subject", "body")
    found = find_candidate(finder, "t", tool="mail", arguments=arguments, paths=paths)
    assert found == LIKE
    assert finder.asked == [("t", "mail", (("subject", ("hello you",)), ("to", ("a", "b"))))]


@pytest.mark.parametrize(
    ("thread", "arguments"),
    [
        pytest.param(None, {"to": "a"}, id="no thread"),
        pytest.param(" ", {"to": "a"}, id="a blank thread"),
        pytest.param("t", {"to": ""}, id="no field that says anything"),
    ],
)
def test_a_finder_is_not_asked_without_a_thread_or_a_field(thread, arguments):
    finder = Finder()
    assert find_candidate(finder, thread, tool="m", arguments=arguments, paths=("to",)) is None
    assert finder.asked == []
