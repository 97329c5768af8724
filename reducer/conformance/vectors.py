"""Vectors: the files of examples for a guard, their run on a machine, and the comparison."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from guardwave.reducer.conformance.fields import Fields, pointer
from guardwave.reducer.conformance.inference import GUARDS, guard_of, words_of


class Difference(NamedTuple):
    """The first difference: its JSON pointer within the vector, and both values as text."""

    pointer: str
    expected: str
    found: str


class Machine(Protocol):
    """One guard behind the neutral schema of `docs/guards`; a new one for each vector."""

    def step(self, event: Mapping[str, object], /) -> Mapping[str, object]:
        """Take the input of one step and return its output in the words of the schema."""
        ...


class VectorStep(NamedTuple):
    """The input of a machine, and the fields that its output must have."""

    event: Mapping[str, object]
    expect: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Vector:
    """One named example: the machine's configuration and its steps, in order.

    `basis` is the source of the example, for information only.
    """

    name: str
    basis: str
    config: Mapping[str, object]
    steps: tuple[VectorStep, ...]


class Failure(NamedTuple):
    """A vector that a machine did not pass, with the first difference."""

    vector: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class VectorFile:
    """The vectors of one guard, named as in docs/guards (`repeated-failure`, ...).

    `broken` are vectors that no machine can run; they count as failed.
    """

    guard: str
    vectors: tuple[Vector, ...]
    broken: tuple[Failure, ...] = ()


def parse(document: object, *, guard: str | None = None) -> VectorFile:
    """Return the vectors of a parsed JSON document; without `guard` their words decide the guard.

    Raises:
        ValueError: the document is not a list with a vector (it names the first fault by its JSON
            pointer), the words fit no guard or two guards, or `guard` is unknown.
    """
    if not isinstance(document, list) or not document:
        raise ValueError("the document is no list of vectors; pass a file of at least one")
    vectors: list[Vector] = []
    faults: dict[str, ValueError] = {}
    for number, item in enumerate(document):
        try:
            vectors.append(_vector(Fields.of(item, f"/{number}")))
        except ValueError as fault:
            faults[f"/{number}"] = fault
    if not vectors:
        raise next(iter(faults.values()))
    if guard is None:
        guard = guard_of(
            word for vector in vectors for word in words_of(vector.config, vector.steps)
        )
    elif guard not in GUARDS:
        raise ValueError(f"guard is {guard!r}; pass one of {', '.join(GUARDS)}")
    return VectorFile(
        guard, tuple(vectors), tuple(_broken(place, fault) for place, fault in faults.items())
    )


def run(vector: Vector, make: Callable[[Mapping[str, object]], Machine]) -> Failure | None:
    """Run a vector on a new machine; None means that it passed.

    An error of the machine is a failure of its step, not of the run.
    """
    place = "/config"
    try:
        machine = make(vector.config)
        for number, (event, expect) in enumerate(vector.steps):
            place = f"/steps/{number}/input"
            output = machine.step(event)
            found = first_difference(expect, output, f"/steps/{number}/expect")
            if found is not None:
                return Failure(vector.name, found)
    except ValueError as error:
        return Failure(vector.name, Difference(place, "accepted", f"refused: {error}"))
    except Exception as error:  # noqa: BLE001  # a machine under test may break in any way
        text = f"broke: {type(error).__name__}: {error}"
        return Failure(vector.name, Difference(place, "accepted", text))
    return None


def _broken(place: str, fault: ValueError) -> Failure:
    at, _, reason = str(fault).partition(": ")
    return Failure(place, Difference(at, "a vector", f"refused: {reason}"))


def _vector(fields: Fields) -> Vector:
    steps = fields.items("steps")
    if not steps:
        raise ValueError(f"{fields.place}/steps: a vector without a step checks nothing")
    return Vector(
        name=fields.text("name"),
        basis=fields.text("basis", default=""),
        config=fields.mapping("config", default={}),
        steps=tuple(_steps(steps, fields.place)),
    )


def _steps(steps: Sequence[object], place: str) -> Sequence[VectorStep]:
    fields = [Fields.of(step, f"{place}/steps/{number}") for number, step in enumerate(steps)]
    return [VectorStep(step.mapping("input"), step.mapping("expect")) for step in fields]


def first_difference(expected: object, found: object, place: str = "") -> Difference | None:
    """Return the first difference, or None if `found` has everything that is expected.

    Objects are compared by the keys of `expected`, lists by element and length, everything else by
    type and value: 1 is neither true nor "1". JSON has one kind of number, so 1 equals 1.0. An
    empty object expects nothing.
    """
    if isinstance(expected, Mapping) and not expected:
        return None
    if _kind(expected) != _kind(found):
        return Difference(place, _text(expected), _text(found))
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return _object_difference(expected, found, place)
    if _kind(expected) == "list":
        return _list_difference(expected, found, place)  # type: ignore[arg-type]  # _kind says so
    return None if expected == found else Difference(place, _text(expected), _text(found))


def _object_difference(
    expected: Mapping[str, object], found: Mapping[str, object], place: str
) -> Difference | None:
    for key, value in expected.items():
        if key not in found:
            return Difference(pointer(place, key), _text(value), "nothing")
        if differs := first_difference(value, found[key], pointer(place, key)):
            return differs
    return None


def _list_difference(
    expected: Sequence[object], found: Sequence[object], place: str
) -> Difference | None:
    for number, value in enumerate(expected):
        if number == len(found):
            return Difference(pointer(place, number), _text(value), "nothing")
        if differs := first_difference(value, found[number], pointer(place, number)):
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
