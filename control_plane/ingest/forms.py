"""The short way of log records: one that is as an earlier one was but for its holes is cut apart.

A host's records differ in little but their prompt and their time. A form is how the bytes of such
records lie; what they say was read and checked once, the long way. What the short way gives is what
the long way gives; whatever differs outside of the holes, or is odd within them, goes the long way.
Only the order is another: of a body what goes the short way is booked first. Where two records of
one identity contradict each other within a body, which of them counts is not defined.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from control_plane.clock import NANOSECONDS
from control_plane.ingest.accepted import NEWEST_NS, OLDEST_NS
from control_plane.ingest.event_time import Clock
from control_plane.ingest.form_layouts import Form, LayoutKey, Whose, form_of
from control_plane.ingest.proto_holes import find_holes
from control_plane.ingest.records import Origin, PromptEnd, Record
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wordings import NO_NUMBERS, Run, Worded, Wording, numbers_of_end
from control_plane.stores.seen import SEEN_BUCKET_S

_LONGEST = 2048
# Some hundreds are a host's whole vocabulary; what is kept of each takes so many bytes beside it.
_REMEMBERED_BYTES = 16 * 1024 * 1024
_BESIDE_BYTES = 2048
# A hole takes a code, a role and a place, and each wording a text before it.
_HOLE_BYTES = 160
# So many forms of one size are told apart by looking at each.
_OF_ONE_SIZE = 4
# After so many more in vain than were of use one of sixteen is learned from: it costs as much as
# reading the record, and where records differ in more than their holes nothing is gained by it.
_IN_VAIN, _EVERY = 512, 16
_NOBODY = Origin("", "", "", "", 0, ())
_NO_RUN = Run("", (), [], [], {})
MINUTE_NS = SEEN_BUCKET_S * NANOSECONDS


class Forms:
    """The forms of records that were read before, by their size.

    Shared by the threads of a web worker: each step is one of a dict, and what two threads learn at
    once is learned twice, or by one of them.
    """

    def __init__(self, *, remembered_bytes: int = _REMEMBERED_BYTES) -> None:
        self._remembered_bytes = remembered_bytes
        self._by_size: dict[int, tuple[Form, ...]] = {}
        # one for all forms that have it, so that a prompt's records are seen to be of one
        self._whose: dict[LayoutKey, Whose] = {}
        self._bytes = 0
        self._in_vain = 0
        self._unknown = 0

    def recognise(
        self, records: Sequence[bytes], *, now_ns: int, clock: Clock
    ) -> tuple[list[Run], list[bytes]]:
        """Return what says what was said before, and the records that have to go the long way.

        `now_ns` is the environment's time; `clock` maps a sender's nanoseconds to it.
        """
        runs, rest = list[Run](), list[bytes]()
        by_size, last, lower, upper = self._by_size, b"", 0, 0
        whose: Whose | None = None
        _, _, wordings, times_ns, numbers = _NO_RUN
        # one pass with few calls: it is most of what the worker does for a record
        for record in records:
            for form in by_size.get(len(record), ()):
                cut_up, constants_of, who_of, its_whose, time_at, ending = form.layout
                cut = cut_up(record)
                said = constants_of(cut)
                recent, wording = form.recent
                if said == recent or (wording := form.find(said)) is not None:
                    break
            else:
                rest.append(record)
                continue
            try:
                who, time_ns = who_of(cut), clock(cut[time_at])  # type: ignore[arg-type]  # a time
                if who != last or its_whose is not whose or not lower <= time_ns < upper:
                    if not lower <= time_ns < upper:
                        lower, upper = _minute_of(time_ns, now_ns)
                    whose, last, run = its_whose, who, its_whose.run(who)
                    runs.append(run)
                    _, _, wordings, times_ns, numbers = run
                if ending is not None:
                    numbers[len(wordings)] = ending.read(cut)
            except (ValueError, Refusal):
                whose = None
                rest.append(record)
            else:
                wordings.append(wording)  # type: ignore[arg-type]  # it was found
                times_ns.append(time_ns)
        self._in_vain = max(self._in_vain - (len(records) - len(rest)), 0)
        return [run for run in runs if run.wordings], rest

    def learn(self, record: bytes, read: Record, dropped: int) -> None:
        """Keep what the long way read of a record, if it can come again.

        `dropped` counts its attributes that nothing was read of.
        """
        if not isinstance(read, Worded) or not 0 < len(record) <= _LONGEST:
            return
        if read.has_body or read.deny_listed:
            return
        self._unknown += 1
        if self._in_vain >= _IN_VAIN and self._unknown % _EVERY:
            return
        self._in_vain = min(self._in_vain + 1, _IN_VAIN)
        holes = find_holes(record, is_end=isinstance(read, PromptEnd))
        if holes is None:
            return
        if self._bytes > self._remembered_bytes:
            self._by_size, self._whose = {}, {}
            self._bytes = 0
        form = self._known(form_of(record, holes), len(record))
        if _is_as_read(form, record, read):
            self._keep(record, form, Wording(_of_nobody(read), dropped), len(holes))

    def _known(self, form: Form, size: int) -> Form:
        """Return the form that is kept of this layout, or else this one."""
        for each in self._by_size.get(size, ()):
            if each.key == form.key:
                return each
        whose = form.layout.whose
        return replace(form, layout=form.layout._replace(whose=self._whose.get(whose.key, whose)))

    def _keep(self, record: bytes, form: Form, wording: Wording, holes: int) -> None:
        self._whose.setdefault(form.layout.whose.key, form.layout.whose)
        self._bytes += len(record) + _BESIDE_BYTES + holes * _HOLE_BYTES
        form.keep(form.layout.constants_of(form.layout.cut(record)), wording)
        held = [each for each in self._by_size.get(len(record), ()) if each is not form]
        self._by_size[len(record)] = (form, *held[: _OF_ONE_SIZE - 1])


class Known(NamedTuple):
    """The forms as one request finds them: at the environment's time, by the sender's clock."""

    forms: Forms
    now_ns: int
    clock: Clock

    def recognise(self, records: Sequence[bytes]) -> tuple[list[Run], list[bytes]]:
        """Return what says what was said before, and the records that have to go the long way."""
        return self.forms.recognise(records, now_ns=self.now_ns, clock=self.clock)


def _minute_of(time_ns: int, now_ns: int) -> tuple[int, int]:
    """Return the bounds of the time's minute, as far as it is accepted; the second is outside.

    Raises ValueError for a time that is not accepted. One that is unset is 1970, which never is.
    """
    oldest, newest = now_ns - OLDEST_NS, now_ns + NEWEST_NS
    if not oldest <= time_ns <= newest:
        raise ValueError("late or future")
    lower = time_ns - time_ns % MINUTE_NS
    return max(lower, oldest), min(lower + MINUTE_NS, newest + 1)


def _is_as_read(form: Form, record: bytes, read: Worded) -> bool:
    """Whether the form gives of a record what was read of it the long way."""
    layout = form.layout
    cut = layout.cut(record)
    try:
        run = layout.whose.run(layout.who_of(cut))
        numbers = NO_NUMBERS if layout.ending is None else layout.ending.read(cut)
    except (ValueError, Refusal):
        return False
    if run.prompt_id != read.prompt_id:
        return False
    if isinstance(read, PromptEnd) and numbers != numbers_of_end(read):
        return False
    return (run.assignment_ids or read.origin.assignment_ids) == read.assignment_ids


def _of_nobody(read: Worded) -> Worded:
    return replace(read, origin=_NOBODY, time_ns=0, prompt_id="", assignment_ids=())
