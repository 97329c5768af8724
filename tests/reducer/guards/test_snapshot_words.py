import pytest

from guardwave.reducer.guards.snapshot import Snapshot, start_settings
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route


def test_a_word_of_a_closed_set_is_read_as_its_member():
    assert Snapshot("g", {"phase": "warned"}).word("phase", GuardPhase) is GuardPhase.WARNED


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"phase": "asleep"}, id="an unknown word"),
        pytest.param({"phase": "WARNED"}, id="another case"),
        pytest.param({"phase": None}, id="null"),
        pytest.param({"phase": ["warned"]}, id="a list"),
    ],
)
def test_a_word_outside_the_set_is_refused_with_the_set(fields):
    with pytest.raises(ValueError, match="phase must be one of idle, tracking, warned, latched"):
        Snapshot("g", fields).word("phase", GuardPhase)


@pytest.mark.parametrize(
    ("fields", "mode", "route"),
    [
        pytest.param(
            {"mode": "enforce", "route": "cron"}, Mode.ENFORCE, Route.CRON, id="both are readable"
        ),
        pytest.param(
            {"mode": "brace", "route": "interactive_foreground"},
            Mode.SHADOW,
            Route.INTERACTIVE_FOREGROUND,
            id="an unknown mode is shadow",
        ),
        pytest.param(
            {"mode": "enforce", "route": "carrier_pigeon"},
            Mode.SHADOW,
            Route.INTERACTIVE_FOREGROUND,
            id="an unknown route allows shadow at most",
        ),
        pytest.param({"mode": "off"}, Mode.OFF, Route.INTERACTIVE_FOREGROUND, id="off stays off"),
        pytest.param(
            {"mode": 3, "route": []},
            Mode.SHADOW,
            Route.INTERACTIVE_FOREGROUND,
            id="neither is a word",
        ),
    ],
)
def test_a_guard_starts_anew_with_mode_and_route_of_a_newer_snapshot(fields, mode, route):
    assert start_settings(fields) == (mode, route)
