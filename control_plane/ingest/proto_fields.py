"""The fields of a message that was parsed before, by where they lie in its bytes."""

from collections.abc import Iterator
from typing import NamedTuple

from control_plane.ingest.proto_size import read_varint

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_BYTES = {FIXED64: 8, FIXED32: 4}


class Field(NamedTuple):
    """A field: its tag, and where its content lies."""

    tag: int
    start: int
    end: int


class GroupError(ValueError):
    """The message holds a group: what stands in it would look like fields of the message's own."""


def tag_of(number: int, wire_type: int) -> int:
    """Return the tag of a field (Protocol Buffers Encoding, Message Structure)."""
    return number << 3 | wire_type


def fields_of(message: bytes, at: int, end: int) -> list[Field]:
    """Return the fields between two places; raises GroupError."""
    return list(each_field(message, at, end))


def each_field(message: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields between two places as far as they are asked for; raises GroupError."""
    while at < end:
        tag, start = read_varint(message, at)
        wire_type = tag & 7
        if wire_type == LENGTH:
            length, start = read_varint(message, start)
            at = start + length
        elif wire_type == VARINT:
            at = read_varint(message, start)[1]
        elif wire_type in _BYTES:
            at = start + _BYTES[wire_type]
        else:
            raise GroupError
        yield Field(tag, start, at)
