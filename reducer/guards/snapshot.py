"""Snapshots: a guard's state as plain JSON values, with the schema that wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from guardwave.reducer.vocabulary import Mode, Route

Word = TypeVar("Word", bound=StrEnum)

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
Document: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked document whose fields are read by type; an error names the field."""

    guard: str
    fields: Document

    def whole(self, name: str) -> int:
        """Return a whole number >= 0."""
        found = self._of(name)
        # isinstance takes True for an int.
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise self.damaged(name, "a whole number from 0")
        return found

    def flag(self, name: str) -> bool:
        """Return true or false."""
        found = self._of(name)
        if not isinstance(found, bool):
            raise self.damaged(name, "true or false")
        return found

    def text(self, name: str) -> str:
        """Return a text."""
        found = self._of(name)
        if not isinstance(found, str):
            raise self.damaged(name, "a text")
        return found

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None for null."""
        return None if self.is_null(name) else self.text(name)

    def is_null(self, name: str) -> bool:
        """Whether a field is null."""
        return self._of(name) is None

    def word(self, name: str, words: type[Word]) -> Word:
        """Return a member of a closed set."""
        found = self._of(name)
        for word in words:
            if word == found:
                return word
        raise self.damaged(name, f"one of {', '.join(words)}")

    def mapping(self, name: str) -> Document:
        """Return an object."""
        found = self._of(name)
        if not isinstance(found, Mapping):
            raise self.damaged(name, "an object")
        return found

    def items(self, name: str) -> Sequence[JsonValue]:
        """Return a list."""
        found = self._of(name)
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise self.damaged(name, "a list")
        return found

    def _of(self, name: str) -> JsonValue:
        if name not in self.fields:
            raise self.damaged(name, "there")
        return self.fields[name]

    def damaged(self, name: str, expected: str) -> ValueError:
        """Return the error for a field that is wrong or contradicts the others."""
        return ValueError(
            f"the snapshot of {self.guard} is damaged: {name} must be {expected}; "
            "start the guard anew"
        )


def seal(guard: str, schema: int, fields: Document) -> Document:
    """Return the fields of a state, with the guard and the schema that wrote them."""
    return {"guard": guard, "schema": schema, **fields}


def unseal(document: object, *, guard: str, schema: int) -> Snapshot | None:
    """Return the fields of a snapshot, None if a newer schema wrote it.

    A newer schema is no error of the host. The guard then starts anew with enforcement disabled,
    because the part it cannot read may have been a reason not to stop.

    Raises:
        ValueError: it is not a snapshot, or of another guard; it names the field.
    """
    if not isinstance(document, Mapping):
        raise ValueError(
            f"the snapshot of {guard} is no object; pass the result of the guard's dump"
        )
    snapshot = Snapshot(guard, document)
    found = snapshot.text("guard")
    if found != guard:
        raise ValueError(f"guard is {found!r} in a snapshot given to {guard}; pass its own")
    version = snapshot.whole("schema")
    if version < 1:
        raise ValueError(f"the snapshot of {guard} is damaged: schema is {version}; it starts at 1")
    return snapshot if version <= schema else None


class StartSettings(NamedTuple):
    """The mode and route with which a guard starts anew if a newer schema wrote its state."""

    mode: Mode
    route: Route


def start_settings(document: Document) -> StartSettings:
    """Return the mode and route of a snapshot of a newer schema, as far as they can be read.

    An unreadable mode counts as shadow. Without a readable route the mode is shadow at most.
    """
    modes = [mode for mode in Mode if mode == document.get("mode")]
    routes = [route for route in Route if route == document.get("route")]
    mode = modes[0] if modes else Mode.SHADOW
    if routes:
        return StartSettings(mode, routes[0])
    return StartSettings(mode.at_most(Mode.SHADOW), Route.INTERACTIVE_FOREGROUND)
