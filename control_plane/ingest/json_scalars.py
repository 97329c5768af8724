"""The scalars of OTLP/JSON: proto3 JSON with OTLP's own rules for ids, enums and integers."""

import base64
import binascii
import re

from control_plane.ingest.fields import quoted
from control_plane.ingest.otlp import INT64_MAX, INT64_MIN, UINT64_MAX
from control_plane.ingest.rejections import Refusal, RejectReason

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")
_HEX = re.compile(r"[0-9a-fA-F]*")
_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,80}")
_OURS = frozenset({"a data point", "a log record", "a span", "an attribute's key"})


def unreadable(field: str, value: object, wanted: str) -> Refusal:
    """Return the refusal of one item, naming field, value and what is wanted instead.

    The key of an attribute is told as what it is, unless it is a name.
    """
    named = field if field in _OURS or _NAME.fullmatch(field) else "an attribute"
    return Refusal(RejectReason.UNREADABLE, f"{named} is {quoted(value)}, not {wanted}")


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
    """Read an enum, which OTLP/JSON allows as a number only; names are refused."""
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
