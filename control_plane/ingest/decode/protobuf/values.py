"""Values of OTLP/protobuf: AnyValue and attributes; a fault rejects one item, not the body."""

from collections.abc import Iterable, Sequence
from struct import Struct

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1 import common_pb2 as common
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from guardwave.control_plane.ingest.decode.protobuf.lazy_messages import ANY_VALUE, PAIR
from guardwave.control_plane.ingest.model.otlp_values import (
    ELEMENT_LIMIT,
    EMPTY_BODIES,
    NESTING_LIMIT,
    STRING_LIMIT,
    Attributes,
    KeyValues,
    Value,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.control_plane.ingest.wire import (
    BadBody,
    check_attribute_count,
    check_no_repeat,
    check_resource_size,
    check_size,
)

Pair = tuple[str, Value]

# A nested value is parsed whole before it is shortened, and takes far more memory than its bytes.
NESTED_BYTES = 64 * 1024
# A host sends the same few attributes over and over: each is decoded once.
_CACHE_ENTRIES = 16_384
_CACHED_SLICE_BYTES = 256
_DOUBLE = Struct("<d").unpack_from


class Pairs(dict[bytes, Pair]):
    """A cache of decoded attributes, by their slice of the body.

    Shared by threads: two that miss the same slice both decode it, to equal pairs.
    """

    def __missing__(self, slice_: bytes) -> Pair:
        pair = read_pair(slice_)
        if len(slice_) <= _CACHED_SLICE_BYTES:
            if len(self) >= _CACHE_ENTRIES:
                self.clear()
            self[slice_] = pair
        return pair


PAIRS = Pairs()


def read_resource(message: bytes) -> Attributes:
    """Read the attributes of a Resource; raises BadBody for unreadable or too many ones."""
    check_size(message)
    try:
        pairs = Resource.FromString(message).attributes
    except DecodeError as broken:
        raise BadBody("a resource is no protobuf message; check the exporter") from broken
    check_resource_size(len(pairs))
    try:
        return {pair.key: read_value(pair.value) for pair in pairs}
    except ItemRejected as error:
        raise BadBody(f"a resource cannot be read: {error.rejection.detail}") from error


def read_attributes(slices: Sequence[bytes]) -> Attributes:
    """Read the attributes of a record or point: within the limit, each key once."""
    size = len(slices)
    check_attribute_count(size)
    attributes = dict(map(PAIRS.__getitem__, slices))
    check_no_repeat(len(attributes), size)
    return attributes


def read_pair(slice_: bytes) -> Pair:
    """Read one KeyValue."""
    usual = _read_usual(slice_)
    if usual is not None:
        return usual
    try:
        if len(slice_) > NESTED_BYTES:
            check_size(slice_)
            _reject_nested(PAIR.FromString(slice_).value)
        pair = common.KeyValue.FromString(slice_)
    except DecodeError as broken:
        raise BadBody("an attribute is no protobuf message; check the exporter") from broken
    return pair.key, read_value(pair.value)


def _read_usual(slice_: bytes) -> Pair | None:
    """Read a short key with a short text, an integer or a double without a message; else None.

    Exporters write these as a tag and a length of one byte each, the key (field 1), then the value
    (field 2) with one field in it, and nothing after it.
    """
    size = len(slice_)
    if not 6 < size < 0x80 or slice_[0] != 0x0A:
        return None
    at = 2 + slice_[1]
    if at + 4 > size or slice_[at] != 0x12 or slice_[at + 1] != size - at - 2:
        return None
    value: Value
    match slice_[at + 2]:
        case 0x0A if slice_[at + 3] == size - at - 4:  # string_value
            value = slice_[at + 4 :]
        case 0x18 if at + 4 == size and slice_[at + 3] < 0x80:  # int_value
            value = slice_[at + 3]
        case 0x18 if at + 5 == size and slice_[at + 3] >= 0x80 > slice_[at + 4]:
            value = slice_[at + 3] & 0x7F | slice_[at + 4] << 7
        case 0x21 if at + 11 == size:  # double_value
            (value,) = _DOUBLE(slice_, at + 3)
        case _:
            return None
    try:
        key = slice_[2:at].decode()
        return key, value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as broken:
        raise BadBody("an attribute is no UTF-8; check the exporter") from broken


def _reject_nested(values: Iterable[bytes]) -> None:
    joined = b"".join(values)
    check_size(joined)
    value = ANY_VALUE.FromString(joined)
    if value.array or value.map:
        raise ItemRejected(RejectReason.UNREADABLE, f"a nested value is over {NESTED_BYTES} bytes")


def is_content(slices: Sequence[bytes]) -> bool:
    """Whether a record's body holds anything."""
    if not slices:
        return False
    joined = b"".join(slices)
    if len(joined) > NESTED_BYTES:
        return True
    try:
        return read_value(common.AnyValue.FromString(joined)) not in EMPTY_BODIES
    except DecodeError as broken:
        raise BadBody("the body of a record is no protobuf message") from broken


def read_value(value: common.AnyValue, depth: int = 0) -> Value:
    """Read one AnyValue; one with nothing set is None."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value[:STRING_LIMIT]
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bool_value":
            return value.bool_value
        case "bytes_value":
            return value.bytes_value[:STRING_LIMIT]
        case "array_value" | "kvlist_value" as kind:
            return _nested(value, kind, depth + 1)
        case _:
            return None


def _nested(value: common.AnyValue, kind: str, depth: int) -> Value:
    if depth > NESTING_LIMIT:
        raise ItemRejected(RejectReason.UNREADABLE, f"a value is nested over {NESTING_LIMIT} deep")
    if kind == "array_value":
        return tuple(read_value(item, depth) for item in value.array_value.values[:ELEMENT_LIMIT])
    pairs = value.kvlist_value.values[:ELEMENT_LIMIT]
    return KeyValues(tuple((pair.key, read_value(pair.value, depth)) for pair in pairs))
