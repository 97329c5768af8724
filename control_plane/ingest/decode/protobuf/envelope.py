"""Envelope of OTLP/protobuf: Resources, their scopes, and the slices of their items."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from guardwave.control_plane.ingest.decode.protobuf.lazy_messages import (
    OF_RESOURCE,
    OF_SCOPE,
    REQUEST,
    Parser,
)
from guardwave.control_plane.ingest.decode.protobuf.values import read_resource
from guardwave.control_plane.ingest.model.otlp_values import Attributes
from guardwave.control_plane.ingest.wire import LARGE, BadBody, Quota, check_size

M = TypeVar("M")

# The same few processes send most bodies: their Resources and scopes are decoded once.
_CACHE_ENTRIES = 1024
_CACHED_SLICE_BYTES = 4096


class Scope(NamedTuple):
    """One scope, and the slices of its records or metrics."""

    name: str
    version: str
    items: Sequence[bytes]


class ResourceEntry(NamedTuple):
    """One Resource and its scopes."""

    attributes: Attributes
    scopes: Iterator[Scope]


def read_envelope(body: bytes, quota: Quota) -> Iterator[ResourceEntry]:
    """Split a body into its Resources and scopes, with unparsed items.

    Read the scopes of one Resource before the next Resource. Raises BadBody and TooLarge.
    """
    resources = parse(REQUEST, body).resources
    quota.count_wrappers(len(resources))
    for raw in resources:
        entry = parse(OF_RESOURCE, raw)
        quota.count_wrappers(len(entry.scopes))
        yield ResourceEntry(_resource(entry.resource), map(_scope, entry.scopes))


def parse(parser: Parser[M], message: bytes) -> M:
    """Parse one message.

    Raises:
        BadBody: the bytes are no such message.
        TooLarge: it holds more fields than any exporter sends.
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
    read = _read_scope_cached if len(joined) <= _CACHED_SLICE_BYTES else _read_scope
    return Scope(*read(joined), entry.items[:])


def _resource(slices: Sequence[bytes]) -> Attributes:
    joined = _joined(slices)
    read = _read_resource_cached if len(joined) <= _CACHED_SLICE_BYTES else read_resource
    return read(joined)


def _joined(slices: Sequence[bytes]) -> bytes:
    return slices[0] if len(slices) == 1 else b"".join(slices)


def _read_scope(message: bytes) -> tuple[str, str]:
    scope = parse(InstrumentationScope, message)
    return scope.name, scope.version


_read_resource_cached = lru_cache(_CACHE_ENTRIES)(read_resource)
_read_scope_cached = lru_cache(_CACHE_ENTRIES)(_read_scope)
