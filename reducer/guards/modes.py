"""Which mode a guard starts with: a word from the process environment, and the prompt's route."""

from typing import NamedTuple

from reducer.guards.mistakes import mistaken
from reducer.vocabulary import Mode, Route


class ParsedMode(NamedTuple):
    """A mode, and what to tell the operator when the word was none."""

    mode: Mode
    diagnostic: str | None


def parse_mode(word: str | None) -> ParsedMode:
    """Return the mode a word names, trimmed and in any case; anything else is shadow.

    A missing or blank word is silently shadow, a word that names no mode leaves a diagnostic
    (docs/guards).
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
    """Raise ValueError for what is no Mode, naming the guard; a word may be misspelt."""
    if not isinstance(mode, Mode):
        raise mistaken(
            f"the mode of {guard}",
            mode,
            "pass a Mode (reducer.vocabulary); for a word, parse_mode(word).mode "
            "(reducer.guards.modes)",
        )


def check_route(route: object) -> None:
    """Raise ValueError for what is no Route."""
    if not isinstance(route, Route):
        raise mistaken(
            "route", route, "pass a Route (reducer.vocabulary); for a word, what Route.parse gives"
        )


_WORDS = {mode.value: mode for mode in Mode}


def _shown(text: str) -> str:
    # The word comes from an environment variable: it may be long, and it may be a secret's place.
    return repr(text if len(text) <= 24 else text[:24] + "...")
