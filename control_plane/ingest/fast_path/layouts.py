"""Record layouts: positions of the variable fields of records, and slicing of records there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from operator import itemgetter
from struct import Struct
from typing import NamedTuple, TypeAlias

from guardwave.control_plane.ingest.contract import fields
from guardwave.control_plane.ingest.fast_path.variable_fields import Role, VariableField
from guardwave.control_plane.ingest.model.record_templates import (
    EndNumbers,
    RecordBatch,
    RecordTemplate,
)
from guardwave.reducer.contract import DURATION_LIMIT_SECONDS

# The slices of a record, in their order.
SlicedValues: TypeAlias = tuple[object, ...]

# In the order in which an end has them, after its duration.
_COUNTS = (
    Role.TURNS,
    Role.TOOL_CALLS,
    Role.TRANSITIONS,
    Role.INPUT_TOKENS,
    Role.OUTPUT_TOKENS,
    Role.CALLS_AFTER_WOULD_STOP,
)
_MOST_VARINTS = 16_384


class Varints(dict[bytes, int]):
    """Numbers by their bytes, up to four of them; ValueError for bytes that are no varint."""

    def __missing__(self, encoded: bytes) -> int:
        *more, last = encoded
        if last >= 0x80 or any(byte < 0x80 for byte in more):
            raise ValueError("not one number")
        number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(encoded))
        if len(self) >= _MOST_VARINTS:
            self.clear()
        self[encoded] = number
        return number


_read_varint = Varints().__getitem__


class EndFields(NamedTuple):
    """Positions of the numbers of an end among the slices of its record.

    `arrange` puts a None, the duration and the counts, in this order, into the order of an end.
    """

    duration_at: int | None
    counts_of: Callable[[SlicedValues], tuple[bytes, ...]]
    arrange: Callable[[tuple[float | None, ...]], EndNumbers]

    def read(self, values: SlicedValues) -> EndNumbers:
        """Return the numbers, in order; raises ValueError when one of them is odd."""
        duration_at, counts_of, arrange = self
        duration: float | None = None
        if duration_at is not None:
            duration = values[duration_at]  # type: ignore[assignment]  # as the layout states
        # "not a number" is in no range
        if duration is not None and not 0 <= duration <= DURATION_LIMIT_SECONDS:
            raise ValueError("the duration is odd")
        return arrange((None, duration, *map(_read_varint, counts_of(values))))


def end_fields_of(positions: Mapping[Role, int]) -> EndFields | None:
    """Return the reader of an end's numbers from their positions; None without any number."""
    counts = [role for role in _COUNTS if role in positions]
    if not counts and Role.DURATION not in positions:
        return None
    # 0 is the None, 1 the duration, and the counts come behind them
    order = [2 + counts.index(role) if role in positions else 0 for role in _COUNTS]
    arrange: Callable[..., EndNumbers] = itemgetter(1, *order)
    counts_of = _tuple_getter([positions[role] for role in counts])
    return EndFields(positions.get(Role.DURATION), counts_of, arrange)


def _tuple_getter(positions: Sequence[int]) -> Callable[[SlicedValues], tuple[bytes, ...]]:
    """Return an itemgetter that gives a tuple also for one position or none."""
    if len(positions) > 1:
        return itemgetter(*positions)
    first = positions[0] if positions else 0
    return itemgetter(slice(first, first + len(positions)))


# Distinguishes the layouts of one size.
LayoutKey: TypeAlias = tuple[object, ...]

_CODES = {Role.TIME: "Q", Role.DURATION: "d"}
_SUBJECT_ROLES = (Role.PROMPT, Role.ASSIGNMENT)
# An owner's records come many at a time.
_OWNERS = 16_384


class _AssignmentIds(dict[bytes, tuple[str, ...]]):
    """Assignment ids by the number of their span and the bytes of it beside the prompt id."""

    def keep(self, key: bytes, ids: tuple[str, ...]) -> None:
        if len(key) <= fields.LONGEST_KEPT:
            if len(self) >= _OWNERS:
                self.clear()
            self[key] = ids


_ASSIGNMENT_IDS = _AssignmentIds()
_span_numbers = count()


class SubjectSpan:
    """Layout of the bytes that name a record's subject: its prompt id and its assignment ids.

    Two records with the same bytes there are of one prompt. `prompt` and `ids` are slices of the
    span; the rest of it is constant.
    """

    __slots__ = (
        "_after",
        "_before",
        "_constants",
        "_has_bytes_before",
        "_ids",
        "_number",
        "_prompt",
        "key",
    )

    def __init__(self, span: bytes, prompt: slice, ids: Sequence[slice]) -> None:
        self._prompt, self._ids = prompt, ids
        self._before, self._after = slice(0, prompt.start), slice(prompt.stop, len(span))
        self._has_bytes_before = prompt.start > 0
        bounds = [(part.start, part.stop) for part in (prompt, *ids)]
        edges = [0, *chain.from_iterable(sorted(bounds)), len(span)]
        self._constants = [slice(*gap) for gap in zip(edges[::2], edges[1::2], strict=True)]
        self.key: LayoutKey = (tuple(bounds), self._constants_of(span))
        self._number = next(_span_numbers).to_bytes(8)

    def empty_batch(self, span: bytes) -> RecordBatch:
        """Return an empty batch of a prompt and its assignment ids.

        Raises:
            ValueError: the prompt's id is no text, or the constant bytes differ.
            ItemRejected: the assignment ids are malformed.
        """
        key = self._number + span[self._after]
        if self._has_bytes_before:
            key += span[self._before]
        ids = _ASSIGNMENT_IDS.get(key)
        if ids is None:
            ids = self._read_ids(span)
            _ASSIGNMENT_IDS.keep(key, ids)
        # as `RecordBatch(...)`, without a call in Python: each prompt takes one
        return tuple.__new__(RecordBatch, (span[self._prompt].decode(), ids, [], [], {}))

    def _read_ids(self, span: bytes) -> tuple[str, ...]:
        if self._constants_of(span) != self.key[-1]:
            raise ValueError("another layout")
        return fields.ids_of(tuple([span[part].decode() for part in self._ids]))

    def _constants_of(self, span: bytes) -> LayoutKey:
        return tuple([span[part] for part in self._constants])


class RecordSlicer(NamedTuple):
    """Functions that take a record of one layout apart.

    `unpack` slices it: `constants_of` gives the slices that records of the layout share, `span_of`
    the bytes of its subject span, and `time_at` is the position of the time.
    """

    unpack: Callable[[bytes], SlicedValues]
    constants_of: Callable[[SlicedValues], object]
    span_of: Callable[[SlicedValues], bytes]
    subject: SubjectSpan
    time_at: int
    end_fields: EndFields | None


@dataclass(slots=True, eq=False)
class RecordLayout:
    """Layout of records of one size, with the templates that were read of them.

    `templates` are by the constant slices. `recent` is the pair found last: comparing with it is
    cheaper than hashing.
    """

    slicer: RecordSlicer
    key: LayoutKey
    templates: dict[object, RecordTemplate] = field(default_factory=dict)
    recent: tuple[object, RecordTemplate | None] = (None, None)

    def find(self, constants: object) -> RecordTemplate | None:
        """Return the template of records with these constant slices."""
        template = self.templates.get(constants)
        if template is not None:
            self.recent = constants, template
        return template

    def keep(self, constants: object, template: RecordTemplate) -> None:
        """Remember the template of records with these constant slices."""
        self.templates[constants] = template
        self.recent = constants, template


class _FormatBuilder:
    """Collects the format of a Struct that slices a record, from its first byte to its last."""

    def __init__(self) -> None:
        self.codes = ["<"]
        self.constants: list[int] = []
        self.positions: dict[Role, int] = {}
        self.spans: list[int] = []
        self._count = 0
        self._end = 0

    def add(self, code: str, start: int, end: int) -> int:
        """Add a slice, and the constant slice before it; return its position."""
        if start > self._end:
            self.constants.append(self._count)
            self.codes.append(f"{start - self._end}s")
            self._count += 1
        self._end = end
        if code:
            self.codes.append(code)
            self._count += not code.endswith("x")
        return self._count - 1


def layout_of(record: bytes, variable_fields: Sequence[VariableField]) -> RecordLayout:
    """Return the layout of a record; one of its fields is a prompt's id and one a time."""
    subject_fields = [found for found in variable_fields if found.role in _SUBJECT_ROLES]
    first = min(found.start for found in subject_fields)
    last = max(found.end for found in subject_fields)
    # Where another field lies between prompt and assignment ids, each of them is sliced by itself.
    is_one_span = not any(
        first <= found.start < last for found in variable_fields if found.role not in _SUBJECT_ROLES
    )
    builder = _FormatBuilder()
    for role, start, end in variable_fields:
        if role is Role.SKIPPED:
            builder.add(f"{end - start}x", start, end)
        elif role not in _SUBJECT_ROLES:
            code = _CODES.get(role, f"{end - start}s")
            builder.positions[role] = builder.add(code, start, end)
        elif not is_one_span:
            builder.spans.append(builder.add(f"{end - start}s", start, end))
        elif not builder.spans:
            builder.spans.append(builder.add(f"{last - first}s", first, last))
    builder.add("", len(record), len(record))
    codes = "".join(builder.codes)
    unpack = Struct(codes).unpack
    span_of = _joiner(builder.spans)
    span = span_of(unpack(record))
    subject = _subject_span(span, subject_fields, first if is_one_span else None)
    roles = tuple(found.role for found in variable_fields)
    slicer = RecordSlicer(
        unpack,
        itemgetter(*builder.constants),
        span_of,
        subject,
        builder.positions[Role.TIME],
        end_fields_of(builder.positions),
    )
    return RecordLayout(slicer, (codes, roles, subject.key))


def _joiner(positions: Sequence[int]) -> Callable[[SlicedValues], bytes]:
    """Return the function that joins the slices at these positions."""
    if len(positions) == 1:
        return itemgetter(*positions)
    slices_of = itemgetter(*positions)
    return lambda values: b"".join(slices_of(values))


def _subject_span(
    span: bytes, subject_fields: Sequence[VariableField], first: int | None
) -> SubjectSpan:
    """Return the layout of a span that starts at `first`; None for one of joined slices."""
    prompt, ids, joined = slice(0, 0), [], 0
    for role, start, end in subject_fields:
        offset = joined if first is None else start - first
        part = slice(offset, offset + end - start)
        joined += end - start
        if role is Role.PROMPT:
            prompt = part
        else:
            ids.append(part)
    return SubjectSpan(span, prompt, ids)
