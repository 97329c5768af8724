"""Metrics and their points from protobuf, most points without a message of their own."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire

from control_plane.ingest import lazy_messages as lazy
from control_plane.ingest.otlp import (
    NO_RECORDED_VALUE,
    Attributes,
    HistogramPoint,
    NumberPoint,
    OtherPoint,
    Point,
    Temporality,
)
from control_plane.ingest.proto_envelope import parse
from control_plane.ingest.proto_values import read_attributes
from control_plane.ingest.rejections import Refusal, Rejected

_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")

# How exporters begin a number point: field 2, start; field 3, time; field 6 or 4, its value. Each
# is a tag and eight bytes, little endian; attributes and flags follow.
_START, _TIME = 0x11, 0x19
_INT_POINT, _DOUBLE_POINT = Struct("<xQxQxq"), Struct("<xQxQxd")
_HEAD_BYTES = 27
_REMEMBERED = 4096
_REMEMBERED_BYTES = 2048


class Tail(NamedTuple):
    """What follows the value of a point."""

    attributes: Attributes
    has_no_value: bool


class Metric(NamedTuple):
    """One metric and the slices of its points."""

    name: str
    unit: str
    kind: str
    temporality: Temporality
    is_monotonic: bool
    points: list[bytes]

    def read(self) -> Iterator[Point | Rejected]:
        """Return the points; raises BadBody for a slice that is none."""
        match self.kind:
            case "sum":
                return map(self._number, self.points)
            case "histogram":
                return map(self._histogram, self.points)
            case "exponential_histogram":
                return map(self._exponential, self.points)
            case kind:
                return (OtherPoint(self.name, kind) for _ in self.points)

    def _number(self, slice_: bytes) -> NumberPoint | Rejected:
        head = _read_head(slice_)
        if head is None:
            return self._any_number(slice_)
        start_ns, time_ns, value, tail = head
        return NumberPoint(
            self.name,
            self.unit,
            start_ns,
            time_ns,
            value,
            self.temporality,
            self.is_monotonic,
            tail.attributes,
            tail.has_no_value,
        )

    def _any_number(self, slice_: bytes) -> NumberPoint | Rejected:
        point = parse(lazy.NUMBER_POINT, slice_)
        value: int | float | None = None
        match point.WhichOneof("value"):
            case "as_int":
                value = point.as_int
            case "as_double":
                value = point.as_double
        try:
            return NumberPoint(
                self.name,
                self.unit,
                point.start_ns,
                point.time_ns,
                value,
                self.temporality,
                self.is_monotonic,
                read_attributes(point.attributes),
                bool(point.flags & NO_RECORDED_VALUE),
            )
        except Refusal as refusal:
            return refusal.rejected

    def _histogram(self, slice_: bytes) -> HistogramPoint | Rejected:
        return self._any_histogram(parse(lazy.HISTOGRAM_POINT, slice_), is_exponential=False)

    def _exponential(self, slice_: bytes) -> HistogramPoint | Rejected:
        return self._any_histogram(parse(lazy.EXPONENTIAL_POINT, slice_), is_exponential=True)

    def _any_histogram(
        self, point: lazy.HistogramPoint, *, is_exponential: bool
    ) -> HistogramPoint | Rejected:
        try:
            return HistogramPoint(
                self.name,
                self.unit,
                point.start_ns,
                point.time_ns,
                point.count,
                point.sum if point.WhichOneof("value") else None,
                self.temporality,
                is_exponential,
                read_attributes(point.attributes),
                bool(point.flags & NO_RECORDED_VALUE),
            )
        except Refusal as refusal:
            return refusal.rejected


class _Tails(dict[bytes, Tail | None]):
    """What was read of the same bytes before; None for those that are to be read with their head.

    Attribute sets of counters repeat from export to export.
    """

    def __missing__(self, slice_: bytes) -> Tail | None:
        tail = _read_tail(slice_)
        if len(slice_) <= _REMEMBERED_BYTES:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[slice_] = tail
        return tail


_TAILS = _Tails()


def _read_head(slice_: bytes) -> tuple[int, int, int | float, Tail] | None:
    """Return start, time, value and the rest of a point that begins as usual, None for others."""
    if len(slice_) < _HEAD_BYTES or slice_[0] != _START or slice_[9] != _TIME:
        return None
    value: int | float
    match slice_[18]:
        case 0x31:  # as_int
            start_ns, time_ns, value = _INT_POINT.unpack_from(slice_)
        case 0x21:  # as_double
            start_ns, time_ns, value = _DOUBLE_POINT.unpack_from(slice_)
        case _:
            return None
    tail = _TAILS[slice_[_HEAD_BYTES:]]
    return None if tail is None else (start_ns, time_ns, value, tail)


def _read_tail(slice_: bytes) -> Tail | None:
    point = parse(lazy.NUMBER_POINT, slice_)
    # A field of the head that stands here again would win over the head, be it with a zero.
    says_more = point.start_ns or point.time_ns or point.WhichOneof("value")
    if says_more or point.ByteSize() != len(slice_):
        return None
    try:
        attributes = read_attributes(point.attributes)
    except Refusal:
        return None
    return Tail(attributes, bool(point.flags & NO_RECORDED_VALUE))


def read_metric(slice_: bytes) -> Metric | None:
    """Read a metric as far as its points; None when it holds no data.

    Raises:
        BadBody: it is no metric.
    """
    metric = parse(lazy.METRIC, slice_)
    found = [(kind, held) for kind in _KINDS if (held := getattr(metric, kind))]
    if not found:
        return None
    kind, held = found[0] if len(found) == 1 else _last_kind(slice_)
    series = parse(lazy.SERIES, b"".join(held))
    known = 0 <= series.temporality <= Temporality.CUMULATIVE
    return Metric(
        metric.name,
        metric.unit,
        kind,
        Temporality(series.temporality) if known else Temporality.UNSPECIFIED,
        series.is_monotonic,
        list(series.points),
    )


def _last_kind(slice_: bytes) -> tuple[str, list[bytes]]:
    """Return what holds of a metric that has several kinds of data: the last one (oneof)."""
    metric = parse(wire.Metric, slice_)
    kind = metric.WhichOneof("data")
    assert kind is not None  # several were found in it
    return kind, [getattr(metric, kind).SerializeToString()]
