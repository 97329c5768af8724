"""Duration buckets: base-2 exponential, as in OpenTelemetry's data model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics._internal.exponential_histogram.mapping.logarithm_mapping import (
    LogarithmMapping,
)

from guardwave.control_plane.ingest.evidence.prompt_deltas import (
    BUCKETS_PER_DOUBLING,
    duration_bucket,
)

SCALE = 7


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [
        pytest.param(0.001, -1, id="one millisecond ends the bucket below it"),
        pytest.param(0.001001, 0, id="just over a millisecond"),
        pytest.param(0.002, 127, id="two milliseconds"),
        pytest.param(1.024, 1279, id="ten doublings of a millisecond"),
        pytest.param(0.0, -1, id="no time at all"),
        pytest.param(1e-9, -1, id="less than a millisecond"),
    ],
)
def test_a_duration_has_its_bucket(seconds, bucket):
    assert duration_bucket(seconds) == bucket


def test_what_was_not_reported_has_no_bucket():
    assert duration_bucket(None) is None


@given(st.floats(0.001, 86_400))
def test_a_duration_lies_within_the_bounds_of_its_bucket(seconds):
    found = duration_bucket(seconds)
    assert found is not None
    low, high = (2 ** ((found + step) / BUCKETS_PER_DOUBLING) for step in (0, 1))
    assert low * (1 - 1e-12) <= 1000 * seconds <= high * (1 + 1e-12)


@given(st.floats(0.001, 86_400))
def test_the_buckets_are_those_of_the_opentelemetry_sdk(seconds):
    theirs = LogarithmMapping(SCALE).map_to_index(1000 * seconds)
    found = duration_bucket(seconds)
    assert found is not None
    # At a bound the two may round apart.
    assert found == theirs or math.isclose(
        1000 * seconds, 2 ** (max(found, theirs) / BUCKETS_PER_DOUBLING), rel_tol=1e-12
    )
