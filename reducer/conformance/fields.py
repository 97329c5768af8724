"""Typed fields: a JSON object read by type; an error names the field by its JSON pointer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def pointer(place: str, name: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a field or an element below a place."""
    return f"{place}/{str(name).replace('~', '~0').replace('/', '~1')}"


@dataclass(frozen=True, slots=True)
class Fields:
    """An object and its place. A null or missing field has the value of `default`.

    Without a `default` the field is required. Each reader raises a ValueError that names the place
    and the expected type, never the value.
    """

    values: Mapping[str, object]
    place: str = ""

    @classmethod
    def of(cls, value: object, place: str = "") -> "Fields":
        """Return the fields of an object.

        Raises:
            ValueError: it is not an object.
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"{place or '/'}: must be an object")
        return cls(value, place)

    def text(self, name: str, *, default: str | None = None) -> str:
        """Return a text."""
        value = self._of(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None for a null or missing field."""
        return None if self.values.get(name) is None else self.text(name)

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self._of(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def whole(self, name: str, *, default: int | None = None) -> int:
        """Return a whole number, even one that JSON writes with a fraction or exponent."""
        value = self._of(name, default)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        # isinstance takes True for an int.
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        return value

    def optional_whole(self, name: str) -> int | None:
        """Return a whole number, or None for a null or missing field."""
        return None if self.values.get(name) is None else self.whole(name)

    def mapping(
        self, name: str, *, default: Mapping[str, object] | None = None
    ) -> Mapping[str, object]:
        """Return an object."""
        value = self._of(name, default)
        if not isinstance(value, Mapping):
            raise self._wrong(name, "an object")
        return value

    def items(self, name: str, *, default: Sequence[object] | None = None) -> Sequence[object]:
        """Return a list."""
        value = self._of(name, default)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(name, "a list")
        return value

    def _of(self, name: str, default: object) -> object:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if name not in self.values:
            raise ValueError(f"{pointer(self.place, name)}: is missing")
        return value

    def _wrong(self, name: str, expected: str) -> ValueError:
        return ValueError(f"{pointer(self.place, name)}: must be {expected}")
