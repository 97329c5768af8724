"""Values of OTLP/JSON: AnyValue and attributes; a fault rejects one item, not the body."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence

from guardwave.control_plane.ingest.contract import quoted
from guardwave.control_plane.ingest.model.otlp_values import (
    ELEMENT_LIMIT,
    INT64_MAX,
    INT64_MIN,
    NESTING_LIMIT,
    STRING_LIMIT,
    UINT64_MAX,
    Attributes,
    KeyValues,
    Value,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.control_plane.ingest.wire import check_attribute_count, check_no_repeat

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")
_HEX = re.compile(r"[0-9a-fA-F]*")
_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,80}")
_DESCRIPTIONS = frozenset({"a data point", "a log record", "a span", "an attribute's key"})


def unreadable(field: str, value: object, wanted: str) -> ItemRejected:
    """Return the rejection of one item, naming the field, the value and what is wanted instead.

    A key of an attribute that may be content is shown as "an attribute".
    """
    shown = field if field in _DESCRIPTIONS or _NAME.fullmatch(field) else "an attribute"
    return ItemRejected(RejectReason.UNREADABLE, f"{shown} is {quoted(value)}, not {wanted}")


def integer(raw: object, field: str, *, low: int, high: int) -> int:
    """Read an integer, 0 when unset. Both `"12"` and `12` occur: SDKs disagree (proto3 JSON)."""
    if raw is None:
        return 0
    number: int | None = None
    if isinstance(raw, str):
        number = int(raw) if _WHOLE.fullmatch(raw) else None
    elif isinstance(raw, float):
        number = int(raw) if raw.is_integer() else None
    elif isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    if number is None or not low <= number <= high:
        raise unreadable(field, raw, f"a whole number from {low} to {high}")
    return number


def unsigned(raw: object, field: str) -> int:
    """Read an unsigned 64-bit integer, 0 when unset."""
    return integer(raw, field, low=0, high=UINT64_MAX)


def signed(raw: object, field: str) -> int:
    """Read a signed 64-bit integer, 0 when unset."""
    return integer(raw, field, low=INT64_MIN, high=INT64_MAX)


def enum(raw: object, field: str) -> int:
    """Read an enum, which OTLP/JSON allows as a number only; names are rejected."""
    if raw is not None and (isinstance(raw, bool) or not isinstance(raw, int)):
        raise unreadable(field, raw, "a number (OTLP/JSON allows no enum names)")
    return integer(raw, field, low=-(2**31), high=2**31 - 1)


def double(raw: object, field: str) -> float:
    """Read a double: a number, a number as string, or NaN and the infinities as words."""
    if isinstance(raw, str):
        if raw in _NON_FINITE:
            return _NON_FINITE[raw]
        if _DECIMAL.fullmatch(raw):
            return float(raw)
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise unreadable(field, raw, "a number")


def text(raw: object, field: str) -> str:
    """Read a string, empty when unset."""
    if raw is None:
        return ""
    if not isinstance(raw, str):
        raise unreadable(field, raw, "a string")
    return raw


def boolean(raw: object, field: str) -> bool:
    """Read true or false, false when unset."""
    if raw is None:
        return False
    if not isinstance(raw, bool):
        raise unreadable(field, raw, "true or false")
    return raw


def octets(raw: object, field: str) -> bytes:
    """Read bytes from base64, of either alphabet, padded or not (proto3 JSON)."""
    encoded = text(raw, field).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise unreadable(field, raw, "base64") from None


def hex_id(raw: object, field: str, *, size: int) -> bytes:
    """Read an id of `size` bytes, in hex of either case; none when unset."""
    digits = text(raw, field)
    if digits and not (len(digits) == 2 * size and _HEX.fullmatch(digits)):
        raise unreadable(field, raw, f"{2 * size} hex digits (OTLP/JSON ids are not base64)")
    return bytes.fromhex(digits)


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
    """Return the object, or reject its item."""
    if not isinstance(raw, dict):
        raise unreadable(what, raw, "an object")
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
    key = text(pair.get("key"), "an attribute's key")
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
        raise unreadable(field, raw, "one value")
    return found


def _read_content(kind: str, content: object, field: str, depth: int) -> Value:
    match kind:
        case "stringValue":
            return text(content, field)[:STRING_LIMIT]
        case "intValue":
            return signed(content, field)
        case "doubleValue":
            return double(content, field)
        case "boolValue":
            return boolean(content, field)
        case "bytesValue":
            return octets(content, field)[:STRING_LIMIT]
        case _:
            return _read_nested(kind, content, field, depth + 1)


def _read_nested(kind: str, content: object, field: str, depth: int) -> Value:
    if depth > NESTING_LIMIT:
        raise ItemRejected(RejectReason.UNREADABLE, f"a value is nested over {NESTING_LIMIT} deep")
    values = _read_array(read_object(content, field).get("values"), field)[:ELEMENT_LIMIT]
    if kind == "arrayValue":
        return tuple(None if item is None else read_value(item, field, depth) for item in values)
    return KeyValues(tuple(read_pair(item, depth) for item in values))


def _read_array(raw: object, field: str) -> Sequence[object]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise unreadable(field, raw, "an array")
    return raw
