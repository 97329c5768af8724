"""Protobuf fields: the number of fields in a message, and where each of them lies.

A large message is checked before it is parsed: a field of two bytes takes sixteen and more in the
parser, so a body of 16 MiB full of them would take hundreds. Below `LARGE` that does not matter.
"""

from collections.abc import Iterator
from typing import NamedTuple

from guardwave.control_plane.ingest.wire.body import BadBody, TooLarge

LARGE = 1024 * 1024
# Twice the records and wrappers that a body may hold by default.
MOST_FIELDS = 40_000

_LONGEST_VARINT = 10


def check_size(message: bytes) -> None:
    """Reject a large message of very many fields.

    Raises:
        TooLarge: there are more than MOST_FIELDS.
        BadBody: the bytes are no message.
    """
    if len(message) <= LARGE:
        return
    at = fields = 0
    try:
        while at < len(message):
            fields += 1
            if fields > MOST_FIELDS:
                raise TooLarge(
                    f"a message of {len(message)} bytes holds more than {MOST_FIELDS} fields; "
                    "lower the exporter's batch size"
                )
            at = _skip(message, at)
    except IndexError:
        raise BadBody("the protobuf body is cut off; check the exporter") from None
    if at != len(message):
        raise BadBody("the protobuf body is cut off; check the exporter")


def _skip(message: bytes, at: int) -> int:
    tag, at = read_varint(message, at)
    match tag & 7:
        case 0:
            return read_varint(message, at)[1]
        case 1:
            return at + 8
        case 2:
            length, at = read_varint(message, at)
            return at + length
        case 5:
            return at + 4
        case 3 | 4:  # start and end of a group, long out of use: its fields are counted too
            return at
        case wire_type:
            raise BadBody(f"protobuf knows no wire type {wire_type}; check the exporter")


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Read the number at this offset; return it and the offset behind it.

    Raises:
        BadBody: the number takes more than ten bytes.
        IndexError: the number is cut off.
    """
    value = message[at]
    if value < 0x80:
        return value, at + 1
    value = shift = 0
    for _ in range(_LONGEST_VARINT):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise BadBody("a number in the protobuf body does not end; check the exporter")


VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_BYTES = {FIXED64: 8, FIXED32: 4}


class Field(NamedTuple):
    """A field: its tag, and the offsets of its content."""

    tag: int
    start: int
    end: int


class GroupError(ValueError):
    """The message holds a group, whose fields would look like fields of the message itself."""


def tag_of(number: int, wire_type: int) -> int:
    """Return the tag of a field (Protocol Buffers Encoding, Message Structure)."""
    return number << 3 | wire_type


def fields_of(message: bytes, at: int, end: int) -> list[Field]:
    """Return the fields between two offsets; raises GroupError."""
    return list(iterate_fields(message, at, end))


def iterate_fields(message: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields between two offsets, one by one; raises GroupError."""
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
