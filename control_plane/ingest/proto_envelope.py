"""The envelope of OTLP/protobuf: Resources, their scopes, and the slices of the items in them."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from control_plane.ingest.lazy_messages import OF_RESOURCE, OF_SCOPE, REQUEST, Parser
from control_plane.ingest.otlp import Attributes
from control_plane.ingest.proto_size import LARGE, check_size
from control_plane.ingest.proto_values import read_resource
from control_plane.ingest.quota import Quota
from control_plane.ingest.wire import BadBody

M = TypeVar("M")

# The same few processes send all bodies: their Resources and scopes are decoded once.
_REMEMBERED = 1024
_REMEMBERED_BYTES = 4096


class Scope(NamedTuple):
    """One scope, and the slices of its records or metrics."""

    name: str
    version: str
    items: Sequence[bytes]


class OneResource(NamedTuple):
    """One Resource and the scopes that came under it."""

    attributes: Attributes
    scopes: Iterator[Scope]


def read_envelope(body: bytes, quota: Quota) -> Iterator[OneResource]:
    """Split a body into its Resources and scopes, none of whose items is parsed yet.

    The scopes of one Resource are to be read before the next. Raises BadBody and TooLarge.
    """
    resources = parse(REQUEST, body).resources
    quota.wrap(len(resources))
    for raw in resources:
        entry = parse(OF_RESOURCE, raw)
        quota.wrap(len(entry.scopes))
        yield OneResource(_resource(entry.resource), map(_scope, entry.scopes))


def parse(parser: Parser[M], message: bytes) -> M:
    """Parse one message.

    Raises:
        BadBody: it is none.
        TooLarge: it holds more fields than any exporter's.
    """
    if len(message) > LARGE:
        check_size(message)
    try:
        return parser.FromString(message)
    except DecodeError as broken:
        raise BadBody(
            f"{len(message)} bytes of the body are no OTLP/protobuf; check the exporter"
        ) from broken


def _scope(raw: bytes) -> Scope:
    entry = parse(OF_SCOPE, raw)
    joined = _joined(entry.scope)
    read = _known_scope if len(joined) <= _REMEMBERED_BYTES else _read_scope
    return Scope(*read(joined), entry.items[:])


def _resource(slices: Sequence[bytes]) -> Attributes:
    joined = _joined(slices)
    read = _known_resource if len(joined) <= _REMEMBERED_BYTES else read_resource
    return read(joined)


def _joined(slices: Sequence[bytes]) -> bytes:
    return slices[0] if len(slices) == 1 else b"".join(slices)


def _read_scope(message: bytes) -> tuple[str, str]:
    scope = parse(InstrumentationScope, message)
    return scope.name, scope.version


_known_resource = lru_cache(_REMEMBERED)(read_resource)
_known_scope = lru_cache(_REMEMBERED)(_read_scope)
