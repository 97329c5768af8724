"""The envelope of OTLP/JSON: what a fault in it costs is the whole body."""

from collections.abc import Sequence

import orjson

from control_plane.ingest import json_scalars as scalar
from control_plane.ingest.json_values import Object, read_pair
from control_plane.ingest.otlp import Attributes
from control_plane.ingest.quota import Quota, check_resource_size
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wire import BadBody, TooLarge

# Below it nothing is counted. Above it a body may hold ten thousand records with sixteen attributes
# each, and not the millions of empty objects that would take a hundred times its size.
LARGE = 1024 * 1024
MOST_PARTS = 1_000_000


def load(body: bytes) -> Object:
    """Return the object that a body is; an empty one is empty.

    Raises:
        BadBody: it is no object.
        TooLarge: it holds more parts than any exporter's.
    """
    if not body:
        return {}
    _check_size(body)
    try:
        return expect_object(orjson.loads(body), "the body")
    except orjson.JSONDecodeError as broken:
        raise BadBody(f"the body is not JSON: {broken}") from broken


def _check_size(body: bytes) -> None:
    # what stands in texts is counted too: an upper bound is enough, and costs a look at each byte
    if len(body) > LARGE and sum(map(body.count, (b"{", b"[", b","))) > MOST_PARTS:
        raise TooLarge(
            f"a body of {len(body)} bytes holds more than {MOST_PARTS} JSON parts; "
            "lower the exporter's batch size"
        )


def expect_object(raw: object, where: str) -> Object:
    """Return the object, or raise BadBody."""
    if not isinstance(raw, dict):
        raise BadBody(f"{where} is {_kind_of(raw)}, not an object; send OTLP/JSON")
    return raw


def read_objects(holder: Object, key: str, quota: Quota) -> list[Object]:
    """Return the objects of an array that items are wrapped in; raises BadBody and TooLarge."""
    items = read_array(holder, key)
    quota.wrap(len(items))
    return [expect_object(item, f"an entry of {key}") for item in items]


def read_array(holder: Object, key: str) -> Sequence[object]:
    """Return an array of the envelope, empty when it is not there; raises BadBody."""
    raw = holder.get(key)
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise BadBody(f"{key} is {_kind_of(raw)}, not an array; send OTLP/JSON")
    return raw


def _kind_of(raw: object) -> str:
    words = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if raw is None else words.get(type(raw), "a number")


def read_resource(entry: Object) -> Attributes:
    """Return the attributes of an entry's Resource; raises BadBody."""
    resource = entry.get("resource")
    if resource is None:
        return {}
    pairs = read_array(expect_object(resource, "resource"), "attributes")
    check_resource_size(len(pairs))
    try:
        return dict(read_pair(item) for item in pairs)
    except Refusal as refusal:
        raise BadBody(f"a resource cannot be read: {refusal.rejected.detail}") from refusal


def read_scope(holder: Object) -> tuple[str, str]:
    """Return name and version of the scope; raises BadBody."""
    raw = holder.get("scope")
    scope = {} if raw is None else expect_object(raw, "scope")
    try:
        return (
            scalar.text(scope.get("name"), "scope.name"),
            scalar.text(scope.get("version"), "scope.version"),
        )
    except Refusal as refusal:
        raise BadBody(f"a scope cannot be read: {refusal.rejected.detail}") from refusal
