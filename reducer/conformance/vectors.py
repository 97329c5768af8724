"""Vectors of the guards: what a file must hold, which guard it is about, and how one is run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from reducer.conformance.comparison import Difference, difference
from reducer.conformance.fields import Fields
from reducer.conformance.inference import GUARDS, guard_of, words_of


class Machine(Protocol):
    """One guard behind the neutral schema of docs/guards; made anew for each vector."""

    def step(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Take one step's input and return its output in the words of the schema."""
        ...


class VectorStep(NamedTuple):
    """What a machine is given, and what its output must then hold."""

    given: Mapping[str, object]
    expect: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Vector:
    """One named example: the machine's configuration and its steps, in order.

    `basis` says what the example rests on; it is information only.
    """

    name: str
    basis: str
    config: Mapping[str, object]
    steps: tuple[VectorStep, ...]


class Failure(NamedTuple):
    """A vector that a machine did not pass, with the first field that differs."""

    vector: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class VectorFile:
    """The vectors of one guard, named as in docs/guards (`repeated-failure`, ...).

    `broken` are those that no machine could be given: they have failed before they ran.
    """

    guard: str
    vectors: tuple[Vector, ...]
    broken: tuple[Failure, ...] = ()


def parse(document: object, *, guard: str | None = None) -> VectorFile:
    """Return the vectors of a parsed JSON document; the guard is told from the words they use.

    Raises:
        ValueError: the document is no list with a vector (naming the first place where it is none
            as a JSON pointer), its words fit no guard or two alike and `guard` names none, or
            `guard` is unknown.
    """
    if not isinstance(document, list) or not document:
        raise ValueError("the document is no list of vectors; pass a file of at least one")
    vectors: list[Vector] = []
    faults: dict[str, ValueError] = {}
    for number, each in enumerate(document):
        try:
            vectors.append(_vector(Fields.of(each, f"/{number}")))
        except ValueError as fault:
            faults[f"/{number}"] = fault
    if not vectors:
        raise next(iter(faults.values()))
    if guard is None:
        guard = guard_of(word for each in vectors for word in words_of(each.config, each.steps))
    elif guard not in GUARDS:
        raise ValueError(f"guard is {guard!r}; pass one of {', '.join(GUARDS)}")
    return VectorFile(
        guard, tuple(vectors), tuple(_broken(place, fault) for place, fault in faults.items())
    )


def run(vector: Vector, make: Callable[[Mapping[str, object]], Machine]) -> Failure | None:
    """Run a vector on a machine of its own; None means that it passed.

    Whatever the machine raises is a failure of that step and not of the run.
    """
    place = "/config"
    try:
        machine = make(vector.config)
        for number, (given, expect) in enumerate(vector.steps):
            place = f"/steps/{number}/input"
            output = machine.step(given)
            found = difference(expect, output, f"/steps/{number}/expect")
            if found is not None:
                return Failure(vector.name, found)
    except ValueError as refused:
        return Failure(vector.name, Difference(place, "accepted", f"refused: {refused}"))
    except Exception as broke:  # noqa: BLE001  # a machine under test may break in any way
        found_text = f"broke: {type(broke).__name__}: {broke}"
        return Failure(vector.name, Difference(place, "accepted", found_text))
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
        basis=fields.text("basis", missing=""),
        config=fields.mapping("config", missing={}),
        steps=tuple(_steps(steps, fields.place)),
    )


def _steps(steps: Sequence[object], place: str) -> Sequence[VectorStep]:
    found = [Fields.of(each, f"{place}/steps/{number}") for number, each in enumerate(steps)]
    return [VectorStep(each.mapping("input"), each.mapping("expect")) for each in found]
