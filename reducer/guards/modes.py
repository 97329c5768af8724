"""Start modes: the mode in an environment variable, and the mode on a prompt's route."""

from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.vocabulary import Mode, Route


class ParsedMode(NamedTuple):
    """A mode, and a diagnostic for the operator if the word was not a mode."""

    mode: Mode
    diagnostic: str | None


def parse_mode(word: str | None) -> ParsedMode:
    """Return the mode of a word, trimmed and in any case; anything else is shadow.

    A missing or blank word is shadow without a diagnostic, an unknown word with one
    (`docs/guards`).
    """
    text = "" if word is None else word.strip().lower()
    if not text:
        return ParsedMode(Mode.SHADOW, None)
    if text in _WORDS:
        return ParsedMode(_WORDS[text], None)
    return ParsedMode(
        Mode.SHADOW,
        f"the guard mode {_shown(text)} is none of {', '.join(_WORDS)}; the guard runs in shadow",
    )


def mode_on(route: Route, mode: Mode) -> Mode:
    """Return the mode on a route: off everywhere but in the interactive foreground."""
    return mode if route is Route.INTERACTIVE_FOREGROUND else Mode.OFF


def check_mode(guard: str, mode: object) -> None:
    """Raise ValueError, with the guard, unless the value is a Mode; a word may be misspelt."""
    if not isinstance(mode, Mode):
        raise argument_error(
            f"the mode of {guard}",
            mode,
            "pass a Mode (guardwave.guards); for a word, parse_mode(word).mode (guardwave.guards)",
        )


def check_route(route: object) -> None:
    """Raise ValueError unless the value is a Route."""
    if not isinstance(route, Route):
        raise argument_error(
            "route",
            route,
            "pass a Route (guardwave.guards); for a word, the result of Route.parse",
        )


_WORDS = {mode.value: mode for mode in Mode}


def _shown(text: str) -> str:
    # The word comes from an environment variable: it may be long, or a secret by mistake.
    return repr(text if len(text) <= 24 else text[:24] + "...")
