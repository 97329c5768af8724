"""Metric points of OTLP/protobuf: most are read without a message of their own."""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire

from guardwave.control_plane.ingest.decode.protobuf import lazy_messages as lazy
from guardwave.control_plane.ingest.decode.protobuf.envelope import parse
from guardwave.control_plane.ingest.decode.protobuf.sum_layouts import (
    HEAD_BYTES,
    VALUE_FORMATS,
    MatchedSum,
    SumHeader,
    SumLayoutCache,
    Tail,
)
from guardwave.control_plane.ingest.decode.protobuf.values import read_attributes
from guardwave.control_plane.ingest.model.otlp_values import (
    NO_RECORDED_VALUE,
    ExplicitBuckets,
    ExponentialBuckets,
    HistogramPoint,
    NumberPoint,
    OtherPoint,
    Point,
    Temporality,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection
from guardwave.control_plane.ingest.wire import check_bucket_count

_UNPACK_HEAD = {
    tags: Struct(f"<xQxQx{value_format}").unpack_from
    for tags, value_format in VALUE_FORMATS.items()
}
_TEMPORALITIES = {temporality.value: temporality for temporality in Temporality}
_new = tuple.__new__
# One count takes at most so many bytes, with a tag of its own: the size bounds the count below.
_BUCKET_BYTES = 11
_CACHE_ENTRIES = 4096
_CACHED_SLICE_BYTES = 2048


class Metric(NamedTuple):
    """One metric and the slices of its points.

    `raw` is the whole slice of the metric, None where its points lie in several parts.
    """

    name: str
    unit: str
    kind: str
    temporality: Temporality
    is_monotonic: bool
    points: list[bytes]
    raw: bytes | None

    def read(self) -> Iterable[Point | Rejection]:
        """Return the points; raises BadBody for a slice that is no point."""
        match self.kind:
            case "sum":
                return self._numbers()
            case "histogram":
                return map(self._histogram, self.points)
            case "exponential_histogram":
                return map(self._exponential, self.points)
            case kind:
                return (OtherPoint(self.name, kind) for _ in self.points)

    def _numbers(self) -> list[Point | Rejection]:
        name, unit, _, temporality, is_monotonic, slices, raw = self
        points: list[Point | Rejection] = []
        tails: list[Tail] = []
        for slice_ in slices:
            # every ninth byte of a usual head is a tag
            unpack = _UNPACK_HEAD.get(slice_[:HEAD_BYTES:9])
            tail = None if unpack is None else _TAILS[slice_[HEAD_BYTES:]]
            if unpack is None or tail is None:
                points.append(self._any_number(slice_))
                continue
            start, time, value = unpack(slice_)
            attributes, is_empty = tail
            fields = name, unit, start, time, value, temporality, is_monotonic, attributes, is_empty
            # the same as NumberPoint(*fields), in half of the time
            points.append(_new(NumberPoint, fields))
            tails.append(tail)
        if raw is not None and len(tails) == len(slices):
            _LAYOUTS.add(raw, SumHeader(name, unit, temporality, is_monotonic), tails)
        return points

    def _any_number(self, slice_: bytes) -> NumberPoint | Rejection:
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
        except ItemRejected as error:
            return error.rejection

    def _histogram(self, slice_: bytes) -> HistogramPoint | Rejection:
        point = parse(lazy.EXPLICIT_POINT, slice_)
        found = self._any_histogram(point, is_exponential=False)
        if isinstance(found, Rejection):
            return found
        try:
            check_bucket_count(max(len(point.counts), len(point.bounds)))
        except ItemRejected as error:
            return error.rejection
        return found._replace(
            explicit_buckets=ExplicitBuckets(tuple(point.bounds), tuple(point.counts))
        )

    def _exponential(self, slice_: bytes) -> HistogramPoint | Rejection:
        point = parse(lazy.EXPONENTIAL_POINT, slice_)
        found = self._any_histogram(point, is_exponential=True)
        if isinstance(found, Rejection):
            return found
        try:
            return found._replace(buckets=_read_buckets(point))
        except ItemRejected as error:
            return error.rejection

    def _any_histogram(
        self, point: lazy.HistogramPoint, *, is_exponential: bool
    ) -> HistogramPoint | Rejection:
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
        except ItemRejected as error:
            return error.rejection


def _read_buckets(point: lazy.ExponentialPoint) -> ExponentialBuckets:
    # the joined pieces of a message are the merged message (protobuf, encoding)
    slice_ = b"".join(point.positive)
    check_bucket_count(len(slice_) // _BUCKET_BYTES)
    positive = parse(lazy.BUCKETS, slice_)
    check_bucket_count(len(positive.counts))
    return ExponentialBuckets(
        point.scale, point.zero_count, positive.offset, tuple(positive.counts)
    )


class _Tails(dict[bytes, Tail | None]):
    """A cache of decoded tails; None for a tail that must be read together with its head.

    Attribute sets of counters repeat from export to export.
    """

    def __missing__(self, slice_: bytes) -> Tail | None:
        tail = _read_tail(slice_)
        if len(slice_) <= _CACHED_SLICE_BYTES:
            if len(self) >= _CACHE_ENTRIES:
                self.clear()
            self[slice_] = tail
        return tail


_TAILS = _Tails()
_LAYOUTS = SumLayoutCache()


def _read_tail(slice_: bytes) -> Tail | None:
    point = parse(lazy.NUMBER_POINT, slice_)
    # A field of the head that stands here again would win over the head, even with a zero.
    repeats_head = point.start_ns or point.time_ns or point.WhichOneof("value")
    if repeats_head or point.ByteSize() != len(slice_):
        return None
    try:
        attributes = read_attributes(point.attributes)
    except ItemRejected:
        return None
    return Tail(attributes, bool(point.flags & NO_RECORDED_VALUE))


def read_metric(slice_: bytes) -> Metric | MatchedSum | None:
    """Read a metric up to its points, which stay slices; None when it holds no data.

    Raises:
        BadBody: it is no metric.
    """
    matched = _LAYOUTS.match(slice_)
    if matched is not None:
        return matched
    metric = parse(lazy.METRIC, slice_)
    kind = metric.WhichOneof("value")
    if kind is None:
        return None
    is_usual = metric.ByteSize() == len(slice_)
    if is_usual:
        held: bytes = getattr(metric, kind)
    else:
        # not the bytes that protobuf itself would write: the data may lie in several parts
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
