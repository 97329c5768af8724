"""The short way of log records: one that is as an earlier one was but for its holes is cut apart.

A host's records differ in little but their prompt and their time. A form is how the bytes of such
records lie; what they say was read and checked once, the long way. What the short way gives is what
the long way gives; whatever differs outside of the holes, or is odd within them, goes the long way.
Only the order is another: of a body what goes the short way is booked first. Where two records of
one identity contradict each other within a body, which of them counts is not defined.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from struct import Struct
from typing import NamedTuple, TypeAlias

from control_plane.ingest import fields as attributes
from control_plane.ingest.accepted import NEWEST_NS, OLDEST_NS
from control_plane.ingest.event_time import Clock
from control_plane.ingest.proto_holes import Hole, Role, find_holes
from control_plane.ingest.records import Origin, PromptEnd, Record
from control_plane.ingest.rejections import Refusal
from control_plane.ingest.wordings import (
    NO_NUMBERS,
    EndNumbers,
    Run,
    Worded,
    Wording,
    numbers_of_end,
)
from reducer.contract import DURATION_LIMIT_SECONDS

Cut: TypeAlias = tuple[object, ...]
Layout: TypeAlias = tuple[str, tuple[Role, ...]]
Who: TypeAlias = tuple[bytes, ...]

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
_CODES = {Role.TIME: "Q", Role.DURATION: "d"}
# In the order in which an end has them, behind its duration.
_COUNTS = (
    Role.TURNS,
    Role.TOOL_CALLS,
    Role.TRANSITIONS,
    Role.INPUT_TOKENS,
    Role.OUTPUT_TOKENS,
    Role.CALLS_AFTER_WOULD_STOP,
)
# Their records come many at a time.
_OWNERS = 16_384
_NOBODY = Origin("", "", "", "", 0, ())


class Varints(dict[bytes, int]):
    """Numbers by how they are written, in up to four bytes; -1 for what is no one number."""

    def __missing__(self, written: bytes) -> int:
        *more, last = written
        is_one = last < 0x80 and all(byte >= 0x80 for byte in more)
        number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(written)) if is_one else -1
        if len(self) >= _MOST_VARINTS:
            self.clear()
        self[written] = number
        return number


_MOST_VARINTS = 16_384
_read_varint = Varints().__getitem__


class Ending(NamedTuple):
    """Where the numbers of an end are among what its form cuts out.

    `arranged` puts into order first a None, then the duration, then the counts.
    """

    duration_at: int | None
    counts_of: Callable[[Cut], tuple[bytes, ...]]
    arranged: Callable[[tuple[float | None, ...]], EndNumbers]

    def read(self, cut: Cut) -> EndNumbers | None:
        """Return the numbers, in order; None when one of them is odd."""
        duration_at, counts_of, arranged = self
        duration: float | None = None
        if duration_at is not None:
            duration = cut[duration_at]  # type: ignore[assignment]  # as the form says
        # not a number is in no range
        if duration is not None and not 0 <= duration <= DURATION_LIMIT_SECONDS:
            return None
        numbers = arranged((None, duration, *map(_read_varint, counts_of(cut))))
        return None if -1 in numbers else numbers


@dataclass(slots=True, eq=False)
class Form:
    """How the bytes of records of one size lie: constant parts, and a hole after each but the last.

    `known` has what was read of records by their constant parts, `recent` what came last of it: to
    compare with that is cheaper than to hash. `time_at` and `who_of` tell where the time is, and
    prompt id and assignment ids.
    """

    cut: Callable[[bytes], Cut]
    time_at: int
    who_of: Callable[[Cut], Who]
    ending: Ending | None
    layout: Layout
    known: dict[Cut, Wording] = field(default_factory=dict)
    recent: tuple[Cut, Wording | None] = ((), None)

    def find(self, said: Cut) -> Wording | None:
        """Return what was read of records with these constant parts."""
        wording = self.known.get(said)
        if wording is not None:
            self.recent = said, wording
        return wording

    def keep(self, said: Cut, wording: Wording) -> None:
        """Remember what was read of records with these constant parts."""
        self.known[said] = wording
        self.recent = said, wording


class Forms:
    """The forms of records that were read before, by their size.

    Shared by the threads of a web worker: each step is one of a dict, and what two threads learn at
    once is learned twice, or by one of them.
    """

    def __init__(self, *, remembered_bytes: int = _REMEMBERED_BYTES) -> None:
        self._remembered_bytes = remembered_bytes
        self._by_size: dict[int, tuple[Form, ...]] = {}
        self._bytes = 0
        self._in_vain = 0
        self._unknown = 0

    def recognise(
        self, records: Sequence[bytes], *, now_ns: int, clock: Clock
    ) -> tuple[list[Run], list[bytes]]:
        """Return what says what was said before, and the records that have to go the long way.

        `now_ns` is the environment's time; `clock` maps a sender's nanoseconds to it.
        """
        oldest, newest = now_ns - OLDEST_NS, now_ns + NEWEST_NS
        runs: list[Run] = []
        rest: list[bytes] = []
        by_size, run = self._by_size, None
        last: Who = ()
        # one pass with few calls: it is most of what the worker does for a record
        for record in records:
            for form in by_size.get(len(record), ()):
                cut = form.cut(record)
                said = cut[::2]
                recent, wording = form.recent
                if said == recent or (wording := form.find(said)) is not None:
                    break
            else:
                rest.append(record)
                continue
            who = form.who_of(cut)
            if who != last:
                run, last = _run(who), who
                if run is not None:
                    runs.append(run)
            # a time that is unset is 1970, which is never accepted
            time_ns = clock(cut[form.time_at])  # type: ignore[arg-type]  # as the form says
            ending = form.ending
            numbers = None if ending is None else ending.read(cut)
            if (
                wording is None
                or run is None
                or not oldest <= time_ns <= newest
                or (numbers is None and ending is not None)
            ):
                rest.append(record)
            else:
                run.said.append((wording, time_ns, numbers, record))
        self._in_vain = max(self._in_vain - (len(records) - len(rest)), 0)
        return [run for run in runs if run.said], rest

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
            self._by_size = {}
            self._bytes = 0
        form = self._form_of(record, holes)
        cut = form.cut(record)
        if _is_as_read(form, cut, read):
            self._keep(record, form, cut, Wording(_of_nobody(read), dropped))

    def _form_of(self, record: bytes, holes: Sequence[Hole]) -> Form:
        codes, done = ["<"], 0
        for role, start, end in holes:
            codes.append(f"{start - done}s{_CODES.get(role, f'{end - start}s')}")
            done = end
        layout = "".join([*codes, f"{len(record) - done}s"]), tuple(hole.role for hole in holes)
        known = (each for each in self._by_size.get(len(record), ()) if each.layout == layout)
        return next(known, None) or _form(layout)

    def _keep(self, record: bytes, form: Form, cut: Cut, wording: Wording) -> None:
        self._bytes += len(record) + _BESIDE_BYTES + len(form.layout[1]) * _HOLE_BYTES
        form.keep(cut[::2], wording)
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


def _form(layout: Layout) -> Form:
    codes, roles = layout
    at = {role: 2 * number + 1 for number, role in enumerate(roles)}
    ids = [2 * number + 1 for number, role in enumerate(roles) if role is Role.ASSIGNMENT]
    counts = [role for role in _COUNTS if role in at]
    ending = None
    if counts or Role.DURATION in at:
        places = [2 + counts.index(role) if role in at else 0 for role in _COUNTS]
        counts_of = _getter([at[role] for role in counts])
        arranged: Callable[..., EndNumbers] = itemgetter(1, *places)
        ending = Ending(at.get(Role.DURATION), counts_of, arranged)
    who_of = _getter([at[Role.PROMPT], *ids])
    return Form(Struct(codes).unpack, at[Role.TIME], who_of, ending, layout)


def _getter(places: Sequence[int]) -> Callable[[Cut], tuple[bytes, ...]]:
    """Return what gives the items at these places as a tuple, even of one or none."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))


class _Ids(dict[Who, tuple[str, ...]]):
    """Assignment ids by the texts that name them; raises UnicodeDecodeError and Refusal."""

    def __missing__(self, texts: Who) -> tuple[str, ...]:
        ids = attributes.ids_of(tuple([text.decode() for text in texts]))
        if sum(map(len, texts)) <= attributes.LONGEST_KEPT:
            if len(self) >= _OWNERS:
                self.clear()
            self[texts] = ids
        return ids


_IDS = _Ids()


def _run(who: Who) -> Run | None:
    """Return an empty run of a prompt and its assignment ids; None when one of them is odd."""
    try:
        return Run(who[0].decode(), _IDS[who[1:]], [])
    except (UnicodeDecodeError, Refusal):
        return None


def _is_as_read(form: Form, cut: Cut, read: Worded) -> bool:
    """Whether the form gives of a record what was read of it the long way."""
    run = _run(form.who_of(cut))
    if run is None or run.prompt_id != read.prompt_id:
        return False
    numbers = None if form.ending is None else form.ending.read(cut)
    if isinstance(read, PromptEnd) and (numbers or NO_NUMBERS) != numbers_of_end(read):
        return False
    return (run.assignment_ids or read.origin.assignment_ids) == read.assignment_ids


def _of_nobody(read: Worded) -> Worded:
    return replace(read, origin=_NOBODY, time_ns=0, prompt_id="", assignment_ids=())
