"""Forms: the fields a page received, checked, with an error and a remedy for each bad one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flask import request

from guardwave.control_plane.core.errors import GuardwaveError
from guardwave.control_plane.rollouts.changes import REASON_LENGTH, REASON_LIMIT
from guardwave.dashboards.formatting import error_sentence
from guardwave.reducer.vocabulary import Mode

_MOST_DIGITS = 12
_WHITE_SPACE = "\t\n"
_CHANGED = (
    "Something has changed since this page was shown. The page now shows the current state: read "
    "it and decide again. What you typed is kept."
)


class Problem(NamedTuple):
    """The reason why a form was not carried out, and the id of the element to correct.

    The id is empty if there is nothing to correct.
    """

    sentence: str
    anchor: str = ""


@dataclass(slots=True)
class FormReading:
    """A submitted form: the text of its fields, and an error for each field that cannot be used.

    `is_truncated` means that the reason was too long and only its beginning is used.
    """

    entries: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    is_truncated: bool = False

    def text(self, name: str) -> str:
        """Return a field without surrounding white space, and keep it for the page."""
        # Browsers count a line break as one character and send it as two.
        sent = request.form.get(name, "").replace("\r\n", "\n").replace("\r", "\n")
        self.entries[name] = sent.strip()
        return self.entries[name]

    def reason(self) -> str:
        """Return the reason; every change of state needs one."""
        reason = self.text("reason")
        if len(reason) > REASON_LIMIT:
            self.errors["reason"] = (
                f"A reason has at most {REASON_LIMIT:,} characters; yours has {len(reason):,}. "
                "Shorten it."
            )
        elif not all(map(_is_plain, reason)):
            self.errors["reason"] = (
                "The reason contains a control character. Type it again as plain text."
            )
        else:
            self._check_length(reason)
        return reason

    def reason_to_lower(self) -> str:
        """Return the reason for lowering a mode; only a missing one is an error.

        Control characters are removed, and a text that is too long is truncated: a flaw of the
        text must not hold up a safe change.
        """
        plain = "".join(filter(_is_plain, self.text("reason"))).strip()
        self.is_truncated = len(plain) > REASON_LIMIT
        reason = plain[:REASON_LIMIT].strip()
        self._check_length(reason)
        return reason

    def _check_length(self, reason: str) -> None:
        if len(reason) < REASON_LENGTH:
            self.errors["reason"] = (
                f"Give a reason of at least {REASON_LENGTH} characters; yours has {len(reason)}."
            )

    def mode(self, name: str) -> Mode:
        """Return a mode; an unknown word is an error and counts as off."""
        word = self.text(name)
        found = next((mode for mode in Mode if mode.value == word), None)
        if found is None:
            self.errors[name] = f"Choose one of {', '.join(Mode)}; got {word or 'nothing'}."
        return found or Mode.OFF

    def basis_points(self, name: str) -> int | None:
        """Return a share in basis points, None when the field is empty."""
        word = self.text(name)
        if not word:
            return None
        if not (word.isascii() and word.isdigit()):
            self.errors[name] = f"Give whole basis points, such as 500 for 5 %; got {word}."
            return None
        return int(word)

    def whole_number(self, name: str) -> int:
        """Return a whole number that the page itself filled in; anything else counts as 0."""
        word = self.text(name)
        if not (word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS):
            self.errors[name] = (
                f"{name} must be a whole number; got {word[:40] or 'nothing'}. Reload."
            )
            return 0
        return int(word)

    def confirmation(self, name: str, expected: str) -> None:
        """Check that the confirmation is the expected text."""
        if self.text(name) != expected:
            self.errors[name] = f"Type {expected} to confirm that this is the environment you mean."

    def problems(self, anchors: Mapping[str, str]) -> tuple[Problem, ...]:
        """Return the errors, each with the id that the page gives to its field."""
        return tuple(Problem(text, anchors.get(name, "")) for name, text in self.errors.items())


def problem_of(refusal: GuardwaveError, anchor: str, *names: str) -> Problem:
    """Return the reason why a valid form was refused, and the id of its place on the page.

    `names` are the names that its sentence may begin with; they keep their spelling.
    """
    if refusal.status == 412:
        return Problem(_CHANGED, anchor)
    return Problem(f"{refusal.title}. {error_sentence(refusal, *names)}", anchor)


def _is_plain(character: str) -> bool:
    return ord(character) >= 0x20 or character in _WHITE_SPACE
