"""Lazy messages: OTLP's protobuf messages with their inner messages left as bytes.

The wire format is the same: a field of a message type and one of type `bytes` are both a length
and that many bytes (Protocol Buffers Encoding, Length-Delimited Records). The parser steps over a
field that is declared as bytes here; equal slices mean equal content and are decoded once.

A field that is singular in the published schema is repeated here. Where a sender wrote it twice,
its joined slices are the merged message (Encoding, Last One Wins).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

M_co = TypeVar("M_co", covariant=True)

_PACKAGE = "guardwave.lazy"
_ONCE, _MANY = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
_FIXED64 = (FieldDescriptorProto.TYPE_FIXED64, _ONCE)
_TEXT = (FieldDescriptorProto.TYPE_STRING, _ONCE)
_OCTETS = (FieldDescriptorProto.TYPE_BYTES, _ONCE)
_NUMBER = (FieldDescriptorProto.TYPE_INT32, _ONCE)
_FLAG = (FieldDescriptorProto.TYPE_BOOL, _ONCE)
_SLICES = (FieldDescriptorProto.TYPE_BYTES, _MANY)
_SFIXED64 = (FieldDescriptorProto.TYPE_SFIXED64, _ONCE)
_SINT32 = (FieldDescriptorProto.TYPE_SINT32, _ONCE)
_COUNTS = (FieldDescriptorProto.TYPE_UINT64, _MANY)
_UINT32 = (FieldDescriptorProto.TYPE_UINT32, _ONCE)
_DOUBLE = (FieldDescriptorProto.TYPE_DOUBLE, _ONCE)
_DOUBLES = (FieldDescriptorProto.TYPE_DOUBLE, _MANY)
_MANY_FIXED64 = (FieldDescriptorProto.TYPE_FIXED64, _MANY)

# For each message: our name of a field, its number in the published schema, and its type.
_FIELDS: Mapping[str, Sequence[tuple[str, int, tuple[int, int]]]] = {
    "Request": (("resources", 1, _SLICES),),
    "OfResource": (("resource", 1, _SLICES), ("scopes", 2, _SLICES)),
    "OfScope": (("scope", 1, _SLICES), ("items", 2, _SLICES)),
    "Record": (
        ("time_ns", 1, _FIXED64),
        ("body", 5, _SLICES),
        ("attributes", 6, _SLICES),
        ("trace_id", 9, _OCTETS),
        ("observed_time_ns", 11, _FIXED64),
        ("event_name", 12, _TEXT),
    ),
    "Metric": (
        ("name", 1, _TEXT),
        ("unit", 3, _TEXT),
        ("gauge", 5, _OCTETS),
        ("sum", 7, _OCTETS),
        ("histogram", 9, _OCTETS),
        ("exponential_histogram", 10, _OCTETS),
        ("summary", 11, _OCTETS),
    ),
    "Series": (("points", 1, _SLICES), ("temporality", 2, _NUMBER), ("is_monotonic", 3, _FLAG)),
    "NumberPoint": (
        ("start_ns", 2, _FIXED64),
        ("time_ns", 3, _FIXED64),
        ("as_double", 4, _DOUBLE),
        ("as_int", 6, _SFIXED64),
        ("attributes", 7, _SLICES),
        ("flags", 8, _UINT32),
    ),
    "ExplicitPoint": (
        ("start_ns", 2, _FIXED64),
        ("time_ns", 3, _FIXED64),
        ("count", 4, _FIXED64),
        ("sum", 5, _DOUBLE),
        ("counts", 6, _MANY_FIXED64),
        ("bounds", 7, _DOUBLES),
        ("attributes", 9, _SLICES),
        ("flags", 10, _UINT32),
    ),
    "ExponentialPoint": (
        ("attributes", 1, _SLICES),
        ("start_ns", 2, _FIXED64),
        ("time_ns", 3, _FIXED64),
        ("count", 4, _FIXED64),
        ("sum", 5, _DOUBLE),
        ("scale", 6, _SINT32),
        ("zero_count", 7, _FIXED64),
        ("positive", 8, _SLICES),
        ("flags", 10, _UINT32),
    ),
    "Buckets": (("offset", 1, _SINT32), ("counts", 2, _COUNTS)),
    "Span": (
        ("trace_id", 1, _OCTETS),
        ("name", 5, _TEXT),
        ("start_ns", 7, _FIXED64),
        ("end_ns", 8, _FIXED64),
        ("attributes", 9, _SLICES),
        ("status", 15, _SLICES),
    ),
    "Pair": (("value", 2, _SLICES),),
    "AnyValue": (("array", 5, _SLICES), ("map", 6, _SLICES)),
}
# Fields of which a sender sets at most one; WhichOneof("value") returns which.
_ONE_OF: Mapping[str, AbstractSet[str]] = {
    "Metric": {"gauge", "sum", "histogram", "exponential_histogram", "summary"},
    "NumberPoint": {"as_double", "as_int"},
    "ExplicitPoint": {"sum"},
    "ExponentialPoint": {"sum"},
}


class Parser(Protocol[M_co]):
    """The part of a message class that is used here."""

    def FromString(self, body: bytes, /) -> M_co:  # noqa: N802  # protobuf's name
        """Return the message; raises google.protobuf.message.DecodeError."""
        ...


class Request(Protocol):
    """An Export*ServiceRequest."""

    resources: Sequence[bytes]


class OfResource(Protocol):
    """ResourceLogs, ResourceMetrics or ResourceSpans."""

    resource: Sequence[bytes]
    scopes: Sequence[bytes]


class OfScope(Protocol):
    """ScopeLogs, ScopeMetrics or ScopeSpans."""

    scope: Sequence[bytes]
    items: Sequence[bytes]


class Record(Protocol):
    """LogRecord."""

    time_ns: int
    observed_time_ns: int
    event_name: str
    trace_id: bytes
    body: Sequence[bytes]
    attributes: Sequence[bytes]


class OneOf(Protocol):
    """A message with a oneof of the name `value`."""

    def WhichOneof(self, name: str, /) -> str | None:  # noqa: N802  # protobuf's name
        """Return which of its fields is set."""
        ...

    def ByteSize(self) -> int:  # noqa: N802  # protobuf's name
        """Return how many bytes the message takes when protobuf writes it.

        A singular field that was written twice counts once.
        """
        ...


class Metric(OneOf, Protocol):
    """Metric: `value` names which of the five kinds of data a sender set."""

    name: str
    unit: str


class Series(Protocol):
    """Gauge, Sum, Histogram, ExponentialHistogram or Summary."""

    points: Sequence[bytes]
    temporality: int
    is_monotonic: bool


class NumberPoint(OneOf, Protocol):
    """NumberDataPoint."""

    start_ns: int
    time_ns: int
    as_double: float
    as_int: int
    attributes: Sequence[bytes]
    flags: int


class HistogramPoint(OneOf, Protocol):
    """HistogramDataPoint or ExponentialHistogramDataPoint, without the buckets."""

    start_ns: int
    time_ns: int
    count: int
    sum: float
    attributes: Sequence[bytes]
    flags: int


class ExplicitPoint(HistogramPoint, Protocol):
    """HistogramDataPoint, with its buckets."""

    counts: Sequence[int]
    bounds: Sequence[float]


class ExponentialPoint(HistogramPoint, Protocol):
    """ExponentialHistogramDataPoint, with the buckets above zero."""

    scale: int
    zero_count: int
    positive: Sequence[bytes]


class ExponentialBuckets(Protocol):
    """ExponentialHistogramDataPoint.Buckets."""

    offset: int
    counts: Sequence[int]


class Span(Protocol):
    """Span, without its events and links."""

    trace_id: bytes
    name: str
    start_ns: int
    end_ns: int
    attributes: Sequence[bytes]
    status: Sequence[bytes]


class Pair(Protocol):
    """KeyValue, with its value left as bytes."""

    value: Sequence[bytes]


class AnyValue(Protocol):
    """AnyValue, with nested values left as bytes."""

    array: Sequence[bytes]
    map: Sequence[bytes]


def _pool() -> DescriptorPool:
    file = FileDescriptorProto(name="guardwave/lazy.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _FIELDS.items():
        declared = file.message_type.add(name=message)
        one_of = _ONE_OF.get(message, frozenset())
        if one_of:
            declared.oneof_decl.add(name="value")
        for name, number, (kind, label) in fields:
            field = declared.field.add(name=name, number=number, type=kind, label=label)
            if name in one_of:
                field.oneof_index = 0
    pool = DescriptorPool()
    pool.Add(file)
    return pool


def _parser(message: str) -> Parser[M_co]:
    # its fields exist at run time only
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{message}"))  # type: ignore[return-value]  # as above


_POOL = _pool()
REQUEST: Parser[Request] = _parser("Request")
OF_RESOURCE: Parser[OfResource] = _parser("OfResource")
OF_SCOPE: Parser[OfScope] = _parser("OfScope")
RECORD: Parser[Record] = _parser("Record")
METRIC: Parser[Metric] = _parser("Metric")
SERIES: Parser[Series] = _parser("Series")
NUMBER_POINT: Parser[NumberPoint] = _parser("NumberPoint")
EXPLICIT_POINT: Parser[ExplicitPoint] = _parser("ExplicitPoint")
EXPONENTIAL_POINT: Parser[ExponentialPoint] = _parser("ExponentialPoint")
BUCKETS: Parser[ExponentialBuckets] = _parser("Buckets")
SPAN: Parser[Span] = _parser("Span")
PAIR: Parser[Pair] = _parser("Pair")
ANY_VALUE: Parser[AnyValue] = _parser("AnyValue")
