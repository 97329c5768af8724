"""The histogram of durations: what it must be of, and what cannot be true of one."""

import math
from collections.abc import Sequence

import orjson
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.records import DurationPoint
from guardwave.control_plane.ingest.model.rejections import RejectReason
from guardwave.control_plane.ingest.reading import DecodedRequest, RequestContext, read_metrics
from tests.support.hosts import encode_request
from tests.support.otlp.bodies import NOW_NS, RESOURCE, any_value, decode_metrics

DURATION = "agent.guard.prompt.duration"


def exponential(*counts: int, unit: str = "s", zeros: int = 0, scale: int = 5, **fields: object):
    """Return a request of one point whose buckets begin at one second."""
    request, metric = _request(unit)
    point = metric.exponential_histogram.data_points.add(scale=scale, zero_count=zeros)
    metric.exponential_histogram.aggregation_temporality = 1
    point.positive.bucket_counts.extend(counts)
    return _finished(request, point, **{"count": zeros + sum(counts), **fields})


def explicit(counts: Sequence[int], bounds: Sequence[float], **fields: object):
    """Return a request of one point with bounds of its own."""
    request, metric = _request("s")
    point = metric.histogram.data_points.add(bucket_counts=counts, explicit_bounds=bounds)
    metric.histogram.aggregation_temporality = 1
    return _finished(request, point, **{"count": sum(counts), **fields})


def _request(unit: str):
    request = ExportMetricsServiceRequest()
    batch = request.resource_metrics.add()
    for key, value in RESOURCE.items():
        batch.resource.attributes.add(key=key, value=any_value(value))
    scope = batch.scope_metrics.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    return request, scope.metrics.add(name=DURATION, unit=unit)


def _finished(request, point, **fields: object):
    point.start_time_unix_nano, point.time_unix_nano = NOW_NS - 1, NOW_NS
    for name, value in fields.items():
        setattr(point, name, value)
    for key, word in (("name", "identical_call"), ("mode", "warn")):
        point.attributes.add(key=f"agent.guard.{key}", value=any_value(word))
    return request


def read(request, encoding: Encoding = Encoding.PROTOBUF) -> DecodedRequest:
    batches = decode_metrics(encode_request(request, encoding), encoding)
    return read_metrics(batches, RequestContext("internal", NOW_NS))


def counted(request, encoding: Encoding = Encoding.PROTOBUF) -> DurationPoint:
    decoded = read(request, encoding)
    assert decoded.rejected == ()
    (record,) = decoded.records
    assert isinstance(record, DurationPoint)
    return record


def rejected(request, reason: RejectReason, encoding: Encoding = Encoding.PROTOBUF) -> str:
    decoded = read(request, encoding)
    assert decoded.records == ()
    (found,) = decoded.rejected
    assert found.reason is reason
    return found.detail


EACH_ENCODING = pytest.mark.parametrize("encoding", list(Encoding))


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        pytest.param("ms", "the unit 'ms'", id="milliseconds"),
        pytest.param("1", "the unit '1'", id="ones"),
        pytest.param("", "no unit", id="none"),
        pytest.param("what the user asked", "the unit a string of 19 characters", id="content"),
    ],
)
def test_durations_that_may_not_be_seconds_are_rejected(unit, shown):
    detail = rejected(exponential(2, 3, unit=unit), RejectReason.WRONG_UNIT)
    assert detail.startswith(f"{DURATION} has {shown}, not s; measure in the unit")


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        pytest.param(exponential(2, 3, count=9), "counts 9 durations and has buckets", id="sum"),
        pytest.param(exponential(2, scale=21), "has scale 21", id="too fine"),
        pytest.param(exponential(2, scale=-11), "has scale -11", id="too coarse"),
        pytest.param(exponential(*[1] * 1025), "1025 buckets in one histogram", id="too many"),
        pytest.param(exponential(2, sum=math.nan), "has the sum nan", id="a sum of no number"),
        pytest.param(exponential(2, sum=math.inf), "has the sum inf", id="an infinite sum"),
        pytest.param(exponential(2, sum=-0.5), "has the sum -0.5", id="a sum below zero"),
        pytest.param(
            exponential(sum=3.0), "counts no durations and has the sum 3", id="a sum of nothing"
        ),
        pytest.param(
            explicit([1, 2], [1.0], count=9),
            "counts 9 durations and has buckets for 3",
            id="explicit, of another count",
        ),
        pytest.param(
            explicit([1, 2], [1.0, 2.0]),
            "has 2 bounds and 2 buckets, not one more",
            id="explicit, a bucket too few",
        ),
        pytest.param(
            explicit([], [1.0], count=3), "has 1 bounds and 0 buckets", id="explicit, bounds alone"
        ),
        pytest.param(
            explicit([1, 2, 3], [2.0, 2.0]), "do not ascend", id="explicit, a bound twice"
        ),
        pytest.param(explicit([1, 2, 3], [2.0, 1.0]), "do not ascend", id="explicit, descending"),
        pytest.param(explicit([1, 2], [math.nan]), "do not ascend", id="explicit, not a number"),
        pytest.param(
            explicit([1] * 1025, range(1024)), "1025 buckets in one", id="explicit, too many"
        ),
        pytest.param(explicit([3], [], sum=-1.0), "has the sum -1", id="explicit, below zero"),
    ],
)
@EACH_ENCODING
def test_a_histogram_that_cannot_be_is_rejected(request_, shown, encoding):
    detail = rejected(request_, RejectReason.BAD_HISTOGRAM, encoding)
    assert shown in detail
    assert "; let an OpenTelemetry SDK make the histogram" in detail
    assert "whole number" not in detail


@EACH_ENCODING
def test_an_exponential_histogram_counts_its_durations_and_its_zeros(encoding):
    record = counted(exponential(2, 3, zeros=1, sum=math.pi), encoding)
    assert record.count == 6
    assert record.buckets is not None
    assert sum(count for _, count in record.buckets.buckets) == 6


@EACH_ENCODING
@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(explicit([2, 3], [1.0]), id="two buckets"),
        pytest.param(explicit([5], []), id="one bucket without bounds"),
        pytest.param(explicit([], [], count=5), id="no buckets"),
        pytest.param(explicit([2, 3, 0], [1.0, math.inf]), id="a last bound that is infinite"),
        pytest.param(explicit([0] * 1023 + [5], range(1023)), id="as many as are read"),
    ],
)
def test_an_explicit_histogram_counts_and_has_no_buckets_to_compare(request_, encoding):
    record = counted(request_, encoding)
    assert (record.count, record.buckets) == (5, None)


@pytest.mark.parametrize(
    ("buckets", "fault"),
    [
        pytest.param({"bucketCounts": 3}, "bucketCounts is no list", id="counts"),
        pytest.param({"explicitBounds": {}}, "explicitBounds is no list", id="bounds"),
        pytest.param({"bucketCounts": ["x"]}, "bucketCounts", id="a count"),
        pytest.param({"explicitBounds": ["x"]}, "explicitBounds", id="a bound"),
    ],
)
def test_buckets_that_are_not_otlp_give_up_their_point(buckets, fault):
    body = orjson.loads(encode_request(explicit([5], []), Encoding.JSON))
    (metric,) = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    metric["histogram"]["dataPoints"][0].update(buckets)
    batches = decode_metrics(orjson.dumps(body), Encoding.JSON)
    (found,) = read_metrics(batches, RequestContext("internal", NOW_NS)).rejected
    assert found.reason is RejectReason.UNREADABLE
    assert fault in found.detail
