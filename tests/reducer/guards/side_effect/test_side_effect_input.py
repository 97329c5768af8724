"""Side-effect input: settings, malformed events, and texts without data."""

import re
from collections.abc import Callable

import pytest

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.side_effect import (
    UNDECLARED,
    Action,
    ApprovalScope,
    Decided,
    FirstUse,
    Ladder,
    Proposed,
    RequestEnded,
    Scope,
    Settled,
    SideEffectDuplicate,
    ToolDeclaration,
    Verdict,
    reduce,
)
from guardwave.reducer.vocabulary import Mode
from tests.support.guards.side_effects import Host

# As a host in plain Python calls them, where nothing checks a type.
tool_call: Callable[..., object] = ToolCall
proposed: Callable[..., object] = Proposed
settled: Callable[..., object] = Settled
decided: Callable[..., object] = Decided
CALL = ToolCall("c1", "charge", "a" * 32)
SAID = sorted(name for name in vars(messages) if name.startswith("SIDE_EFFECT_"))


@pytest.mark.parametrize(
    ("setting", "ladder"),
    [
        pytest.param({}, Ladder(Action.SUSPEND, Scope.REQUEST, None, ApprovalScope.CALL), id="{}"),
        pytest.param("block", Ladder(Action.BLOCK), id="a word"),
        pytest.param({"action": "warn"}, Ladder(Action.WARN), id="an action"),
        pytest.param(
            {"action": "off", "scope": "thread", "ttl_ms": 5, "approvals": "attempt"},
            Ladder(Action.OFF, Scope.THREAD, 5, ApprovalScope.ATTEMPT),
            id="all of them",
        ),
        pytest.param({"ttl_ms": None}, Ladder(), id="no ttl"),
        pytest.param({"ttl_ms": 0}, Ladder(ttl_ms=0), id="a ttl of nothing"),
    ],
)
def test_settings_are_a_word_or_a_table(setting, ladder):
    assert Ladder.parse(setting) == ladder


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        pytest.param("Block", "action is 'Block'; it is one of off, warn", id="a capital"),
        pytest.param({"action": 1}, "action is 1; it is one of", id="a number"),
        pytest.param({"scope": "run"}, "scope is 'run'; it is one of request, thread", id="scope"),
        pytest.param({"approvals": "all"}, "approvals is 'all'; it is one of call", id="approvals"),
        pytest.param({"ttl_ms": -1}, "ttl_ms is -1; give whole", id="a negative ttl"),
        pytest.param({"ttl_ms": 1.0}, "ttl_ms is 1.0; give whole", id="a float"),
        pytest.param({"ttl_ms": True}, "ttl_ms is True; give whole", id="true"),
        pytest.param(
            {"ttl": 1},
            "'ttl' is no setting of the ladder; use action, scope, ttl",
            id="unknown key",
        ),
    ],
)
def test_a_setting_that_is_none_is_refused(setting, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Ladder.parse(setting)


@pytest.mark.parametrize(
    ("declaration", "silent"),
    [
        pytest.param(UNDECLARED, True, id="nothing"),
        pytest.param(ToolDeclaration(side_effect=True), False, id="a side effect"),
        pytest.param(ToolDeclaration(idempotent=False), False, id="not idempotent"),
    ],
)
def test_only_an_undeclared_tool_gets_the_hint_to_declare(declaration, silent):
    assert declaration.is_silent is silent
    host = Host()
    host.run("c1")
    question = host.propose("c2", declaration=declaration).question
    assert question is not None
    assert question.names_declaration is silent


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(
            lambda: proposed("c1", "r", 0), "call is of type str; pass a ToolCall", id="call"
        ),
        pytest.param(
            lambda: proposed(tool_call(7, "t", None), "r", 0),
            "call_id is of type int",
            id="call id",
        ),
        pytest.param(lambda: proposed(CALL, " ", 0), "request is blank; name the", id="request"),
        pytest.param(
            lambda: proposed(CALL, None, 0), "request is of type NoneType", id="no request"
        ),
        pytest.param(lambda: proposed(CALL, "r", 0.5), "now_ms is of type float; pass", id="time"),
        pytest.param(lambda: proposed(CALL, "r", True), "now_ms is of type bool; pass", id="true"),
        pytest.param(
            lambda: proposed(CALL, "r", 0, thread=1), "thread is of type int", id="thread"
        ),
        pytest.param(lambda: proposed(CALL, "r", 0, xid=1), "xid is of type int", id="xid"),
        pytest.param(lambda: proposed(CALL, "r", 0, channel=""), "channel is no", id="channel"),
        pytest.param(
            lambda: proposed(CALL, "r", 0, channel="x" * 65),
            "channel is not a text of 1 to 64 printable",
            id="long",
        ),
        pytest.param(
            lambda: proposed(CALL, "r", 0, channel="a\nb"), "channel is not a text", id="two lines"
        ),
        pytest.param(
            lambda: proposed(CALL, "r", 0, channel=7), "channel is not a text", id="number"
        ),
        pytest.param(
            lambda: proposed(CALL, "r", 0, first_use=FirstUse("a", "b", 1)),
            "first_use is given without the xid",
            id="a use of nothing",
        ),
        pytest.param(lambda: settled("c", "", None, 0), "request is blank", id="settled: request"),
        pytest.param(
            lambda: settled("c", "r", None, None), "now_ms is of type NoneType", id="settled: time"
        ),
        pytest.param(lambda: decided("c", "", True, 0), "request is blank", id="decided: request"),
        pytest.param(
            lambda: decided("c", "r", True, "0"), "now_ms is of type str", id="decided: time"
        ),
        pytest.param(
            lambda: decided("c", "r", 1, 0), "is_approved is of type int; pass", id="1 for yes"
        ),
    ],
)
def test_an_event_with_a_wrong_field_is_refused(make, words):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
        make()


@pytest.mark.parametrize("length", [1, 64])
def test_a_channel_is_a_short_word(length):
    assert Proposed(CALL, "r", 0, channel="x" * length).channel == "x" * length


def test_an_event_of_another_guard_is_refused():
    state = SideEffectDuplicate.start(Mode.ENFORCE)
    with pytest.raises(
        ValueError, match=r"event is of type str; pass one of guardwave\.guards\.side"
    ):
        reduce(state, "nap")  # type: ignore[arg-type]  # what a host in plain Python may do


def test_the_end_of_an_unknown_request_changes_nothing():
    state = SideEffectDuplicate.start(Mode.ENFORCE)
    assert reduce(state, RequestEnded("stranger")).state == state


@pytest.mark.parametrize("name", SAID)
def test_no_text_has_a_place_for_data_or_a_way_round_the_guard(name):
    text = vars(messages)[name]
    assert not re.search(r"[{%]|argument|different id|new id|another id", text)
    assert text == text.strip()


def test_no_answer_to_the_model_holds_what_the_call_was_about():
    host = Host(action=Action.REFLECT)
    secret = {"order": "s3cret"}
    host.run("c1", tool="t00l", args=secret)
    for call_id in ("c2", "c3"):
        step = host.run(call_id, tool="t00l", args=secret)
        assert step.text is not None
        assert "s3cret" not in repr(step)
        assert "t00l" not in step.text


@pytest.mark.parametrize(
    ("verdict", "runs"),
    [
        pytest.param(
            verdict, verdict in {"execute", "execute_with_incident", "exempt"}, id=verdict.value
        )
        for verdict in Verdict
    ],
)
def test_the_verdicts_that_run_a_call(verdict, runs):
    assert verdict.runs is runs
