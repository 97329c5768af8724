"""A JSON object whose fields are read by type; a wrong one is named by its JSON pointer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def pointer(place: str, name: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a field or an element below a place."""
    return f"{place}/{str(name).replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Fields:
    """An object and where it stands. A field that is null or not there is what `missing` says.

    Without `missing` a field must be there. Each reader raises a ValueError that names the place
    and what was expected, never the value.
    """

    found: Mapping[str, object]
    place: str = ""

    @classmethod
    def of(cls, found: object, place: str = "") -> "Fields":
        """Return the fields of an object.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(found, Mapping):
            raise ValueError(f"{place or '/'}: must be an object")
        return cls(found, place)

    def text(self, name: str, *, missing: str | None = None) -> str:
        """Return a text."""
        found = self._of(name, missing)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None for null and for a field that is not there."""
        return None if self.found.get(name) is None else self.text(name)

    def flag(self, name: str, *, missing: bool | None = None) -> bool:
        """Return true or false."""
        found = self._of(name, missing)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def whole(self, name: str, *, missing: int | None = None) -> int:
        """Return a whole number, also one that JSON spells with a fraction or exponent."""
        found = self._of(name, missing)
        if isinstance(found, float) and found.is_integer():
            return int(found)
        # True is an int to Python and no number to JSON.
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(name, "a whole number")
        return found

    def optional_whole(self, name: str) -> int | None:
        """Return a whole number, or None for null and for a field that is not there."""
        return None if self.found.get(name) is None else self.whole(name)

    def mapping(
        self, name: str, *, missing: Mapping[str, object] | None = None
    ) -> Mapping[str, object]:
        """Return an object."""
        found = self._of(name, missing)
        if not isinstance(found, Mapping):
            raise self._wrong(name, "an object")
        return found

    def items(self, name: str, *, missing: Sequence[object] | None = None) -> Sequence[object]:
        """Return a list."""
        found = self._of(name, missing)
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise self._wrong(name, "a list")
        return found

    def _of(self, name: str, missing: object) -> object:
        found = self.found.get(name)
        if found is None and missing is not None:
            return missing
        if name not in self.found:
            raise ValueError(f"{pointer(self.place, name)}: is missing")
        return found

    def _wrong(self, name: str, expected: str) -> ValueError:
        return ValueError(f"{pointer(self.place, name)}: must be {expected}")
