"""A sum that matches a layout decodes as by the published protobuf classes."""

from struct import pack

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.decode.protobuf.sum_layouts import (
    SumHeader,
    SumLayoutCache,
    Tail,
)
from guardwave.control_plane.ingest.model.otlp_values import Temporality
from tests.control_plane.ingest.decode.test_slices import PAIRS, SERIES, TIMES, field, fixed, varint
from tests.support.otlp import published
from tests.support.otlp.bodies import decode_metrics

HEADER = SumHeader("m", "{call}", Temporality.DELTA, True)
TAIL = Tail({"k": "v"}, False)
TAGGED = b"\x0a" + varint(27)


def point(
    start: int, time: int, value: int, *, is_double: bool = False, more: bytes = b""
) -> bytes:
    return fixed(2, start) + fixed(3, time) + fixed(4 if is_double else 6, value) + more


def metric(*points: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    series = b"".join(field(1, point_) for point_ in points) + varint(2 << 3) + b"\x01"
    return field(1, b"m") + before + field(7, series) + after


def body(*metrics: bytes) -> bytes:
    return field(1, field(2, field(1, b"") + b"".join(field(2, metric_) for metric_ in metrics)))


def decoded(request: bytes) -> str:
    return repr(decode_metrics(request, Encoding.PROTOBUF))


def cached(slice_: bytes, points: int) -> SumLayoutCache:
    layouts = SumLayoutCache()
    layouts.add(slice_, HEADER, [TAIL] * points)
    return layouts


def numbers(found) -> list[tuple[int, int, int | float | None]]:
    return [(point_.start_ns, point_.time_ns, point_.value) for point_ in found.read()]


SHAPES = st.lists(st.tuples(st.booleans(), st.lists(PAIRS, max_size=3)), max_size=4)
THREE = st.tuples(TIMES, TIMES, TIMES)


@given(SHAPES, st.data())
def test_sums_of_one_shape_decode_each_with_its_own_numbers(shape, data):
    for _ in range(3):
        points = [
            point(
                *data.draw(THREE),
                is_double=is_double,
                more=b"".join(field(7, pair) for pair in pairs),
            )
            for is_double, pairs in shape
        ]
        request = body(metric(*points))
        assert decoded(request) == repr(published.metrics(request))


@given(SERIES, st.integers(0), st.binary(min_size=1, max_size=9))
def test_a_sum_with_any_bytes_changed_decodes_as_it_then_is(series, place, changed):
    first = metric(point(1, 2, 3), after=field(7, series))
    assert decoded(body(first)) == repr(published.metrics(body(first)))
    at = place % len(first)
    other = body(first[:at] + changed + first[at + len(changed) :])
    try:
        expected = repr(published.metrics(other))
    except DecodeError:
        return
    assert decoded(other) == expected


def test_a_layout_reads_the_numbers_of_another_sum():
    layouts = cached(metric(point(1, 2, 3), point(4, 5, 6, is_double=True)), 2)
    half = int.from_bytes(pack("<d", 0.5), "little")
    found = layouts.match(metric(point(7, 8, 2**64 - 1), point(9, 10, half, is_double=True)))
    assert found is not None
    assert len(found.points) == 2
    assert numbers(found) == [(7, 8, -1), (9, 10, 0.5)]
    assert [point_[5:] for point_ in found.read()] == [
        (Temporality.DELTA, True, {"k": "v"}, False)
    ] * 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(metric(point(1, 2, 3, is_double=True)), id="another kind of value"),
        pytest.param(metric(point(1, 2, 3))[:-1] + b"\x02", id="another temporality"),
        pytest.param(field(1, b"n") + metric(point(1, 2, 3))[3:], id="another name"),
        pytest.param(metric(point(1, 2, 3), point(1, 2, 3)), id="another point"),
    ],
)
def test_a_sum_that_differs_in_more_than_numbers_does_not_match(other):
    slice_ = metric(point(1, 2, 3))
    layouts = cached(slice_, 1)
    assert layouts.match(slice_) is not None
    assert layouts.match(other) is None


@pytest.mark.parametrize(
    "slice_",
    [
        pytest.param(metric(point(1, 2, 3), after=b"\x3b\x3c"), id="a group behind the sum"),
        pytest.param(metric(point(1, 2, 3), before=field(7, b"")), id="a sum in two parts"),
        pytest.param(field(1, b"m") + field(7, b""), id="no point"),
        pytest.param(metric(point(1, 2, 3), before=field(2, b"x" * 65536)), id="very long"),
    ],
)
def test_a_sum_without_fixed_offsets_gets_no_layout(slice_):
    points = slice_.count(TAGGED)
    assert cached(slice_, points).match(slice_) is None


def test_what_looks_like_a_point_elsewhere_is_none():
    lookalike = field(7, field(1, point(1, 2, 3)))
    slice_ = metric(point(1, 2, 3), before=field(2, lookalike), after=field(100, lookalike))
    other = metric(point(4, 5, 6), before=field(2, lookalike), after=field(100, lookalike))
    found = cached(slice_, 1).match(other)
    assert found is not None
    assert numbers(found) == [(4, 5, 6)]


def test_four_layouts_of_one_size_are_kept_and_the_newest_stay():
    slices = [metric(point(1, 2, 3), after=field(12, b"%d" % at)) for at in range(6)]
    layouts = SumLayoutCache()
    for slice_ in slices:
        layouts.add(slice_, HEADER, [TAIL])
    assert [layouts.match(slice_) is not None for slice_ in slices] == [False] * 2 + [True] * 4


def test_the_size_of_the_cache_is_bounded():
    layouts = SumLayoutCache()
    kept = []
    for at in range(100):
        kept.append(metric(point(1, 2, 3), before=field(2, b"x" * (60_000 + at))))
        layouts.add(kept[-1], HEADER, [TAIL])
        assert layouts.match(kept[-1]) is not None
    still = sum(len(slice_) for slice_ in kept if layouts.match(slice_) is not None)
    assert 0 < still <= 4 * 1024 * 1024


def test_where_no_sum_repeats_few_layouts_are_added():
    layouts = SumLayoutCache()
    slices = [metric(point(1, 2, 3), before=field(2, b"x" * at)) for at in range(224)]
    for slice_ in slices:
        layouts.add(slice_, HEADER, [TAIL])
    known = [layouts.match(slice_) is not None for slice_ in slices]
    assert known[:64] == [True] * 64
    assert sum(known[64:]) == 10
    # each match makes room for one more layout
    more = [metric(point(1, 2, 3), before=field(2, b"x" * at)) for at in range(300, 400)]
    for slice_ in more:
        layouts.add(slice_, HEADER, [TAIL])
    assert 64 < sum(layouts.match(slice_) is not None for slice_ in more) < 74
