"""Canonical arguments and their digest: when two tool calls are the same call."""

import json
import math
from collections.abc import Mapping
from hashlib import blake2b

DIGEST_BYTES = 16
# Arguments come from a model: deeper or larger ones are refused before they cost time or stack.
MOST_DEPTH = 64
MOST_VALUES = 100_000
# Python writes no integer of more than 4,300 digits as text.
MOST_BITS = 14_000

_AS_IS = frozenset({str, bool, type(None)})
_NUMBERS = frozenset({int, float})
_encode = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def canonical_text(arguments: object) -> str:
    """Return the one JSON text that all spellings of the same arguments share.

    Keys are sorted at every depth, arrays keep their order, strings are exact. A float with a
    whole value equals the integer (1.0, 1e0 and 1; -0.0 and 0), integers of any size stay exact,
    and `true` never equals 1. None and missing arguments equal `{}`, while a null field differs
    from an absent one (guards.md 1).

    Raises:
        ValueError: for what JSON cannot say (NaN, infinities, bytes, dates, a key that is no
            text), naming its place, and for arguments deeper than 64, of more than 100,000
            values, or with an integer of more than 14,000 bits.
    """
    if arguments is None:
        return "{}"
    budget = [MOST_VALUES]
    return _encode(_plain(arguments, "arguments", MOST_DEPTH, budget))


def fingerprint(tool: str, arguments: object, *, aliases: Mapping[str, str] | None = None) -> str:
    """Return 32 hex digits (128-bit BLAKE2b) that name a tool and its canonical arguments.

    `aliases` maps older tool names to the one that is meant; a name it lacks stands for itself.

    Raises:
        ValueError: as `canonical_text`, and for a blank or non-text tool name.
    """
    given = _named(tool)
    name = given if aliases is None else aliases.get(given, given)
    # JSON's quotes end the name: no other name and text give the same message.
    message = f"{_encode(name)}:{canonical_text(arguments)}"
    return blake2b(message.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _named(tool: object) -> str:
    if not isinstance(tool, str) or not tool.strip():
        raise ValueError(f"tool is {tool!r}; give the resolved name of the tool")
    return tool


def _plain(value: object, place: str, depth: int, budget: list[int]) -> object:
    budget[0] -= 1
    if budget[0] < 0:
        raise ValueError(f"{place}: more than {MOST_VALUES} values; shorten the arguments")
    # By exact type: a subclass may print as anything, and True is an int to isinstance.
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind in _NUMBERS:
        return _number(value, place)  # type: ignore[arg-type]  # its type was just looked up
    if depth == 0:
        raise ValueError(f"{place}: nested deeper than {MOST_DEPTH}; flatten the arguments")
    if isinstance(value, Mapping):
        return {
            _key(key, place): _plain(each, f"{place}.{key}", depth - 1, budget)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(each, f"{place}[{at}]", depth - 1, budget) for at, each in enumerate(value)]
    raise ValueError(
        f"{place}: {kind.__name__} is not a JSON value; pass text, a number, true, false, null, "
        "a list or an object"
    )


def _number(value: float, place: str) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise ValueError(f"{place}: an integer of more than {MOST_BITS} bits; shorten it")
        return value
    if not math.isfinite(value):
        raise ValueError(f"{place}: {value} is no JSON number; pass a finite one")
    return int(value) if value.is_integer() else value


def _key(key: object, place: str) -> str:
    if type(key) is not str:
        raise ValueError(f"{place}: the key {key!r} is no text; an object's keys are texts")
    return key
