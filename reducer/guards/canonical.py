"""Canonical arguments and their digest: when two tool calls are the same call."""

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from reducer.guards.mistakes import mistaken
from reducer.guards.transition import is_identifier

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


class UnreadableCall(ValueError):
    """A call that a model can ask for and that no digest can stand for: it equals no other."""


def canonical_text(arguments: object) -> str:
    """Return the one JSON text that all spellings of the same arguments share.

    Keys are sorted at every depth, arrays keep their order, strings are exact. A float with a
    whole value equals the integer (1.0, 1e0 and 1; -0.0 and 0), integers of any size stay exact,
    and `true` never equals 1. None and missing arguments equal `{}`, while a null field differs
    from an absent one (docs/guards).

    Raises:
        UnreadableCall: a number that is not finite, and arguments deeper than 64, of more than
            100,000 values, or with an integer of more than 14,000 bits.
        ValueError: what is no value of JSON (bytes, dates, a key that is no text): a mistake of
            the host's code. Both name the place, by keys that are identifiers; any other key is
            told by its position (`[key 2]`, from 1).
    """
    if arguments is None:
        return "{}"
    try:
        return _encode(_plain(arguments, MOST_DEPTH, [MOST_VALUES]))
    except _Fault as fault:
        raise fault.error() from None


def fingerprint(tool: str, arguments: object, *, aliases: Mapping[str, str] | None = None) -> str:
    """Return 32 hex digits (128-bit BLAKE2b) that name a tool and its canonical arguments.

    `aliases` maps older tool names to the one that is meant; a name it lacks stands for itself.

    Raises:
        UnreadableCall: as `canonical_text`, and for a blank tool name.
        ValueError: as `canonical_text`, and for a tool name that is no text.
    """
    given = _named(tool)
    name = given if aliases is None else aliases.get(given, given)
    # JSON's quotes end the name: no other name and text give the same message.
    message = f"{_encode(name)}:{canonical_text(arguments)}"
    return blake2b(message.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _named(tool: object) -> str:
    if not isinstance(tool, str):
        raise mistaken("tool", tool, "pass its resolved name as a text")
    if not tool.strip():
        raise UnreadableCall("tool is blank; pass its resolved name as a text")
    return tool


class _Fault(Exception):
    """What is wrong with a value; each level it passes through adds a step to its place."""

    def __init__(self, reason: str, kind: type[ValueError] = UnreadableCall) -> None:
        super().__init__()
        self.reason = reason
        self.kind = kind
        self.steps: list[str] = []

    def error(self) -> ValueError:
        """Return the error for the caller, with the place from the outermost value inwards."""
        return self.kind(f"arguments{''.join(reversed(self.steps))}: {self.reason}")


def _plain(value: object, depth: int, budget: list[int]) -> object:
    budget[0] -= 1
    if budget[0] < 0:
        raise _Fault(f"more than {MOST_VALUES} values; shorten the arguments")
    # By exact type: a subclass may print as anything, and True is an int to isinstance.
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind in _NUMBERS:
        return _number(value)  # type: ignore[arg-type]  # its type was just looked up
    if depth == 0:
        raise _Fault(f"nested deeper than {MOST_DEPTH}; flatten the arguments")
    if isinstance(value, Mapping):
        return _object(value, depth - 1, budget)
    if isinstance(value, list | tuple):
        return _array(value, depth - 1, budget)
    raise _Fault(
        f"{kind.__name__} is not a JSON value; pass text, a number, true, false, null, "
        "a list or an object",
        ValueError,
    )


def _object(value: Mapping[object, object], depth: int, budget: list[int]) -> dict[str, object]:
    found: dict[str, object] = {}
    key: object = None
    try:
        for key, each in value.items():
            if type(key) is not str:
                raise _Fault("the key is no text; an object's keys are texts", ValueError)
            found[key] = _plain(each, depth, budget)
    except _Fault as fault:
        # A model may write anything into a key: only a name is repeated.
        fault.steps.append(f".{key}" if is_identifier(key) else f"[key {len(found) + 1}]")
        raise
    return found


def _array(value: Sequence[object], depth: int, budget: list[int]) -> list[object]:
    found: list[object] = []
    try:
        for each in value:
            found.append(_plain(each, depth, budget))  # noqa: PERF401  # its length is the place
    except _Fault as fault:
        fault.steps.append(f"[{len(found)}]")
        raise
    return found


def _number(value: float) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise _Fault(f"an integer of more than {MOST_BITS} bits; shorten it")
        return value
    if not math.isfinite(value):
        raise _Fault("not a finite number; pass a finite one")
    return int(value) if value.is_integer() else value
