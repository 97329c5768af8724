"""How frozen values become stored JSON and come back, checked by their types."""

from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter

Value = TypeVar("Value")


@cache
def _adapter(kind: type[Value]) -> TypeAdapter[Value]:
    return TypeAdapter(kind)


def encode(value: object) -> bytes:
    """Return a frozen value as JSON bytes."""
    return _adapter(type(value)).dump_json(value)


def decode(kind: type[Value], stored: bytes) -> Value:
    """Return the value that `stored` holds.

    Raises:
        ValueError: the bytes are not JSON of this type (a newer or a damaged store).
    """
    return _adapter(kind).validate_json(stored)
