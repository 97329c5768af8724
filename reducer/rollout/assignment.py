"""Assignment ids: opaque to hosts, and a proof of cohort and mode for intake."""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from guardwave.reducer.rollout.fields import (
    base32_of_80_bits,
    bytes_of_base32,
    keyed_digest,
    length_prefixed,
)
from guardwave.reducer.vocabulary import Cohort, Mode

SCHEME = "a1"

_COHORTS = {str(cohort): cohort for cohort in Cohort}
_MODES = {str(mode): mode for mode in Mode}
_SHAPE = re.compile(
    r"a1\.(?P<guard>[a-z0-9_]{1,48})\.(?P<pseudonym>[A-Z2-7]{16})\.(?P<wave>0|[1-9][0-9]{0,8})"
    r"\.(?P<cohort>[a-z]{1,16})\.(?P<mode>[a-z]{1,8})\.(?P<generation>0|[1-9][0-9]{0,8})"
    r"\.(?P<tag>[A-Z2-7]{16})"
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The content of an assignment id: one owner under one guard."""

    guard: str
    pseudonym: str
    wave: int
    cohort: Cohort
    mode: Mode
    generation: int


@dataclass(frozen=True, slots=True)
class ForgedId:
    """An id that this environment did not issue; `reason` is the evidence, in words."""

    reason: str


# The ids of one cohort differ only in the pseudonym, so the other bytes are worth keeping.
_shared = lru_cache(1024)(length_prefixed)


def _tag(tag_key: bytes, environment: str, fields: Sequence[str]) -> bytes:
    guard, pseudonym, *treatment = fields
    return keyed_digest(
        tag_key,
        _shared(SCHEME, environment, guard) + length_prefixed(pseudonym) + _shared(*treatment),
    )


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
    return ".".join((SCHEME, *fields, base32_of_80_bits(_tag(tag_key, environment, fields))))


def verify(tag_key: bytes, environment: str, text: str) -> Assignment | ForgedId:
    """Return the content of an id that this environment issued, else the reason against it.

    It raises for no text. The time of the comparison does not depend on where the tag differs.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return ForgedId("it does not have the shape of an assignment id")
    *fields, tag = shape.groups()
    if not hmac.compare_digest(_tag(tag_key, environment, fields), bytes_of_base32(tag)):
        return ForgedId("its tag is not of this environment")
    guard, pseudonym, wave, cohort, mode, generation = fields
    known_cohort, known_mode = _COHORTS.get(cohort), _MODES.get(mode)
    if known_cohort is None or known_mode is None:
        # A newer server beside this one issued it: here it cannot be evidence.
        return ForgedId("it names a cohort or a mode that this server does not know")
    return Assignment(guard, pseudonym, int(wave), known_cohort, known_mode, int(generation))
