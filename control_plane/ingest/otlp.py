"""OTLP's content as neutral values: what protobuf and JSON bodies both decode to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from control_plane.ingest.rejections import Rejected
from control_plane.ingest.wordings import Run

ATTRIBUTE_LIMIT = 64
RESOURCE_ATTRIBUTE_LIMIT = 256
# What is longer is cut, not refused: hosts put command lines on their Resource.
STRING_LIMIT = 4096
ELEMENT_LIMIT = 256
# Three protobuf messages per level: 30 levels stay under the parser's own 100.
NESTING_LIMIT = 30
NO_RECORDED_VALUE = 1

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class KeyValues:
    """A map as an attribute's value; no contract attribute is one, so it is only looked through."""

    items: tuple[tuple[str, "Value"], ...]


# None is an AnyValue with nothing set, which SDKs send as `{}`.
Value: TypeAlias = str | bool | int | float | bytes | tuple["Value", ...] | KeyValues | None

Attributes: TypeAlias = Mapping[str, Value]


EMPTY_BODIES: tuple[Value, ...] = (None, "", b"", (), KeyValues(()))


class Temporality(IntEnum):
    """Whether a point tells what came since the last one (delta) or since the start."""

    UNSPECIFIED = 0
    DELTA = 1
    CUMULATIVE = 2


class LogItem(NamedTuple):
    """One log record. Times are nanoseconds since 1970 UTC, 0 when unset.

    `trace_id` is 16 bytes, or none.
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


class Buckets(NamedTuple):
    """The buckets of an exponential histogram: how many values lie in each, from `offset` on.

    Bucket b is (g^b, g^(b+1)] with g = 2^(2^-scale); `zeros` counts those of about zero. Buckets
    of negative values are not decoded.
    """

    scale: int
    zeros: int
    offset: int
    counts: tuple[int, ...]


class Bounded(NamedTuple):
    """The buckets of a histogram with bounds of its own: one count below each, and one above all.

    A histogram may come without any.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class HistogramPoint(NamedTuple):
    """One point of an explicit or exponential histogram: `events` values that add up to `total`.

    `buckets` are those of an exponential one, `bounded` those of an explicit one.
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
    buckets: Buckets | None = None
    bounded: Bounded = Bounded()


class OtherPoint(NamedTuple):
    """A point of a gauge or a summary, which the contract does not use."""

    metric: str
    instrument: str


Point: TypeAlias = NumberPoint | HistogramPoint | OtherPoint


@dataclass(frozen=True, slots=True)
class ScopeLogs:
    """The records of one scope; `skipped` counts those of a scope nobody asked for.

    `runs` are those that say what earlier ones said, and `whole` all records as they came, those of
    runs too. `messages` are the items as they came, where others may come that say the same.
    """

    name: str
    version: str
    items: tuple[LogItem | Rejected, ...]
    skipped: int = 0
    runs: Sequence[Run] = ()
    messages: Sequence[bytes] = ()
    whole: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class ScopeMetrics:
    """The points of one scope; `without_data` counts metrics that hold nothing at all."""

    name: str
    version: str
    points: tuple[Point | Rejected, ...]
    skipped: int = 0
    without_data: int = 0


@dataclass(frozen=True, slots=True)
class ScopeSpans:
    """The spans of one scope."""

    name: str
    version: str
    spans: tuple[Span | Rejected, ...]
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ResourceLogs:
    """What one process logged."""

    attributes: Attributes
    scopes: tuple[ScopeLogs, ...]


@dataclass(frozen=True, slots=True)
class ResourceMetrics:
    """What one process measured."""

    attributes: Attributes
    scopes: tuple[ScopeMetrics, ...]


@dataclass(frozen=True, slots=True)
class ResourceSpans:
    """What one process traced."""

    attributes: Attributes
    scopes: tuple[ScopeSpans, ...]
