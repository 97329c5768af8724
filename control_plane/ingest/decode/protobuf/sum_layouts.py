"""Sum layouts: sums that repeat but for times and values, decoded by one call each.

An exporter sends the same metrics with the same attributes over and over. A layout keeps one
decoded sum and the offsets of its variable fields, the numbers of its points. Another sum whose
constant bytes are equal decodes to the same points with its own numbers.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from struct import Struct
from typing import NamedTuple

from guardwave.control_plane.ingest.model.otlp_values import Attributes, NumberPoint, Temporality
from guardwave.control_plane.ingest.wire import LENGTH, GroupError, fields_of, tag_of

# Exporters begin a number point with this head: field 2, start; field 3, time; field 6 or 4, the
# value. Each is a tag and eight bytes, little endian; attributes and flags follow.
HEAD_BYTES = 27
# The struct format of the value, by the three tags of the head.
VALUE_FORMATS = {b"\x11\x19\x31": "q", b"\x11\x19\x21": "d"}
# The tags of a metric's sum and of a sum's point, both length-delimited.
_SUM, _POINT = tag_of(7, LENGTH), tag_of(1, LENGTH)
_CACHE_BYTES = 4 * 1024 * 1024
_LONGEST = 64 * 1024
# Layouts of one size are compared one by one.
_LAYOUTS_OF_A_SIZE = 4
# Adding a layout costs as much as reading the sum, and gains nothing where attributes are new each
# time. Once so many more layouts were added than matched, only every sixteenth sum is added.
_MOST_UNMATCHED, _SAMPLE_EVERY = 64, 16


class Tail(NamedTuple):
    """The fields that follow the value of a point."""

    attributes: Attributes
    has_no_value: bool


class SumHeader(NamedTuple):
    """The facts that all points of a sum share."""

    name: str
    unit: str
    temporality: Temporality
    is_monotonic: bool


class Layout(NamedTuple):
    """A decoded sum: `unpack` splits a slice into constant bytes and numbers, in turns.

    `ending` are the constant bytes behind the last number: a quick look at them rules out most
    other sums. `attributes` and `are_empty` are of the points, in their order.
    """

    unpack: Callable[[bytes], tuple[object, ...]]
    constants: tuple[object, ...]
    ending: bytes
    header: SumHeader
    attributes: tuple[Attributes, ...]
    are_empty: tuple[bool, ...]


class MatchedSum(NamedTuple):
    """A sum that matches a layout; `points` is as long as it has points."""

    layout: Layout
    fields: tuple[object, ...]

    @property
    def points(self) -> Sequence[object]:
        """One object for each point."""
        return self.layout.attributes

    def read(self) -> list[NumberPoint]:
        """Return the points."""
        (_, _, _, header, attributes, are_empty), fields = self
        name, unit, temporality, is_monotonic = header
        # each point has start, time and value, with constant bytes before each of the three
        points = zip(
            repeat(name),
            repeat(unit),
            fields[1::6],
            fields[3::6],
            fields[5::6],
            repeat(temporality),
            repeat(is_monotonic),
            attributes,
            are_empty,
            strict=False,  # four of them have no end
        )
        # the same as NumberPoint(*point), without a call of a Python function for each
        return list(map(tuple.__new__, repeat(NumberPoint), points))


class SumLayoutCache:
    """The layouts of earlier sums, by their size.

    Shared by threads: when two add a layout at once, it is added twice, or one of the two is lost.
    """

    def __init__(self) -> None:
        self._by_size: dict[int, tuple[Layout, ...]] = {}
        self._bytes = 0
        self._unmatched = 0
        self._offered = 0

    def match(self, slice_: bytes) -> MatchedSum | None:
        """Match the slice of a metric against the layouts; None when none of them fits."""
        for layout in self._by_size.get(len(slice_), ()):
            if not slice_.endswith(layout.ending):
                continue
            fields = layout.unpack(slice_)
            if fields[::2] == layout.constants:
                self._unmatched = max(self._unmatched - 1, 0)
                return MatchedSum(layout, fields)
        return None

    def add(self, slice_: bytes, header: SumHeader, tails: Sequence[Tail]) -> None:
        """Add the layout of a decoded sum, all of whose points begin with the usual head."""
        self._offered += 1
        is_skipped = self._unmatched >= _MOST_UNMATCHED and self._offered % _SAMPLE_EVERY
        if not tails or len(slice_) > _LONGEST or is_skipped:
            return
        self._unmatched = min(self._unmatched + 1, _MOST_UNMATCHED)
        layout_format = _format_of(slice_)
        if layout_format is None:
            return
        if self._bytes + len(slice_) > _CACHE_BYTES:
            self._by_size.clear()
            self._bytes = 0
        unpack = Struct(layout_format).unpack
        constants = unpack(slice_)[::2]
        ending = constants[-1]
        assert isinstance(ending, bytes)
        layout = Layout(unpack, constants, ending, header, *zip(*tails, strict=True))
        earlier = self._by_size.get(len(slice_), ())
        if len(earlier) < _LAYOUTS_OF_A_SIZE:
            self._bytes += len(slice_)
        self._by_size[len(slice_)] = (layout, *earlier[: _LAYOUTS_OF_A_SIZE - 1])


def _format_of(slice_: bytes) -> str | None:
    """Return the struct format that splits a metric; None when it holds other than one sum."""
    try:
        sums = [field for field in fields_of(slice_, 0, len(slice_)) if field.tag == _SUM]
        if len(sums) != 1:
            return None
        points = [field for field in fields_of(slice_, *sums[0][1:]) if field.tag == _POINT]
    except GroupError:
        return None
    parts, done = ["<"], 0
    for _, start, _ in points:
        value_format = VALUE_FORMATS[slice_[start : start + HEAD_BYTES : 9]]
        # constant bytes up to the first tag, then start, a tag, time, a tag and the value
        parts.append(f"{start + 1 - done}sQ1sQ1s{value_format}")
        done = start + HEAD_BYTES
    return "".join([*parts, f"{len(slice_) - done}s"])
