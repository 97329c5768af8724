"""OTLP values: the neutral form that both protobuf and JSON bodies decode to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from guardwave.control_plane.ingest.model.record_templates import RecordBatch
from guardwave.control_plane.ingest.model.rejections import Rejection

ATTRIBUTE_LIMIT = 64
RESOURCE_ATTRIBUTE_LIMIT = 256
# A longer string is shortened, not rejected: hosts put command lines on their Resource.
STRING_LIMIT = 4096
ELEMENT_LIMIT = 256
# Three protobuf messages per level: 30 levels stay under the parser's own 100.
NESTING_LIMIT = 30
NO_RECORDED_VALUE = 1

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class KeyValues:
    """A map as a value. No attribute of the contract is one: it is only searched for content."""

    items: tuple[tuple[str, "Value"], ...]


# None is an AnyValue with nothing set, which SDKs send as `{}`.
Value: TypeAlias = str | bool | int | float | bytes | tuple["Value", ...] | KeyValues | None

Attributes: TypeAlias = Mapping[str, Value]


EMPTY_BODIES: tuple[Value, ...] = (None, "", b"", (), KeyValues(()))


class Temporality(IntEnum):
    """Interval that a point covers: since the last point (delta) or since the start."""

    UNSPECIFIED = 0
    DELTA = 1
    CUMULATIVE = 2


class LogItem(NamedTuple):
    """One log record. Times are nanoseconds since 1970 UTC, 0 when unset.

    `trace_id` has 16 bytes, or none.
    """

    time_ns: int
    observed_time_ns: int
    event_name: str
    attributes: Attributes
    has_body: bool
    trace_id: bytes = b""


class Span(NamedTuple):
    """One span: its status code as OTLP numbers it (0 unset, 1 ok, 2 error), without its message.

    Events and links are not decoded.
    """

    trace_id: bytes
    name: str
    start_ns: int
    end_ns: int
    status_code: int
    attributes: Attributes


class NumberPoint(NamedTuple):
    """One point of a sum. `value` is None when neither the integer nor the double is set."""

    metric: str
    unit: str
    start_ns: int
    time_ns: int
    value: int | float | None
    temporality: Temporality
    is_monotonic: bool
    attributes: Attributes
    has_no_value: bool


class ExponentialBuckets(NamedTuple):
    """Counts of the buckets of an exponential histogram, the first of them number `offset`.

    Bucket b is (g^b, g^(b+1)] with g = 2^(2^-scale); `zeros` counts values about zero. Buckets
    of negative values are not decoded.
    """

    scale: int
    zeros: int
    offset: int
    counts: tuple[int, ...]


class ExplicitBuckets(NamedTuple):
    """Buckets of a histogram with explicit bounds: a count below each bound, and one above all.

    A histogram may have none.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class HistogramPoint(NamedTuple):
    """One point of an explicit or exponential histogram: `events` values that add up to `total`.

    `buckets` are those of an exponential one, `explicit_buckets` those of an explicit one.
    """

    metric: str
    unit: str
    start_ns: int
    time_ns: int
    events: int
    total: float | None
    temporality: Temporality
    is_exponential: bool
    attributes: Attributes
    has_no_value: bool
    buckets: ExponentialBuckets | None = None
    explicit_buckets: ExplicitBuckets = ExplicitBuckets()


class OtherPoint(NamedTuple):
    """A point of a gauge or a summary, which the contract does not use."""

    metric: str
    instrument: str


Point: TypeAlias = NumberPoint | HistogramPoint | OtherPoint


@dataclass(frozen=True, slots=True)
class ScopeLogs:
    """The records of one scope; `skipped` counts the records of a scope that no dialect wants.

    `record_batches` hold the records that matched a known layout, `items` the others, and
    `messages` the bytes of those others, from which layouts may be learned. `all_messages` are the
    bytes of all records, for a reader that cannot take batches.
    """

    name: str
    version: str
    items: tuple[LogItem | Rejection, ...]
    skipped: int = 0
    record_batches: Sequence[RecordBatch] = ()
    messages: Sequence[bytes] = ()
    all_messages: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class ScopeMetrics:
    """The points of one scope; `without_data` counts metrics that hold no data of any kind."""

    name: str
    version: str
    points: tuple[Point | Rejection, ...]
    skipped: int = 0
    without_data: int = 0


@dataclass(frozen=True, slots=True)
class ScopeSpans:
    """The spans of one scope."""

    name: str
    version: str
    spans: tuple[Span | Rejection, ...]
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ResourceLogs:
    """Log records of one process."""

    attributes: Attributes
    scopes: tuple[ScopeLogs, ...]


@dataclass(frozen=True, slots=True)
class ResourceMetrics:
    """Metric points of one process."""

    attributes: Attributes
    scopes: tuple[ScopeMetrics, ...]


@dataclass(frozen=True, slots=True)
class ResourceSpans:
    """Spans of one process."""

    attributes: Attributes
    scopes: tuple[ScopeSpans, ...]
