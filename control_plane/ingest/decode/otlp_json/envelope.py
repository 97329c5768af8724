"""Envelope of OTLP/JSON: objects, Resources and scopes; a fault in it rejects the body."""

from collections.abc import Sequence

import orjson

from guardwave.control_plane.ingest.decode.otlp_json import values as scalar
from guardwave.control_plane.ingest.decode.otlp_json.values import Object, read_pair
from guardwave.control_plane.ingest.model.otlp_values import Attributes
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.ingest.wire import BadBody, Quota, TooLarge, check_resource_size

# A larger body may hold ten thousand records with sixteen attributes each, but not the millions of
# empty objects that would take a hundred times its size in memory. A smaller one is not counted.
LARGE = 1024 * 1024
MOST_PARTS = 1_000_000


def load(body: bytes) -> Object:
    """Return the object that a body holds; an empty body is an empty object.

    Raises:
        BadBody: the body is no object.
        TooLarge: it holds more parts than any exporter sends.
    """
    if not body:
        return {}
    _check_size(body)
    try:
        return expect_object(orjson.loads(body), "the body")
    except orjson.JSONDecodeError as broken:
        raise BadBody(f"the body is not JSON: {broken}") from broken


def _check_size(body: bytes) -> None:
    # the brackets and commas of texts are counted too: an upper bound is enough, and cheap
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
    """Return the objects of an array of wrappers; raises BadBody and TooLarge."""
    items = read_array(holder, key)
    quota.count_wrappers(len(items))
    return [expect_object(item, f"an entry of {key}") for item in items]


def read_array(holder: Object, key: str) -> Sequence[object]:
    """Return an array of the envelope, empty when it is missing; raises BadBody."""
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
    except ItemRejected as error:
        raise BadBody(f"a resource cannot be read: {error.rejection.detail}") from error


def read_scope(holder: Object) -> tuple[str, str]:
    """Return name and version of the scope; raises BadBody."""
    raw = holder.get("scope")
    scope = {} if raw is None else expect_object(raw, "scope")
    try:
        return (
            scalar.text(scope.get("name"), "scope.name"),
            scalar.text(scope.get("version"), "scope.version"),
        )
    except ItemRejected as error:
        raise BadBody(f"a scope cannot be read: {error.rejection.detail}") from error
