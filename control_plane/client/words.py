"""What a host passes to telemetry, taken as a word or a number, or refused by the field's name.

A refusal never holds what was passed: a text where a word belongs may be anything.
"""

from enum import StrEnum
from typing import TypeGuard, TypeVar

from reducer.guards.transition import is_identifier

Word = TypeVar("Word", bound=StrEnum)


class Unfit(TypeError):
    """Something that cannot be reported: the field that holds it, its type, and what fits."""

    def __init__(self, field: str, found: object, remedy: str) -> None:
        self.field = field
        is_text = type(found) is str
        what = "a text that does not fit" if is_text else f"of type {type(found).__name__}"
        super().__init__(f"{field} is {'None' if found is None else what}; give {remedy}")


def word_of(found: object, words: type[Word], field: str) -> Word:
    """Return a word of a closed set, also where a plain text spells it.

    Raises:
        Unfit: it is none of them. A word of another set is none, though it may be spelled alike:
            a terminal status is not what the execution came to.
    """
    if isinstance(found, words):
        return found
    if type(found) is str and found in words._value2member_map_:
        return words(found)
    raise Unfit(field, found, f"one of {', '.join(words)}")


def flag_of(found: object, field: str) -> bool:
    """Return a truth value.

    Raises:
        Unfit: it is none.
    """
    if not isinstance(found, bool):
        raise Unfit(field, found, "True, False or, where it is not known, None")
    return found


def identifier_of(found: object, field: str) -> str:
    """Return the class of an error.

    Raises:
        Unfit: it is no identifier, so it may be an error's text.
    """
    if not is_identifier(found):
        raise Unfit(field, found, "the class of an error, 1 to 64 of A-Z a-z 0-9 _ . -")
    return str(found)


def count_of(number: object, most: int) -> int | None:
    """Return a whole number from 0 to `most`, None where it is none."""
    return number if is_count(number) and 0 <= number <= most else None


def is_count(found: object) -> TypeGuard[int]:
    """Whether it is a whole number. True is an int to Python and no count."""
    return type(found) is int


def is_number(found: object) -> TypeGuard[float]:
    """Whether it is a number, with or without a fraction."""
    return isinstance(found, int | float) and not isinstance(found, bool)
