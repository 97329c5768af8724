"""Sums that come again with other times and values, every other byte as before: one call each.

An exporter sends the same metrics with the same attributes over and over. What was read of one
sum is kept with the places of its points' numbers; another that is equal everywhere else decodes
to the same points with its own numbers, whatever these are.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from struct import Struct
from typing import NamedTuple

from control_plane.ingest.otlp import Attributes, NumberPoint, Temporality
from control_plane.ingest.proto_fields import LENGTH, GroupError, fields_of, tag_of

# How exporters begin a number point: field 2, start; field 3, time; field 6 or 4, its value. Each
# is a tag and eight bytes, little endian; attributes and flags follow. By tags: the kind of value.
HEAD_BYTES = 27
HEADS = {b"\x11\x19\x31": "q", b"\x11\x19\x21": "d"}
# Tags of a metric's sum and of a sum's point, both of a length and so many bytes.
_SUM, _POINT = tag_of(7, LENGTH), tag_of(1, LENGTH)
_REMEMBERED_BYTES = 4 * 1024 * 1024
_LONGEST = 64 * 1024
# So many that are of one size are told apart by looking at each.
_OF_ONE_SIZE = 4
# After so many more in vain than were of use, a layout is learned of every sixteenth sum alone: it
# costs as much as reading the sum, and where attributes are others each time nothing is gained.
_IN_VAIN, _EVERY = 64, 16


class Tail(NamedTuple):
    """What follows the value of a point."""

    attributes: Attributes
    has_no_value: bool


class Named(NamedTuple):
    """What all points of a sum share."""

    name: str
    unit: str
    temporality: Temporality
    is_monotonic: bool


class Layout(NamedTuple):
    """A sum that was read: `cut` gives the bytes between its points' numbers, and these.

    `last` are those behind the last number: at once they tell most other sums apart. `attributes`
    and `are_empty` are of the points, in their order.
    """

    cut: Callable[[bytes], tuple[object, ...]]
    between: tuple[object, ...]
    last: bytes
    named: Named
    attributes: tuple[Attributes, ...]
    are_empty: tuple[bool, ...]


class KnownSum(NamedTuple):
    """A sum that an earlier one tells how to read; `points` is as long as it has points."""

    layout: Layout
    told: tuple[object, ...]

    @property
    def points(self) -> Sequence[object]:
        """What stands for each of its points."""
        return self.layout.attributes

    def read(self) -> list[NumberPoint]:
        """Return the points."""
        (_, _, _, named, attributes, are_empty), told = self
        name, unit, temporality, is_monotonic = named
        fields = zip(
            repeat(name),
            repeat(unit),
            told[1::6],
            told[3::6],
            told[5::6],
            repeat(temporality),
            repeat(is_monotonic),
            attributes,
            are_empty,
            strict=False,  # four of them have no end
        )
        # what NumberPoint does with its nine arguments, without a call of Python's for each
        return list(map(tuple.__new__, repeat(NumberPoint), fields))


class Layouts:
    """The layouts of the sums that were read before, by their size.

    Shared by threads: what two of them learn at once is learned twice, or by one of them.
    """

    def __init__(self) -> None:
        self._by_size: dict[int, tuple[Layout, ...]] = {}
        self._bytes = 0
        self._in_vain = 0
        self._unknown = 0

    def find(self, slice_: bytes) -> KnownSum | None:
        """Return the sum by an earlier one; None when none was as it is."""
        for layout in self._by_size.get(len(slice_), ()):
            if not slice_.endswith(layout.last):
                continue
            told = layout.cut(slice_)
            if told[::2] == layout.between:
                self._in_vain = max(self._in_vain - 1, 0)
                return KnownSum(layout, told)
        return None

    def learn(self, slice_: bytes, named: Named, tails: Sequence[Tail]) -> None:
        """Keep how a sum was read, all of whose points begin with a head that stands alone."""
        self._unknown += 1
        is_vain = self._in_vain >= _IN_VAIN and self._unknown % _EVERY
        if not tails or len(slice_) > _LONGEST or is_vain:
            return
        self._in_vain = min(self._in_vain + 1, _IN_VAIN)
        form = _form_of(slice_)
        if form is None:
            return
        if self._bytes + len(slice_) > _REMEMBERED_BYTES:
            self._by_size.clear()
            self._bytes = 0
        cut = Struct(form).unpack
        between = cut(slice_)[::2]
        last = between[-1]
        assert isinstance(last, bytes)
        layout = Layout(cut, between, last, named, *zip(*tails, strict=True))
        held = self._by_size.get(len(slice_), ())
        if len(held) < _OF_ONE_SIZE:
            self._bytes += len(slice_)
        self._by_size[len(slice_)] = (layout, *held[: _OF_ONE_SIZE - 1])


def _form_of(slice_: bytes) -> str | None:
    """Return what cuts a metric at its points' numbers; None where they lie in more than a sum."""
    try:
        sums = [each for each in fields_of(slice_, 0, len(slice_)) if each.tag == _SUM]
        if len(sums) != 1:
            return None
        points = [each for each in fields_of(slice_, *sums[0][1:]) if each.tag == _POINT]
    except GroupError:
        return None
    form, done = ["<"], 0
    for _, start, _ in points:
        kind = HEADS[slice_[start : start + HEAD_BYTES : 9]]
        form.append(f"{start + 1 - done}sQ1sQ1s{kind}")
        done = start + HEAD_BYTES
    return "".join([*form, f"{len(slice_) - done}s"])
