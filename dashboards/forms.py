"""Fields of the pages' forms, read and checked; an error names the field and the remedy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from flask import request

from control_plane.commands.changes import REASON_LENGTH, REASON_LIMIT
from control_plane.errors import GuardwaveError
from dashboards.formatting import told
from reducer.vocabulary import Mode

_MOST_DIGITS = 12
_WHITE_SPACE = "\t\n"
_CHANGED = (
    "Something changed since this page was shown. This is how it is now: read it again and decide "
    "again. What you typed is kept."
)


class Problem(NamedTuple):
    """Why a form was not carried out, as one sentence, and the id of where on the page to mend it.

    The id is empty where there is nothing to mend.
    """

    sentence: str
    anchor: str = ""


@dataclass(slots=True)
class FormReading:
    """A submitted form: what was typed, and one error per field that cannot be used.

    `is_cut` says that the reason was too long and that its beginning was taken.
    """

    typed: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False

    def text(self, name: str) -> str:
        """Return a field without surrounding white space and remember it for the page."""
        # Browsers count a line break as one character and send it as two.
        sent = request.form.get(name, "").replace("\r\n", "\n").replace("\r", "\n")
        self.typed[name] = sent.strip()
        return self.typed[name]

    def reason(self) -> str:
        """Return the reason; every change of state needs one that says something."""
        reason = self.text("reason")
        if len(reason) > REASON_LIMIT:
            self.errors["reason"] = (
                f"A reason has at most {REASON_LIMIT:,} characters; this has {len(reason):,}. "
                "Shorten it."
            )
        elif not all(map(_is_plain, reason)):
            self.errors["reason"] = "This holds a control character. Type it again as plain text."
        else:
            self._ask_for_enough(reason)
        return reason

    def reason_to_lower(self) -> str:
        """Return the reason for a step down, which no flaw of its text refuses but its absence.

        Control characters are left out, and of a text that is too long the beginning is taken.
        """
        plain = "".join(filter(_is_plain, self.text("reason"))).strip()
        self.is_cut = len(plain) > REASON_LIMIT
        reason = plain[:REASON_LIMIT].strip()
        self._ask_for_enough(reason)
        return reason

    def _ask_for_enough(self, reason: str) -> None:
        if len(reason) < REASON_LENGTH:
            self.errors["reason"] = (
                f"Say why in at least {REASON_LENGTH} characters; this has {len(reason)}."
            )

    def mode(self, name: str) -> Mode:
        """Return a mode; an unknown word is an error and reads as off."""
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
        """Return a whole number that the page itself filled in; anything else reads as 0."""
        word = self.text(name)
        if not (word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS):
            self.errors[name] = f"{name} is a whole number; got {word[:40] or 'nothing'}. Reload."
            return 0
        return int(word)

    def confirmation(self, name: str, expected: str) -> None:
        """Check that the words typed to confirm are the expected ones."""
        if self.text(name) != expected:
            self.errors[name] = f"Type {expected} to confirm that this is the environment you mean."

    def problems(self, anchors: Mapping[str, str]) -> tuple[Problem, ...]:
        """Return an error for each field that has one, by the ids that the page gives fields."""
        return tuple(Problem(text, anchors.get(name, "")) for name, text in self.errors.items())


def problem_of(refusal: GuardwaveError, anchor: str, *names: str) -> Problem:
    """Return why a form that could be read was refused, and where on the page it stands.

    The names are those that it may begin with, written as they are typed.
    """
    if refusal.status == 412:
        return Problem(_CHANGED, anchor)
    return Problem(f"{refusal.title}. {told(refusal, *names)}", anchor)


def _is_plain(character: str) -> bool:
    return ord(character) >= 0x20 or character in _WHITE_SPACE
