"""Metrics and their points from protobuf, most points without a message of their own."""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire

from control_plane.ingest import lazy_messages as lazy
from control_plane.ingest.otlp import (
    NO_RECORDED_VALUE,
    Bounded,
    Buckets,
    HistogramPoint,
    NumberPoint,
    OtherPoint,
    Point,
    Temporality,
)
from control_plane.ingest.proto_envelope import parse
from control_plane.ingest.proto_layouts import (
    HEAD_BYTES,
    HEADS,
    KnownSum,
    Layouts,
    Named,
    Tail,
)
from control_plane.ingest.proto_values import read_attributes
from control_plane.ingest.quota import check_bucket_count
from control_plane.ingest.rejections import Refusal, Rejected

_CUTS = {tags: Struct(f"<xQxQx{kind}").unpack_from for tags, kind in HEADS.items()}
_TEMPORALITIES = {each.value: each for each in Temporality}
_new = tuple.__new__
# The most that one count takes, with a tag of its own: what is longer has more than are read.
_BUCKET_BYTES = 11
_REMEMBERED = 4096
_REMEMBERED_BYTES = 2048


class Metric(NamedTuple):
    """One metric and the slices of its points.

    `raw` is all of it, None where that holds its points in other words than the slices.
    """

    name: str
    unit: str
    kind: str
    temporality: Temporality
    is_monotonic: bool
    points: list[bytes]
    raw: bytes | None

    def read(self) -> Iterable[Point | Rejected]:
        """Return the points; raises BadBody for a slice that is none."""
        match self.kind:
            case "sum":
                return self._numbers()
            case "histogram":
                return map(self._histogram, self.points)
            case "exponential_histogram":
                return map(self._exponential, self.points)
            case kind:
                return (OtherPoint(self.name, kind) for _ in self.points)

    def _numbers(self) -> list[Point | Rejected]:
        name, unit, _, temporality, is_monotonic, slices, raw = self
        points: list[Point | Rejected] = []
        tails: list[Tail] = []
        for slice_ in slices:
            unpack = _CUTS.get(slice_[:HEAD_BYTES:9])
            tail = None if unpack is None else _TAILS[slice_[HEAD_BYTES:]]
            if unpack is None or tail is None:
                points.append(self._any_number(slice_))
                continue
            start, time, value = unpack(slice_)
            attributes, is_empty = tail
            told = name, unit, start, time, value, temporality, is_monotonic, attributes, is_empty
            # what NumberPoint does with its nine arguments, at half of the time
            points.append(_new(NumberPoint, told))
            tails.append(tail)
        if raw is not None and len(tails) == len(slices):
            _LAYOUTS.learn(raw, Named(name, unit, temporality, is_monotonic), tails)
        return points

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
        point = parse(lazy.EXPLICIT_POINT, slice_)
        found = self._any_histogram(point, is_exponential=False)
        if isinstance(found, Rejected):
            return found
        try:
            check_bucket_count(max(len(point.counts), len(point.bounds)))
        except Refusal as refusal:
            return refusal.rejected
        return found._replace(bounded=Bounded(tuple(point.bounds), tuple(point.counts)))

    def _exponential(self, slice_: bytes) -> HistogramPoint | Rejected:
        point = parse(lazy.EXPONENTIAL_POINT, slice_)
        found = self._any_histogram(point, is_exponential=True)
        if isinstance(found, Rejected):
            return found
        try:
            return found._replace(buckets=_read_buckets(point))
        except Refusal as refusal:
            return refusal.rejected

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


def _read_buckets(point: lazy.ExponentialPoint) -> Buckets:
    # pieces of a message that came in several are one message in a row (protobuf, encoding)
    slice_ = b"".join(point.positive)
    check_bucket_count(len(slice_) // _BUCKET_BYTES)
    positive = parse(lazy.BUCKETS, slice_)
    check_bucket_count(len(positive.counts))
    return Buckets(point.scale, point.zero_count, positive.offset, tuple(positive.counts))


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
_LAYOUTS = Layouts()


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


def read_metric(slice_: bytes) -> Metric | KnownSum | None:
    """Read a metric as far as its points; None when it holds no data.

    Raises:
        BadBody: it is no metric.
    """
    known = _LAYOUTS.find(slice_)
    if known is not None:
        return known
    metric = parse(lazy.METRIC, slice_)
    kind = metric.WhichOneof("value")
    if kind is None:
        return None
    is_usual = metric.ByteSize() == len(slice_)
    if is_usual:
        held: bytes = getattr(metric, kind)
    else:
        # not as protobuf itself would write it: there may be more than one part of its data
        whole = parse(wire.Metric, slice_)
        held = getattr(whole, kind).SerializeToString()
    series = parse(lazy.SERIES, held)
    return Metric(
        metric.name,
        metric.unit,
        kind,
        _TEMPORALITIES.get(series.temporality, Temporality.UNSPECIFIED),
        series.is_monotonic,
        list(series.points),
        slice_ if is_usual else None,
    )
