import pytest

from guardwave.reducer.guards.modes import mode_on, parse_mode
from guardwave.reducer.vocabulary import Mode, Route


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        pytest.param("off", Mode.OFF, id="off"),
        pytest.param("shadow", Mode.SHADOW, id="shadow"),
        pytest.param("warn", Mode.WARN, id="warn"),
        pytest.param("enforce", Mode.ENFORCE, id="enforce"),
        pytest.param(" Enforce\n", Mode.ENFORCE, id="trimmed, in any case"),
        pytest.param(None, Mode.SHADOW, id="missing"),
        pytest.param("", Mode.SHADOW, id="empty"),
        pytest.param(" \t", Mode.SHADOW, id="blank"),
    ],
)
def test_a_word_names_a_mode_without_a_diagnostic(word, mode):
    assert parse_mode(word) == (mode, None)


def test_any_other_word_is_shadow_with_a_diagnostic():
    parsed = parse_mode("On")
    assert parsed.mode is Mode.SHADOW
    assert parsed.diagnostic == (
        "the guard mode 'on' is none of off, shadow, warn, enforce; the guard runs in shadow"
    )


def test_a_long_word_is_shown_in_part():
    exact, longer = parse_mode("x" * 24).diagnostic, parse_mode("x" * 25).diagnostic
    assert exact is not None
    assert f"'{'x' * 24}'" in exact
    assert longer is not None
    assert f"'{'x' * 24}...'" in longer


@pytest.mark.parametrize("mode", Mode)
def test_only_the_interactive_foreground_keeps_its_mode(mode):
    assert {route: mode_on(route, mode) for route in Route} == {
        Route.INTERACTIVE_FOREGROUND: mode,
        Route.CRON: Mode.OFF,
        Route.NOTIFICATION: Mode.OFF,
        Route.BACKGROUND: Mode.OFF,
        Route.CHANNEL: Mode.OFF,
    }
