"""Layout cache: the record layouts of a web worker, and how a request's records match them.

A host's records differ in little but their prompt and their time. A layout states how the bytes of
such records lie; the slow path has read and checked their content once. The fast path gives what
the slow path gives: a record that differs outside of the variable fields, or has an odd value in
one of them, takes the slow path. Only the order differs: within a body, evidence of the fast path
is built first. Where two records of one identity contradict each other within a body, it is not
defined which of them counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.contract import NEWEST_NS, OLDEST_NS, Clock
from guardwave.control_plane.ingest.fast_path.layouts import (
    LayoutKey,
    RecordLayout,
    SubjectSpan,
    layout_of,
)
from guardwave.control_plane.ingest.fast_path.variable_fields import find_variable_fields
from guardwave.control_plane.ingest.model.record_templates import (
    NO_NUMBERS,
    RecordBatch,
    RecordTemplate,
    TemplatedRecord,
    end_numbers,
)
from guardwave.control_plane.ingest.model.records import Origin, PromptEnd, Record
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DEDUPE_BUCKET_S

_LONGEST = 2048
# A host's whole vocabulary is some hundreds of layouts; each is kept with so many further bytes.
_REMEMBERED_BYTES = 16 * 1024 * 1024
_LAYOUT_BYTES = 2048
# A variable field takes a format code, a role and a position, and a template the text before it.
_FIELD_BYTES = 160
# Layouts of one size are compared one after the other, so only a few are kept.
_LAYOUTS_PER_SIZE = 4
# Adding a layout costs as much as reading the record. Where records differ in more than their
# variable fields that is wasted: after so many more misses than matches, one of sixteen is added.
_WASTED, _EVERY = 512, 16
_NO_ORIGIN = Origin("", "", "", "", 0, ())
_NO_BATCH = RecordBatch("", (), [], [], {})
MINUTE_NS = DEDUPE_BUCKET_S * NANOSECONDS


class LayoutCache:
    """The layouts of records that were read before, by their size.

    Shared by the threads of a web worker: each step is one operation of a dict, and a layout that
    two threads add at once is added twice, or by one of them.
    """

    def __init__(self, *, remembered_bytes: int = _REMEMBERED_BYTES) -> None:
        self._remembered_bytes = remembered_bytes
        self._by_size: dict[int, tuple[RecordLayout, ...]] = {}
        # layouts share a span where they can: `match` compares spans by identity
        self._subject_spans: dict[LayoutKey, SubjectSpan] = {}
        self._bytes = 0
        self._wasted = 0
        self._unknown = 0

    def match(
        self, records: Sequence[bytes], *, now_ns: int, clock: Clock
    ) -> tuple[list[RecordBatch], list[bytes]]:
        """Return batches of the records that match a layout, and the others for the slow path.

        `now_ns` is the environment's time; `clock` maps a sender's nanoseconds to it.
        """
        batches, rest = list[RecordBatch](), list[bytes]()
        by_size, last_span, lower, upper = self._by_size, b"", 0, 0
        last_subject: SubjectSpan | None = None
        _, _, templates, times_ns, numbers = _NO_BATCH
        # One pass with few calls: it is most of what the worker does for a record.
        for record in records:
            for layout in by_size.get(len(record), ()):
                unpack, constants_of, span_of, subject, time_at, end_fields = layout.slicer
                values = unpack(record)
                constants = constants_of(values)
                recent, template = layout.recent
                if constants == recent or (template := layout.find(constants)) is not None:
                    break
            else:
                rest.append(record)
                continue
            try:
                span, time_ns = span_of(values), clock(values[time_at])  # type: ignore[arg-type]
                if span != last_span or subject is not last_subject or not lower <= time_ns < upper:
                    if not lower <= time_ns < upper:
                        lower, upper = _minute_of(time_ns, now_ns)
                    last_subject, last_span, batch = subject, span, subject.empty_batch(span)
                    batches.append(batch)
                    _, _, templates, times_ns, numbers = batch
                if end_fields is not None:
                    numbers[len(templates)] = end_fields.read(values)
            except (ValueError, ItemRejected):
                last_subject = None
                rest.append(record)
            else:
                templates.append(template)  # type: ignore[arg-type]  # it was found
                times_ns.append(time_ns)
        self._wasted = max(self._wasted - (len(records) - len(rest)), 0)
        return [batch for batch in batches if batch.templates], rest

    def add(self, message: bytes, record: Record, dropped: int) -> None:
        """Keep the layout of a record that the slow path has read, if it can come again.

        `message` are its bytes; `dropped` counts the attributes that were not read.
        """
        if not isinstance(record, TemplatedRecord) or not 0 < len(message) <= _LONGEST:
            return
        if record.has_body or record.deny_listed:
            return
        self._unknown += 1
        if self._wasted >= _WASTED and self._unknown % _EVERY:
            return
        self._wasted = min(self._wasted + 1, _WASTED)
        fields = find_variable_fields(message, is_end=isinstance(record, PromptEnd))
        if fields is None:
            return
        if self._bytes > self._remembered_bytes:
            self._by_size, self._subject_spans = {}, {}
            self._bytes = 0
        layout = self._shared(layout_of(message, fields), len(message))
        if _agrees(layout, message, record):
            template = RecordTemplate(_without_sender(record), dropped)
            self._keep(message, layout, template, len(fields))

    def _shared(self, layout: RecordLayout, size: int) -> RecordLayout:
        """Return the kept layout that equals this one, or else this one."""
        for kept in self._by_size.get(size, ()):
            if kept.key == layout.key:
                return kept
        subject = layout.slicer.subject
        shared = self._subject_spans.get(subject.key, subject)
        return replace(layout, slicer=layout.slicer._replace(subject=shared))

    def _keep(
        self, message: bytes, layout: RecordLayout, template: RecordTemplate, fields: int
    ) -> None:
        slicer = layout.slicer
        self._subject_spans.setdefault(slicer.subject.key, slicer.subject)
        self._bytes += len(message) + _LAYOUT_BYTES + fields * _FIELD_BYTES
        layout.keep(slicer.constants_of(slicer.unpack(message)), template)
        others = [kept for kept in self._by_size.get(len(message), ()) if kept is not layout]
        self._by_size[len(message)] = (layout, *others[: _LAYOUTS_PER_SIZE - 1])


class LayoutMatcher(NamedTuple):
    """A layout cache for one request: at the environment's time, by the sender's clock."""

    layout_cache: LayoutCache
    now_ns: int
    clock: Clock

    def match(self, records: Sequence[bytes]) -> tuple[list[RecordBatch], list[bytes]]:
        """Return batches of the records that match a layout, and the others for the slow path."""
        return self.layout_cache.match(records, now_ns=self.now_ns, clock=self.clock)


def _minute_of(time_ns: int, now_ns: int) -> tuple[int, int]:
    """Return the accepted part of the time's minute as [lower, upper).

    Raises ValueError for a time that is not accepted. An unset time is 1970, which never is.
    """
    oldest, newest = now_ns - OLDEST_NS, now_ns + NEWEST_NS
    if not oldest <= time_ns <= newest:
        raise ValueError("late or future")
    lower = time_ns - time_ns % MINUTE_NS
    return max(lower, oldest), min(lower + MINUTE_NS, newest + 1)


def _agrees(layout: RecordLayout, message: bytes, record: TemplatedRecord) -> bool:
    """Whether the layout gives of a message what the slow path read of it."""
    slicer = layout.slicer
    values = slicer.unpack(message)
    try:
        batch = slicer.subject.empty_batch(slicer.span_of(values))
        numbers = NO_NUMBERS if slicer.end_fields is None else slicer.end_fields.read(values)
    except (ValueError, ItemRejected):
        return False
    if batch.prompt_id != record.prompt_id:
        return False
    if isinstance(record, PromptEnd) and numbers != end_numbers(record):
        return False
    return (batch.assignment_ids or record.origin.assignment_ids) == record.assignment_ids


def _without_sender(record: TemplatedRecord) -> TemplatedRecord:
    return replace(record, origin=_NO_ORIGIN, time_ns=0, prompt_id="", assignment_ids=())
