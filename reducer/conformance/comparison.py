"""Whether an output holds what a vector expects, by the rule of docs/guards."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reducer.conformance.fields import pointer


class Difference(NamedTuple):
    """The first field that differs: its JSON pointer within the vector, and both values as text."""

    pointer: str
    expected: str
    found: str


def difference(expected: object, found: object, place: str = "") -> Difference | None:
    """Return the first difference, or None when `found` holds all that is expected.

    Objects are compared by the keys that `expected` has, lists element by element and by length,
    everything else by type and value: 1 is neither true nor "1". JSON knows one kind of number, so
    1 equals 1.0. An object without a key expects nothing.
    """
    if isinstance(expected, Mapping) and not expected:
        return None
    if _kind(expected) != _kind(found):
        return Difference(place, _text(expected), _text(found))
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return _of_objects(expected, found, place)
    if _kind(expected) == "list":
        return _of_lists(expected, found, place)  # type: ignore[arg-type]  # both are, by their kind
    return None if expected == found else Difference(place, _text(expected), _text(found))


def _of_objects(
    expected: Mapping[str, object], found: Mapping[str, object], place: str
) -> Difference | None:
    for key, value in expected.items():
        if key not in found:
            return Difference(pointer(place, key), _text(value), "nothing")
        if differs := difference(value, found[key], pointer(place, key)):
            return differs
    return None


def _of_lists(expected: Sequence[object], found: Sequence[object], place: str) -> Difference | None:
    for number, value in enumerate(expected):
        if number == len(found):
            return Difference(pointer(place, number), _text(value), "nothing")
        if differs := difference(value, found[number], pointer(place, number)):
            return differs
    if len(found) > len(expected):
        return Difference(pointer(place, len(expected)), "nothing", _text(found[len(expected)]))
    return None


def _text(value: object) -> str:
    return json.dumps(value, default=str)


def _kind(value: object) -> str:
    # bool first: to Python it is an int.
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "number"),
    (float, "number"),
    (str, "text"),
    (Mapping, "object"),
    (Sequence, "list"),
)
