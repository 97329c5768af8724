"""Duplicate-call-id snapshots: their fields, and the errors for a damaged one."""

import json
import re

import pytest

from guardwave.reducer.guards.duplicate_call_id import (
    BatchProposed,
    DuplicateCallId,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    dump,
    reduce,
    restore,
)
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route
from tests.support.guards.calls import call, session, unreadable

START = DuplicateCallId.start(Mode.WARN, route=Route.CRON, suffix="~", generated_prefix="g")
BUSY = session(
    START,
    [
        BatchProposed.of(call("b"), call(None), unreadable("u")),
        BatchProposed.of(call("a", "pwd"), call("b")),
        BatchProposed.of(call("a", "pwd"), call("b", "new")),
    ],
)[-1].state
DOCUMENT = {
    "guard": "duplicate_call_id",
    "schema": 1,
    "mode": "warn",
    "route": "cron",
    "suffix": "~",
    "generated_prefix": "g",
    "ids": {
        "a": call(command="pwd").fingerprint,
        "a~2": None,
        "b": call(command="ls").fingerprint,
        "b~2": None,
        "b~3": None,
        "g1": None,
        "u": "",
    },
    "last_suffix": {"a": 2, "b": 3},
    "last_generated": 1,
    "answered": ["b", "a"],
    "phase": "warned",
    "is_enforcement_disabled": False,
}


def test_a_dump_holds_the_whole_state():
    assert dump(BUSY) == DOCUMENT


def test_a_dump_is_read_back_as_it_was_written():
    found = restore(json.loads(json.dumps(DOCUMENT)))
    assert found == BUSY
    assert found.answered == {"b": 1, "a": 2}
    assert found.names.ids["u"] == b""


def test_a_restored_session_names_calls_as_the_stored_one_would_have():
    batch = BatchProposed.of(call("b", "newer"), call(None), call("a", "pwd"))
    step = reduce(restore(DOCUMENT), batch)
    assert [verdict.call_id for verdict in step.verdicts] == ["b~4", "g2", "a~3"]
    assert step == reduce(BUSY, batch)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"ids": {"a": "ab"}}, "ids must be ids with a digest in hex or null", id="id"),
        pytest.param(
            {"suffix": ""}, "suffix must be a text of one character or more", id="an empty suffix"
        ),
        pytest.param(
            {"answered": ["z"]}, "answered must be ids that are among ids", id="an unknown answer"
        ),
        pytest.param(
            {"answered": ["a", "a"]},
            "answered must be a list of different texts",
            id="an answer twice",
        ),
        pytest.param(
            {"last_suffix": {"a": "2"}}, "a must be a whole number from 0", id="a suffix number"
        ),
    ],
)
def test_a_damaged_snapshot_is_refused_in_these_words(changed, words):
    whole = f"the snapshot of duplicate_call_id is damaged: {words}; start the guard anew"
    with pytest.raises(ValueError, match=f"^{re.escape(whole)}$"):
        restore({**DOCUMENT, **changed})


def test_history_goes_on_behind_a_call_without_an_id():
    entries = (HistoryCall(call(None)), HistoryCall(call("a")))
    state = reduce(START, HistorySeeded(entries)).state
    assert dict(state.names.ids) == {"a": bytes.fromhex(str(call().fingerprint))}


def test_a_new_prompt_ends_a_disabled_enforcement_and_keeps_mode_and_route():
    state = BUSY._replace(is_enforcement_disabled=True)
    assert reduce(state, PromptStarted()).state == BUSY._replace(
        answered={}, phase=GuardPhase.TRACKING
    )
    changed = reduce(state, PromptStarted(Mode.ENFORCE, Route.INTERACTIVE_FOREGROUND)).state
    assert (changed.mode, changed.route) == (Mode.ENFORCE, Route.INTERACTIVE_FOREGROUND)


def test_each_verdict_of_a_dropped_batch_names_the_providers_id():
    state = session(
        DuplicateCallId.start(Mode.ENFORCE), [BatchProposed.of(call("a")) for _ in range(2)]
    )[-1].state
    step = reduce(state, BatchProposed.of(call("a"), call("a"), call(None), call("b")))
    assert step.is_breaker_open
    assert [
        (verdict.raw_id, verdict.action.value, verdict.call_id) for verdict in step.verdicts
    ] == [
        ("a", "batch_dropped", None),
        ("a", "drop", None),
        (None, "batch_dropped", None),
        ("b", "batch_dropped", None),
    ]


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW, Mode.WARN, Mode.ENFORCE])
def test_a_verdict_names_the_providers_id_in_every_mode(mode):
    start = DuplicateCallId.start(mode)
    for batch in ([call("a"), call("b", "pwd")], [call("a"), call("a", "pwd"), call("c", "pwd")]):
        step = reduce(start, BatchProposed(tuple((call,) for call in batch)))
        assert [verdict.raw_id for verdict in step.verdicts] == [call.call_id for call in batch]
        start = step.state


def test_names_are_made_with_neutral_words_unless_the_host_has_its_own():
    names = DuplicateCallId.start(Mode.WARN).names
    assert (names.suffix, names.generated_prefix) == ("__dup_", "call_gen_")
