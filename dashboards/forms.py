"""Fields of the pages' forms, read and checked; an error names the field and the remedy."""

from dataclasses import dataclass, field

from flask import request

from reducer.vocabulary import Mode

REASON_LENGTH = 10
_MOST_DIGITS = 12


@dataclass(slots=True)
class FormReading:
    """A submitted form: what was typed, and one error per field that cannot be used."""

    typed: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a field without surrounding white space and remember it for the page."""
        self.typed[name] = request.form.get(name, "").strip()
        return self.typed[name]

    def reason(self) -> str:
        """Return the reason; every change of state needs one that says something."""
        reason = self.text("reason")
        if len(reason) < REASON_LENGTH:
            self.errors["reason"] = (
                f"Say why in at least {REASON_LENGTH} characters; this has {len(reason)}."
            )
        return reason

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
