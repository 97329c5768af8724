import json

import pytest

from guardwave.reducer.guards.side_effect import (
    Action,
    ApprovalScope,
    Scope,
    SideEffectDuplicate,
    dump,
    restore,
)
from guardwave.reducer.vocabulary import Mode, Route
from tests.support.guards.side_effects import Host


def host_with_a_past():
    host = Host(scope=Scope.THREAD, ttl_ms=9, approvals=ApprovalScope.ATTEMPT)
    host.run("c1", thread="t", channel="mail", at=-5)
    host.run("c2", thread="t")
    host.run("c3", thread="t")
    host.propose("d1", thread="t", args={}, xid="x" * 32, channel="chat")
    host.run("e1", thread="t", request="r2")
    host.answer("e1", False, request="r2")
    return host


def document():
    return json.loads(json.dumps(dump(host_with_a_past().guard)))


def test_a_snapshot_names_its_guard_and_schema():
    found = document()
    assert {key: found[key] for key in found if key not in {"tracks", "requests"}} == {
        "guard": "side_effect_duplicate",
        "schema": 1,
        "mode": "enforce",
        "route": "interactive_foreground",
        "action": "suspend",
        "scope": "thread",
        "ttl_ms": 9,
        "approvals": "attempt",
        "is_enforcement_disabled": False,
    }


def test_a_snapshot_comes_back_as_the_state_it_was():
    again = restore(document())
    assert again == host_with_a_past().guard
    assert again.tracks
    assert again.ladder.action is Action.SUSPEND
    assert again.requests["r1"].calls["c2"].question is not None


def test_a_snapshot_holds_neither_arguments_nor_results():
    assert "42" not in json.dumps({**document(), "tracks": {}})
    text = json.dumps(document())
    assert "order" not in text
    assert "amount" not in text


@pytest.mark.parametrize("field", sorted(document()))
def test_a_snapshot_without_a_field_is_damaged_and_names_it(field):
    broken = document()
    del broken[field]
    with pytest.raises(ValueError, match=f"{field} must be there"):
        restore(broken)


def put(found, path, value):
    *way, last = path
    for name in way:
        found = found[name]
    found[last] = value


T, R = ("tracks",), ("requests", "r1")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        pytest.param(("mode",), "loud", "mode must be one of off", id="mode"),
        pytest.param(("route",), 1, "route must be one of", id="route"),
        pytest.param(("action",), "shout", "action must be one of", id="action"),
        pytest.param(("scope",), "world", "scope must be one of", id="scope"),
        pytest.param(("approvals",), "all", "approvals must be one of", id="approvals"),
        pytest.param(("ttl_ms",), -1, "ttl_ms must be a whole", id="a negative ttl"),
        pytest.param(("ttl_ms",), True, "ttl_ms must be a whole", id="true for a ttl"),
        pytest.param(("is_enforcement_disabled",), 0, "is_enforcement_disabled", id="0 for no"),
        pytest.param(("tracks",), [], "tracks must be an object", id="a list of tracks"),
        pytest.param(("tracks", "k"), 1, "tracks must be an object in each", id="a track"),
        pytest.param(
            ("tracks", "k"),
            {"first": 1, "running": [], "is_nudged": False},
            "first must be an object",
            id="a first run",
        ),
        pytest.param(
            ("tracks", "k"),
            {"first": None, "running": {}, "is_nudged": False},
            "running must be a list",
            id="runs in flight",
        ),
        pytest.param(
            ("tracks", "k"),
            {"first": None, "running": [{"at_ms": 1.5}], "is_nudged": False},
            "at_ms must be a whole number",
            id="a broken time",
        ),
        pytest.param(
            ("tracks", "k"),
            {"first": None, "running": [None], "is_nudged": False},
            "running must be an object in each",
            id="null in flight",
        ),
        pytest.param(
            ("tracks", "k"),
            {"running": [], "is_nudged": False},
            "first must be there",
            id="a track cut short",
        ),
        pytest.param(
            ("tracks", "k"), {"first": None, "running": []}, "is_nudged must be", id="no nudge"
        ),
        pytest.param(("requests",), 7, "requests must be an object", id="a number of requests"),
        pytest.param((*R,), [], "requests must be an object in each", id="a request"),
        pytest.param((*R, "calls"), [], "calls must be an object", id="a list of calls"),
        pytest.param((*R, "calls", "c1"), 1, "calls must be an object in each", id="a call"),
        pytest.param((*R, "calls", "c1", "status"), "dizzy", "status must be one", id="status"),
        pytest.param((*R, "calls", "c1", "home"), 1, "home must be a text", id="home"),
        *(
            pytest.param((*R, "calls", "c1", "home"), key, "home must be the key of an", id=words)
            for words, key in {
                "home: no place": "arguments/ab",
                "home: another place": "turn/1/a/arguments/ab",
                "home: no length": "thread/a/arguments/ab",
                "home: a length beyond it": "thread/99/a/arguments/ab",
                "home: a length too short": "request/1/ab/arguments/ab",
            }.items()
        ),
        pytest.param(
            (*R, "calls", "c2", "question", "home"), "x", "home must be the", id="asked about"
        ),
        pytest.param((*R, "calls", "c1", "xid"), 1, "xid must be a text", id="xid"),
        pytest.param((*R, "calls", "c1", "channel"), 1, "channel must be a text", id="channel"),
        pytest.param((*R, "calls", "c1", "is_approved"), 1, "is_approved must be", id="approved"),
        pytest.param(
            (*R, "calls", "c2", "question"), None, "question must be there for a", id="no question"
        ),
        pytest.param(
            (*R, "calls", "c1", "question"), {}, "question must be there for a", id="a question"
        ),
        pytest.param(
            (*R, "calls", "c2", "question"), 5, "question must be an object", id="question: 5"
        ),
        pytest.param(
            (*R, "calls", "c2", "question", "first"), None, "first must be an", id="no first"
        ),
        pytest.param(
            (*R, "calls", "c2", "question", "layer"), "onion", "layer must be one", id="layer"
        ),
        pytest.param((*R, "calls", "c2", "question", "tool"), 1, "tool must be a text", id="tool"),
        pytest.param((*R, "calls", "c2", "question", "about"), 1, "about must be", id="about"),
        pytest.param((*R, "refused"), 1, "refused must be an object", id="refusals"),
        pytest.param((*R, "refused", "k"), None, "refused must be an object in", id="null refused"),
        pytest.param((*R, "refused", "k"), 1, "refused must be an object in", id="a refusal"),
        pytest.param((*R, "marks"), 1, "marks must be an object", id="marks"),
        pytest.param((*R, "marks", "k"), 1, "marks must be an object in each", id="a mark"),
        pytest.param(
            (*R, "marks", "k"),
            {"ordinal": 1, "phase": "new moon", "repeats": 0},
            "phase must be one of",
            id="a phase",
        ),
        pytest.param((*R, "next_ordinal"), -1, "next_ordinal must be a whole", id="ordinal"),
    ],
)
def test_a_damaged_field_is_named(path, value, words):
    broken = document()
    put(broken, path, value)
    with pytest.raises(ValueError, match=f"snapshot of side_effect_duplicate.*{words}"):
        restore(broken)


@pytest.mark.parametrize(
    ("written", "mode", "route"),
    [
        pytest.param(
            {"mode": "enforce", "route": "interactive_foreground"},
            Mode.ENFORCE,
            Route.INTERACTIVE_FOREGROUND,
            id="a readable mode",
        ),
        pytest.param({"mode": "off", "route": "cron"}, Mode.OFF, Route.CRON, id="another route"),
        pytest.param({}, Mode.SHADOW, Route.INTERACTIVE_FOREGROUND, id="nothing readable"),
    ],
)
def test_a_newer_schema_starts_anew_with_enforcement_disabled(written, mode, route):
    found = restore({"guard": "side_effect_duplicate", "schema": 2, "tracks": 7, **written})
    assert found == SideEffectDuplicate(mode, route, is_enforcement_disabled=True)


def test_a_snapshot_without_a_ttl_never_expires():
    assert restore({**document(), "ttl_ms": None}).ladder.ttl_ms is None


def test_a_snapshot_of_another_guard_is_refused():
    with pytest.raises(ValueError, match="guard is 'identical_call'"):
        restore({**document(), "guard": "identical_call"})


@pytest.mark.parametrize("route", [route for route in Route if route != "interactive_foreground"])
def test_a_state_on_an_excluded_route_comes_back_off(route):
    enforced = {**document(), "mode": "enforce", "route": route.value}
    assert restore(enforced).mode is Mode.OFF
    assert restore({**enforced, "schema": 2}).mode is Mode.OFF
