"""How much a protobuf message may hold: looked at before it is parsed, since parsing costs memory.

A field of two bytes becomes sixteen and more in the parser: a body of 16 MiB that is full of them
would take hundreds. Below `LARGE` that does not matter, and nothing is looked at.
"""

from control_plane.ingest.wire import BadBody, TooLarge

LARGE = 1024 * 1024
# As many as the records and wrappers that a body may hold by default, each twice.
MOST_FIELDS = 40_000

_LONGEST_VARINT = 10


def check_size(message: bytes) -> None:
    """Refuse a large message of very many fields.

    Raises:
        TooLarge: there are more than MOST_FIELDS.
        BadBody: it is no message.
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
        case 3 | 4:  # groups, which nobody has sent for long: their fields are counted too
            return at
        case wire_type:
            raise BadBody(f"protobuf knows no wire type {wire_type}; check the exporter")


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Read the number at this place, and where it ends.

    Raises:
        BadBody: it takes more than ten bytes.
        IndexError: it is cut off.
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
