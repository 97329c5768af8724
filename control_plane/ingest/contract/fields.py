"""Attribute fields: typed readers whose rejections name field, value and what is allowed."""

import math
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TypeVar

from guardwave.control_plane.ingest.contract.limits import (
    ASSIGNMENT_ID_CHARACTERS,
    ASSIGNMENT_IDS,
    ASSIGNMENT_JOINT,
)
from guardwave.control_plane.ingest.model.otlp_values import Attributes, Value
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.reducer.contract import ASSIGNMENT_ID, COUNT_LIMIT
from guardwave.reducer.rollout.invariants import LONGEST_STRING_BYTES

T = TypeVar("T")
# Only a word or a number is quoted to its sender: anything else may be content.
_QUOTABLE = re.compile(r"[A-Za-z0-9_.:+-]{0,40}")
_CACHE_ENTRIES = 16_384
# The ids of four guards fit. A longer value, which a sender chooses, must not fill the cache.
LONGEST_KEPT = 640
_MOST_PARTS = 2 * ASSIGNMENT_IDS


def _bad(key: str, value: Value, wanted: str) -> ItemRejected:
    return ItemRejected(RejectReason.BAD_ATTRIBUTE, f"{key} is {quoted(value)}, not {wanted}")


def quoted(value: object) -> str:
    """Return how a rejection shows a value: a short word or a number itself, else its size.

    Only its sender reads that: no log repeats a rejection.
    """
    match value:
        case str() if _QUOTABLE.fullmatch(value):
            return repr(value)
        case str():
            return f"a string of {len(value)} characters"
        case bool() | int() | float():
            return f"{value!r:.40}"
        case _:
            return f"of type {type(value).__name__}"


def required(value: T | None, key: str, overlong: Collection[str] = ()) -> T:
    """Return the value, or reject the item: the attribute is missing or was `overlong`."""
    if value is None:
        if key in overlong:
            fault = f"{key} is a string of over {LONGEST_STRING_BYTES} bytes"
            raise ItemRejected(RejectReason.BAD_ATTRIBUTE, fault)
        raise ItemRejected(RejectReason.BAD_ATTRIBUTE, f"{key} is missing")
    return value


def word(attributes: Attributes, key: str, words: Mapping[str, T]) -> T | None:
    """Read a word of a closed set; None when it is not reported."""
    value = attributes.get(key)
    if value is None:
        return None
    found = words.get(value) if isinstance(value, str) else None
    if found is None:
        raise _bad(key, value, f"one of {', '.join(words)}")
    return found


def count(attributes: Attributes, key: str, *, most: int = COUNT_LIMIT) -> int | None:
    """Read a count: an integer, or a whole double, which some pipelines make of integers."""
    value = attributes.get(key)
    if value is None or (type(value) is int and 0 <= value <= most):
        return value
    number = whole(value)
    if number is None or not 0 <= number <= most:
        raise _bad(key, value, f"a whole number from 0 to {most}")
    return number


def whole(value: Value) -> int | None:
    """Return the value as an integer, None when it is none; true and false are not numbers."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return None


def seconds(attributes: Attributes, key: str, *, most: float) -> float | None:
    """Read a time in seconds, finite and not negative."""
    value = attributes.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(key, value, "a number of seconds")
    if not math.isfinite(value) or not 0 <= value <= most:
        raise _bad(key, value, f"a number of seconds from 0 to {most:g}")
    return float(value)


def flag(attributes: Attributes, key: str) -> bool | None:
    """Read true or false."""
    value = attributes.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _bad(key, value, "true or false")


def text(attributes: Attributes, key: str, *, most_bytes: int) -> str | None:
    """Read an opaque string that is not empty."""
    value = attributes.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value.encode()) > most_bytes:
        raise _bad(key, value, f"a string of 1 to {most_bytes} bytes")
    return value


def name(attributes: Attributes, key: str, pattern: re.Pattern[str]) -> str | None:
    """Read an identifier of a given shape; a rejection shows its length and never its text."""
    value = attributes.get(key)
    if value is None:
        return None
    if isinstance(value, str) and not pattern.fullmatch(value):
        fault = f"{key} is a string of {len(value)} characters, not an identifier {pattern.pattern}"
        raise ItemRejected(RejectReason.BAD_ATTRIBUTE, fault)
    if not isinstance(value, str):
        raise _bad(key, value, f"an identifier {pattern.pattern}")
    return value


def assignment_ids(attributes: Attributes) -> tuple[str, ...]:
    """Read the assignment ids: one string, several joined by `~`, or an array of strings."""
    value = attributes.get(ASSIGNMENT_ID)
    return () if value is None else ids_of(value)


def ids_of(value: Value) -> tuple[str, ...]:
    """Read the assignment ids of an attribute that is present."""
    # An owner's records come many at a time, with the same ids.
    return (_split_ids_cached if _is_short(value) else _split_ids)(value)


def _is_short(value: Value) -> bool:
    items: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    return len(items) <= ASSIGNMENT_IDS and (
        sum(len(item) + 1 if isinstance(item, str) else LONGEST_KEPT + 1 for item in items)
        <= LONGEST_KEPT
    )


def _split_ids(value: Value) -> tuple[str, ...]:
    items: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    if len(items) > ASSIGNMENT_IDS:
        raise _bad(ASSIGNMENT_ID, value, f"at most {ASSIGNMENT_IDS} ids")
    found: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise _bad(ASSIGNMENT_ID, value, "a string or an array of strings")
        parts = item.split(ASSIGNMENT_JOINT, _MOST_PARTS)
        found.extend(part for part in parts if part)
        if len(parts) > _MOST_PARTS or len(found) > ASSIGNMENT_IDS:
            raise _bad(ASSIGNMENT_ID, value, f"at most {ASSIGNMENT_IDS} ids")
    if any(len(part) > ASSIGNMENT_ID_CHARACTERS for part in found):
        raise _bad(
            ASSIGNMENT_ID, value, f"ids of at most {ASSIGNMENT_ID_CHARACTERS} characters each"
        )
    return tuple(found)


_split_ids_cached = lru_cache(_CACHE_ENTRIES)(_split_ids)
