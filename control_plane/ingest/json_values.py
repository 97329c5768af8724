"""AnyValue and attribute lists of OTLP/JSON; a fault gives up one item, not the body."""

from collections.abc import Mapping, Sequence

from control_plane.ingest import json_scalars as scalar
from control_plane.ingest.otlp import (
    ELEMENT_LIMIT,
    NESTING_LIMIT,
    STRING_LIMIT,
    Attributes,
    KeyValues,
    Value,
)
from control_plane.ingest.quota import check_attribute_count, check_no_repeat
from control_plane.ingest.rejections import Refusal, RejectReason

Object = Mapping[str, object]

_KINDS = frozenset(
    {
        "stringValue",
        "boolValue",
        "intValue",
        "doubleValue",
        "arrayValue",
        "kvlistValue",
        "bytesValue",
    }
)


def read_object(raw: object, what: str) -> Object:
    """Return the object, or refuse the item it belongs to."""
    if not isinstance(raw, dict):
        raise scalar.unreadable(what, raw, "an object")
    return raw


def read_attributes(holder: Object) -> Attributes:
    """Read the attributes of a record or point: within the limit, each key once."""
    pairs = _read_array(holder.get("attributes"), "attributes")
    check_attribute_count(len(pairs))
    attributes = dict(read_pair(raw) for raw in pairs)
    check_no_repeat(len(attributes), len(pairs))
    return attributes


def read_pair(raw: object, depth: int = 0) -> tuple[str, Value]:
    """Read one KeyValue."""
    pair = read_object(raw, "an attribute")
    key = scalar.text(pair.get("key"), "an attribute's key")
    value = pair.get("value")
    return key, None if value is None else read_value(value, key, depth)


def read_value(raw: object, field: str, depth: int = 0) -> Value:
    """Read one AnyValue; `{}` is an unset one, and None."""
    found: Value = None
    count = 0
    for kind, content in read_object(raw, field).items():
        if content is not None and kind in _KINDS:
            count += 1
            found = _read_content(kind, content, field, depth)
    if count > 1:
        raise scalar.unreadable(field, raw, "one value")
    return found


def _read_content(kind: str, content: object, field: str, depth: int) -> Value:
    match kind:
        case "stringValue":
            return scalar.text(content, field)[:STRING_LIMIT]
        case "intValue":
            return scalar.signed(content, field)
        case "doubleValue":
            return scalar.double(content, field)
        case "boolValue":
            return scalar.boolean(content, field)
        case "bytesValue":
            return scalar.octets(content, field)[:STRING_LIMIT]
        case _:
            return _read_nested(kind, content, field, depth + 1)


def _read_nested(kind: str, content: object, field: str, depth: int) -> Value:
    if depth > NESTING_LIMIT:
        raise Refusal(RejectReason.UNREADABLE, f"a value is nested over {NESTING_LIMIT} deep")
    values = _read_array(read_object(content, field).get("values"), field)[:ELEMENT_LIMIT]
    if kind == "arrayValue":
        return tuple(None if item is None else read_value(item, field, depth) for item in values)
    return KeyValues(tuple(read_pair(item, depth) for item in values))


def _read_array(raw: object, field: str) -> Sequence[object]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise scalar.unreadable(field, raw, "an array")
    return raw
