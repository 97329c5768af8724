"""How the bytes of log records lie that differ in their holes alone, and how they are cut apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from operator import itemgetter
from struct import Struct
from typing import NamedTuple, TypeAlias

from control_plane.ingest import fields as attributes
from control_plane.ingest.form_numbers import Cut, Ending, ending_of
from control_plane.ingest.proto_holes import Hole, Role
from control_plane.ingest.wordings import Run, Wording

# What two layouts of one size are told apart by.
LayoutKey: TypeAlias = tuple[object, ...]

_CODES = {Role.TIME: "Q", Role.DURATION: "d"}
_OF_SOMEBODY = (Role.PROMPT, Role.ASSIGNMENT)
# Their records come many at a time.
_OWNERS = 16_384


class _Ids(dict[bytes, tuple[str, ...]]):
    """Assignment ids by the mark of a layout and all that it has beside the prompt."""

    def keep(self, key: bytes, ids: tuple[str, ...]) -> None:
        if len(key) <= attributes.LONGEST_KEPT:
            if len(self) >= _OWNERS:
                self.clear()
            self[key] = ids


_IDS = _Ids()
_marks = count()


class Whose:
    """How prompt id and assignment ids lie in a span of a record, and what is constant there.

    Two records with the same span are of one prompt. `prompt` and `ids` are where they are in it.
    """

    __slots__ = (
        "_after",
        "_before",
        "_constants",
        "_ids",
        "_is_behind",
        "_mark",
        "_prompt",
        "key",
    )

    def __init__(self, span: bytes, prompt: slice, ids: Sequence[slice]) -> None:
        self._prompt, self._ids = prompt, ids
        self._before, self._after = slice(0, prompt.start), slice(prompt.stop, len(span))
        self._is_behind = prompt.start > 0
        places = [(each.start, each.stop) for each in (prompt, *ids)]
        edges = [0, *chain.from_iterable(sorted(places)), len(span)]
        self._constants = [slice(*between) for between in zip(edges[::2], edges[1::2], strict=True)]
        self.key: LayoutKey = (tuple(places), self._constant(span))
        self._mark = next(_marks).to_bytes(8)

    def run(self, span: bytes) -> Run:
        """Return an empty run of a prompt and its assignment ids.

        Raises:
            ValueError: the prompt's id is no text, or what is between is of another layout.
            Refusal: the assignment ids are none.
        """
        key = self._mark + span[self._after]
        if self._is_behind:
            key += span[self._before]
        ids = _IDS.get(key)
        if ids is None:
            ids = self._read_ids(span)
            _IDS.keep(key, ids)
        # as `Run(...)` does it, without a call of Python's own: there is one for each prompt
        return tuple.__new__(Run, (span[self._prompt].decode(), ids, [], [], {}))

    def _read_ids(self, span: bytes) -> tuple[str, ...]:
        if self._constant(span) != self.key[-1]:
            raise ValueError("another layout")
        return attributes.ids_of(tuple([span[each].decode() for each in self._ids]))

    def _constant(self, span: bytes) -> LayoutKey:
        return tuple([span[each] for each in self._constants])


class Layout(NamedTuple):
    """How a record is taken apart.

    `cut` does it: `constants_of` gives what records of the layout share, `who_of` the span that
    says of whom they are, and `time_at` tells where the time is.
    """

    cut: Callable[[bytes], Cut]
    constants_of: Callable[[Cut], object]
    who_of: Callable[[Cut], bytes]
    whose: Whose
    time_at: int
    ending: Ending | None


@dataclass(slots=True, eq=False)
class Form:
    """How the bytes of records of one size lie, and what was read of them.

    `known` has that by their constant parts, `recent` what came last of it: to compare with that is
    cheaper than to hash.
    """

    layout: Layout
    key: LayoutKey
    known: dict[object, Wording] = field(default_factory=dict)
    recent: tuple[object, Wording | None] = (None, None)

    def find(self, said: object) -> Wording | None:
        """Return what was read of records with these constant parts."""
        wording = self.known.get(said)
        if wording is not None:
            self.recent = said, wording
        return wording

    def keep(self, said: object, wording: Wording) -> None:
        """Remember what was read of records with these constant parts."""
        self.known[said] = wording
        self.recent = said, wording


class _Pieces:
    """Collects what a layout cuts out of a record, from its first byte to its last."""

    def __init__(self) -> None:
        self.codes = ["<"]
        self.constants: list[int] = []
        self.at: dict[Role, int] = {}
        self.spans: list[int] = []
        self._count = 0
        self._end = 0

    def add(self, code: str, start: int, end: int) -> int:
        """Cut out what is between, and the constant part before it; return its place."""
        if start > self._end:
            self.constants.append(self._count)
            self.codes.append(f"{start - self._end}s")
            self._count += 1
        self._end = end
        if code:
            self.codes.append(code)
            self._count += not code.endswith("x")
        return self._count - 1


def form_of(record: bytes, holes: Sequence[Hole]) -> Form:
    """Return the form of a record with these holes, one of them a prompt's id and one a time."""
    first = min(hole.start for hole in holes if hole.role in _OF_SOMEBODY)
    last = max(hole.end for hole in holes if hole.role in _OF_SOMEBODY)
    # where another hole is between them, each piece is cut out by itself
    is_one_span = not any(
        first <= hole.start < last for hole in holes if hole.role not in _OF_SOMEBODY
    )
    pieces = _Pieces()
    for role, start, end in holes:
        if role is Role.SKIPPED:
            pieces.add(f"{end - start}x", start, end)
        elif role not in _OF_SOMEBODY:
            pieces.at[role] = pieces.add(_CODES.get(role, f"{end - start}s"), start, end)
        elif not is_one_span:
            pieces.spans.append(pieces.add(f"{end - start}s", start, end))
        elif not pieces.spans:
            pieces.spans.append(pieces.add(f"{last - first}s", first, last))
    pieces.add("", len(record), len(record))
    codes = "".join(pieces.codes)
    cut = Struct(codes).unpack
    who_of = _spans(pieces.spans)
    whose = _whose(who_of(cut(record)), holes, first if is_one_span else None)
    roles = tuple(hole.role for hole in holes)
    layout = Layout(
        cut,
        itemgetter(*pieces.constants),
        who_of,
        whose,
        pieces.at[Role.TIME],
        ending_of(pieces.at),
    )
    return Form(layout, (codes, roles, whose.key))


def _spans(places: Sequence[int]) -> Callable[[Cut], bytes]:
    if len(places) == 1:
        return itemgetter(*places)
    of = itemgetter(*places)
    return lambda cut: b"".join(of(cut))


def _whose(span: bytes, holes: Sequence[Hole], first: int | None) -> Whose:
    prompt, ids, done = slice(0, 0), [], 0
    for role, start, end in holes:
        if role not in _OF_SOMEBODY:
            continue
        at = done if first is None else start - first
        place = slice(at, at + end - start)
        done += end - start
        if role is Role.PROMPT:
            prompt = place
        else:
            ids.append(place)
    return Whose(span, prompt, ids)
