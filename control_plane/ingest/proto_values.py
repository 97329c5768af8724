"""AnyValue and attribute lists of OTLP/protobuf; a fault gives up one item, not the body."""

from collections.abc import Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from control_plane.ingest.otlp import (
    ELEMENT_LIMIT,
    NESTING_LIMIT,
    STRING_LIMIT,
    Attributes,
    KeyValues,
    Value,
)
from control_plane.ingest.quota import (
    check_attribute_count,
    check_no_repeat,
    check_resource_size,
)
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.ingest.wire import BadBody


def read_resource(pairs: Sequence[KeyValue]) -> Attributes:
    """Read the attributes of a Resource; raises BadBody when they cannot be read, or are many."""
    check_resource_size(len(pairs))
    try:
        return {pair.key: read_value(pair.value) for pair in pairs}
    except Refusal as refusal:
        raise BadBody(f"a resource cannot be read: {refusal.rejected.detail}") from refusal


def read_attributes(pairs: Sequence[KeyValue]) -> Attributes:
    """Read the attributes of a record or point: within the limit, each key once."""
    count = len(pairs)
    check_attribute_count(count)
    attributes = {pair.key: read_value(pair.value) for pair in pairs}
    check_no_repeat(len(attributes), count)
    return attributes


def read_value(value: AnyValue, depth: int = 0) -> Value:
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


def _nested(value: AnyValue, kind: str, depth: int) -> Value:
    if depth > NESTING_LIMIT:
        raise Refusal(RejectReason.UNREADABLE, f"a value is nested over {NESTING_LIMIT} deep")
    if kind == "array_value":
        return tuple(read_value(item, depth) for item in value.array_value.values[:ELEMENT_LIMIT])
    pairs = value.kvlist_value.values[:ELEMENT_LIMIT]
    return KeyValues(tuple((pair.key, read_value(pair.value, depth)) for pair in pairs))
