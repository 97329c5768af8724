"""Codec: stored values as JSON, checked by their types, and MessagePack for the functions."""

from typing import TypeVar

import msgpack  # type: ignore[import-untyped]  # the package ships no types
from pydantic import TypeAdapter

Value = TypeVar("Value")

# One adapter for each type: building one takes a thousand times as long as using it.
_ADAPTERS: dict[type[object], TypeAdapter[object]] = {}


def _adapter(kind: type[object]) -> TypeAdapter[object]:
    found = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = TypeAdapter(kind)
    return found


def encode(value: object) -> bytes:
    """Return a frozen value as JSON bytes."""
    return _adapter(type(value)).dump_json(value)


def decode(kind: type[Value], stored: bytes | str) -> Value:
    """Return the value that `stored` holds.

    Raises:
        ValueError: the bytes are not JSON of this type (a newer or a damaged store).
    """
    value = _adapter(kind).validate_json(stored)
    if not isinstance(value, kind):
        raise ValueError(f"{type(value).__name__} is stored where {kind.__name__} was expected")
    return value


def pack(value: object) -> bytes:
    """Return lists, dicts, texts, whole numbers and booleans as MessagePack.

    Bytes are packed as text: the store's reader (Lua's cmsgpack) does not know the bin type.
    """
    return bytes(msgpack.packb(value, use_bin_type=False))


def unpack(packed: bytes) -> object:
    """Return a value that a store function packed. An empty Lua table comes back as a list."""
    value: object = msgpack.unpackb(packed)
    return value
