"""Assignment ids: opaque to hosts, proof of cohort and mode to intake."""

import hmac
import re
from dataclasses import dataclass

from reducer.rollout.fields import keyed_80_bits, length_prefixed
from reducer.vocabulary import Cohort, Mode

SCHEME = "a1"

_COHORTS = frozenset(map(str, Cohort))
_MODES = frozenset(map(str, Mode))
_SHAPE = re.compile(
    r"a1\.(?P<guard>[a-z0-9_]{1,48})\.(?P<pseudonym>[A-Z2-7]{16})\.(?P<wave>0|[1-9][0-9]{0,8})"
    r"\.(?P<cohort>[a-z]{1,16})\.(?P<mode>[a-z]{1,8})\.(?P<generation>0|[1-9][0-9]{0,8})"
    r"\.(?P<tag>[A-Z2-7]{16})"
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an assignment id says about one owner under one guard."""

    guard: str
    pseudonym: str
    wave: int
    cohort: Cohort
    mode: Mode
    generation: int


@dataclass(frozen=True, slots=True)
class Forged:
    """An id that is not ours: `reason` says in words what gave it away."""

    reason: str


def _tag(tag_key: bytes, environment: str, fields: tuple[str, ...]) -> str:
    return keyed_80_bits(tag_key, length_prefixed(SCHEME, environment, *fields))


def _fields(assignment: Assignment) -> tuple[str, ...]:
    return (
        assignment.guard,
        assignment.pseudonym,
        str(assignment.wave),
        str(assignment.cohort),
        str(assignment.mode),
        str(assignment.generation),
    )


def issue(tag_key: bytes, environment: str, assignment: Assignment) -> str:
    """Return the assignment id: scheme, fields and an 80-bit keyed BLAKE2b tag over all of them."""
    fields = _fields(assignment)
    return ".".join((SCHEME, *fields, _tag(tag_key, environment, fields)))


def verify(tag_key: bytes, environment: str, text: str) -> Assignment | Forged:
    """Return what the id says when this environment issued it, else why it is forged.

    No text makes it raise. The tag is compared in time that does not depend on where it differs.
    """
    found = _SHAPE.fullmatch(text)
    if found is None:
        return Forged("it does not have the shape of an assignment id")
    *fields, tag = found.groups()
    if not hmac.compare_digest(_tag(tag_key, environment, tuple(fields)), tag):
        return Forged("its tag is not of this environment")
    guard, pseudonym, wave, cohort, mode, generation = fields
    if cohort not in _COHORTS or mode not in _MODES:
        # Ours, but issued by a newer server beside this one: it cannot be evidence here.
        return Forged("it names a cohort or a mode that this server does not know")
    return Assignment(guard, pseudonym, int(wave), Cohort(cohort), Mode(mode), int(generation))
