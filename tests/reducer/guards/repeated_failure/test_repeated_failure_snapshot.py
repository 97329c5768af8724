import json
import sys

import pytest
from hypothesis import given

from guardwave.reducer.guards.repeated_failure import RepeatedFailure, dump, reduce, restore
from guardwave.reducer.vocabulary import Mode, Route
from tests.support.guards.batches import after, batches, failures, states

WARNED = dump(after(failures(4), failures(4)))


def test_a_snapshot_is_plain_and_names_its_guard():
    assert WARNED == {
        "guard": "repeated_tool_failure",
        "schema": 1,
        "mode": "enforce",
        "route": "interactive_foreground",
        "phase": "warned",
        "tool": "fetch",
        "error_type": "timeout",
        "failure_count": 8,
        "batch_count": 2,
        "candidate_ordinal": 1,
        "last_ordinal": 1,
        "is_enforcement_disabled": False,
    }


@given(states, batches)
def test_a_state_that_was_stored_decides_as_the_one_that_was_not(state, event):
    restored = restore(json.loads(json.dumps(dump(state))))
    assert restored == state
    assert reduce(restored, event) == reduce(state, event)


@pytest.mark.parametrize(
    ("fields", "mode", "route"),
    [
        pytest.param({}, Mode.ENFORCE, Route.INTERACTIVE_FOREGROUND, id="mode and route are kept"),
        pytest.param(
            {"mode": "brace", "phase": 7},
            Mode.SHADOW,
            Route.INTERACTIVE_FOREGROUND,
            id="an unknown mode is shadow",
        ),
        pytest.param({"route": "cron"}, Mode.OFF, Route.CRON, id="an excluded route stays off"),
    ],
)
def test_a_snapshot_of_the_future_starts_anew_and_never_stops(fields, mode, route):
    state = restore({**WARNED, "schema": 2, **fields})
    assert state == RepeatedFailure(mode, route, is_enforcement_disabled=True)


IDLE = {
    "phase": "idle",
    "tool": None,
    "error_type": None,
    "failure_count": 0,
    "batch_count": 0,
    "candidate_ordinal": 0,
}
TRACKING = {"phase": "tracking", "failure_count": 1, "batch_count": 1}
LATCHED = {"phase": "latched", "failure_count": 9, "batch_count": 3}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="warned at the limit"),
        pytest.param(IDLE, id="idle after a streak"),
        pytest.param({**IDLE, "last_ordinal": 0}, id="idle from the start"),
        pytest.param(TRACKING, id="tracking one"),
        pytest.param(LATCHED, id="latched at once"),
        pytest.param({"last_ordinal": 4, "candidate_ordinal": 4}, id="the fourth streak"),
    ],
)
def test_every_reachable_state_is_read(fields):
    document = {**WARNED, **fields}
    assert dump(restore(document)) == document


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"mode": "brace"}, "mode must be one of off, shadow", id="mode"),
        pytest.param({"route": "pigeon"}, "route must be one of", id="route"),
        pytest.param({"phase": "asleep"}, "phase must be one of idle", id="phase"),
        pytest.param({"tool": 7}, "tool must be a text", id="tool"),
        pytest.param({"tool": None}, "tool must be there together", id="half a key"),
        pytest.param({"error_type": None}, "error_type must be there together", id="other half"),
        pytest.param({"failure_count": -1}, "failure_count must be a whole", id="negative"),
        pytest.param({"batch_count": True}, "batch_count must be a whole", id="true for 1"),
        pytest.param({"is_enforcement_disabled": 0}, "is_enforcement_disabled must be", id="flag"),
        pytest.param({"failure_count": 7}, "failure_count must be at least 8", id="warned by 7"),
        pytest.param({"batch_count": 1}, "batch_count must be at least 2", id="warned in 1"),
        pytest.param(
            {**LATCHED, "failure_count": 8}, "failure_count must be at least 9", id="latched by 8"
        ),
        pytest.param(
            {**LATCHED, "batch_count": 2}, "batch_count must be at least 3", id="latched in 2"
        ),
        pytest.param(
            {**TRACKING, "failure_count": 0}, "failure_count must be at least 1", id="empty streak"
        ),
        pytest.param(
            {**TRACKING, "batch_count": 0}, "batch_count must be at least 1", id="no batch"
        ),
        pytest.param({"batch_count": 9}, "batch_count must be no more than", id="more batches"),
        pytest.param({**IDLE, "tool": "x", "error_type": "y"}, "tool must be null", id="idle key"),
        pytest.param(
            {"tool": None, "error_type": None}, "tool must be null in idle and a", id="no key"
        ),
        pytest.param({**IDLE, "failure_count": 3}, "failure_count must be 0 in", id="idle count"),
        pytest.param({**IDLE, "batch_count": 1}, "batch_count must be no more", id="idle batch"),
        pytest.param({**IDLE, "candidate_ordinal": 1}, "candidate_ordinal must be 0", id="idle 1"),
        pytest.param({"candidate_ordinal": 0}, "candidate_ordinal must be 0 in idle", id="no 0"),
        pytest.param({"candidate_ordinal": 2}, "last_ordinal must be the newest", id="ordinal"),
        pytest.param({"guard": "identical_call"}, "guard is 'identical_call'", id="another guard"),
    ],
)
def test_a_damaged_snapshot_is_refused_by_field(fields, words):
    with pytest.raises(ValueError, match=words):
        restore({**WARNED, **fields})


@pytest.mark.parametrize("name", sorted(WARNED))
def test_a_snapshot_that_lacks_a_field_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be there"):
        restore({key: value for key, value in WARNED.items() if key != name})


def test_a_mode_is_off_on_an_excluded_route_whatever_was_stored():
    assert restore({**WARNED, "route": "cron"}).mode is Mode.OFF


def test_the_state_of_a_prompt_stays_within_a_kilobyte():
    longest = "x" * 256
    state = after(*[failures(400, tool=longest, error_type=f"{longest[1:]}y")] * 3)
    assert state.key is not None
    counts = (state.failure_count, state.batch_count, state.candidate_ordinal, state.last_ordinal)
    parts = [state, state.key, *state.key, *counts]
    assert sum(sys.getsizeof(part) for part in parts) <= 1024
