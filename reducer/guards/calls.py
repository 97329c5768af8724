"""Tool calls: the canonical text and digest of their arguments, and a call with its digest."""

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.transition import is_identifier

DIGEST_BYTES = 16
# Arguments come from a model: the limits stop large ones before they cost time or stack.
MOST_DEPTH = 64
MOST_VALUES = 100_000
# Python refuses to write an integer of more than 4,300 digits as text.
MOST_BITS = 14_000

_AS_IS = frozenset({str, bool, type(None)})
_NUMBERS = frozenset({int, float})
_encode = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


class UnreadableCall(ValueError):
    """A call of a model that can have no digest; it equals no other call."""


def canonical_text(arguments: object) -> str:
    """Return the one JSON text for all spellings of the same arguments.

    Keys are sorted at every depth, arrays keep their order, strings are exact. A float with a
    whole value equals the integer (1.0, 1e0 and 1; -0.0 and 0), integers of any size stay exact,
    and `true` never equals 1. None and missing arguments equal `{}`, but a null field differs
    from an absent one (`docs/guards`).

    Raises:
        UnreadableCall: a number is not finite, or the arguments are deeper than 64, have more
            than 100,000 values, or hold an integer of more than 14,000 bits.
        ValueError: a value is not JSON (bytes, dates, a key that is no text), which is an error
            of the host's code. Both errors name the place by its keys; a key that is not an
            identifier is given by its position (`[key 2]`, from 1).
    """
    if arguments is None:
        return "{}"
    try:
        return _encode(_plain(arguments, MOST_DEPTH, [MOST_VALUES]))
    except _Fault as fault:
        raise fault.error() from None


def fingerprint(tool: str, arguments: object, *, aliases: Mapping[str, str] | None = None) -> str:
    """Return the digest of a tool and its canonical arguments: 32 hex digits, 128-bit BLAKE2b.

    `aliases` maps older tool names to the current name; other names stay as they are.

    Raises:
        UnreadableCall: as `canonical_text`, and for a blank tool name.
        ValueError: as `canonical_text`, and for a tool name that is not a text.
    """
    resolved = _check_tool(tool)
    name = resolved if aliases is None else aliases.get(resolved, resolved)
    # The quotes of JSON mark the end of the name, so no other name and text give this message.
    message = f"{_encode(name)}:{canonical_text(arguments)}"
    return blake2b(message.encode(), digest_size=DIGEST_BYTES).hexdigest()


def _check_tool(tool: object) -> str:
    if not isinstance(tool, str):
        raise argument_error("tool", tool, "pass its resolved name as a text")
    if not tool.strip():
        raise UnreadableCall("tool is blank; pass its resolved name as a text")
    return tool


class _Fault(Exception):
    """A fault of a value; each level that it passes through adds a step to its place."""

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
    # The exact type: a subclass may print as anything, and isinstance takes True for an int.
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind in _NUMBERS:
        return _number(value)  # type: ignore[arg-type]  # the line above checked it
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
    plain: dict[str, object] = {}
    key: object = None
    try:
        for key, item in value.items():
            if type(key) is not str:
                raise _Fault("the key is no text; an object's keys are texts", ValueError)
            plain[key] = _plain(item, depth, budget)
    except _Fault as fault:
        # A model may write anything into a key: the error repeats only identifiers.
        fault.steps.append(f".{key}" if is_identifier(key) else f"[key {len(plain) + 1}]")
        raise
    return plain


def _array(value: Sequence[object], depth: int, budget: list[int]) -> list[object]:
    plain: list[object] = []
    try:
        for item in value:
            plain.append(_plain(item, depth, budget))  # noqa: PERF401  # its length is the place
    except _Fault as fault:
        fault.steps.append(f"[{len(plain)}]")
        raise
    return plain


def _number(value: float) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise _Fault(f"an integer of more than {MOST_BITS} bits; shorten it")
        return value
    if not math.isfinite(value):
        raise _Fault("not a finite number; pass a finite one")
    return int(value) if value.is_integer() else value


class ToolCall(NamedTuple):
    """One call that the model asked for, before anything ran.

    `call_id` is the provider's id, None or empty when it sent none. `tool` is the resolved name,
    not the display name. Without a `fingerprint` the call equals no other call, so no guard takes
    it for a repeat.
    """

    call_id: str | None
    tool: str
    fingerprint: str | None

    @classmethod
    def of(
        cls,
        call_id: str | None,
        tool: str,
        arguments: object,
        *,
        aliases: Mapping[str, str] | None = None,
    ) -> "ToolCall":
        """Return the call with the digest of its tool and canonical arguments.

        Nothing that a model writes is an error here: with a blank name, a number that is not
        finite, or arguments beyond the limits of `fingerprint` the call has no digest.

        Raises:
            ValueError: the tool name is not a text, or the arguments are of a type that JSON does
                not have, which are errors of the host's code; it names the field.
        """
        try:
            return cls(call_id, tool, fingerprint(tool, arguments, aliases=aliases))
        except UnreadableCall:
            return cls(call_id, tool, None)
