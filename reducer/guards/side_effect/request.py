"""Working copy: the records of one request while its calls are judged one after the other."""

from collections.abc import Iterable, Mapping

from guardwave.reducer.guards.side_effect.ladder import Scope
from guardwave.reducer.guards.side_effect.repeat import FirstUse
from guardwave.reducer.guards.side_effect.state import (
    NEW_TRACK,
    CallRecord,
    Mark,
    RequestLog,
    SideEffectDuplicate,
    Track,
    in_request,
)


class WorkingCopy:
    """A copy of the state that changes in place, so that a batch copies it once and not per call.

    `before` is the original state and does not change; `request` is the request of the calls.
    `done` returns the state after all of them. Marks and refusals belong to the request: they hold
    for an identity in whatever thread it occurs.
    """

    __slots__ = (
        "_is_changed",
        "_log",
        "_marks",
        "_refused",
        "before",
        "calls",
        "is_threaded",
        "next_ordinal",
        "request",
        "tracks",
    )

    def __init__(self, before: SideEffectDuplicate, request: str) -> None:
        log = before.log_of(request)
        self.before = before
        self.request = request
        self.is_threaded = before.ladder.scope is Scope.THREAD
        self.tracks = dict(before.tracks)
        self.calls = dict(log.calls)
        self.next_ordinal = log.next_ordinal
        self._log = log
        # Most batches repeat nothing, so these two are copied only when they change.
        self._refused: dict[str, FirstUse] | None = None
        self._marks: dict[str, Mark] | None = None
        self._is_changed = False

    def done(self) -> SideEffectDuplicate:
        """Return the state after all calls; the copy must not be used after this."""
        if not self._is_changed:
            return self.before
        marks = self._log.marks if self._marks is None else self._marks
        log = RequestLog(self.calls, self.refused, marks, self.next_ordinal)
        requests = {**self.before.requests, self.request: log}
        return self.before.with_records(self.tracks, requests)

    def record(self, call_id: str, record: CallRecord) -> None:
        """Keep the record of a call."""
        self._is_changed = True
        self.calls[call_id] = record

    def track_of(self, identity: str) -> Track:
        """Return an identity's first run and those in flight."""
        return self.tracks.get(identity, NEW_TRACK)

    def follow(self, identity: str, track: Track) -> None:
        """Keep an identity's track, or drop an empty one."""
        self._is_changed = True
        if track == NEW_TRACK:
            self.tracks.pop(identity, None)
        else:
            self.tracks[identity] = track

    @property
    def refused(self) -> Mapping[str, FirstUse]:
        """The refused repeats of this request, by identity."""
        return self._log.refused if self._refused is None else self._refused

    def refuse(self, identities: Iterable[str], first: FirstUse) -> None:
        """Remember a refusal for the request."""
        self._is_changed = True
        local = (self._local(identity) for identity in identities)
        self._refused = {**self.refused, **dict.fromkeys(local, first)}

    def refused_of(self, identity: str) -> FirstUse | None:
        """Return the run that a person refused to repeat in this request, if there is one."""
        refused = self.refused
        return refused.get(self._local(identity)) if refused else None

    def places_of(self, identity: str) -> tuple[str, ...]:
        """Return an identity and, for one of a thread, its form for calls without a thread."""
        local = self._local(identity)
        return (identity,) if local == identity else (identity, local)

    def _local(self, identity: str) -> str:
        return in_request(identity, self.request) if self.is_threaded else identity

    def start(self, home: str, use: FirstUse) -> None:
        """Follow a run that begins now; it replaces an expired first run."""
        for place in self.places_of(home):
            track = self.track_of(place)
            if self._is_expired(track, use.at_ms):
                track = track._replace(first=None)
                if place == home:
                    self.unmark(home)
            self.follow(place, track.with_running(use))

    def _is_expired(self, track: Track, now_ms: int) -> bool:
        first = track.first
        return first is not None and self.before.ladder.is_expired(first.at_ms, now_ms)

    def mark_of(self, identity: str) -> Mark:
        """Return the mark of an identity, or its first mark."""
        marks = self._log.marks if self._marks is None else self._marks
        if self.is_threaded:
            identity = in_request(identity, self.request)
        return marks.get(identity) or Mark(self.next_ordinal)

    def mark(self, identity: str, mark: Mark) -> None:
        """Keep the mark of an identity, whose ordinal is then used."""
        if self.is_threaded:
            identity = in_request(identity, self.request)
        self._writable_marks()[identity] = mark
        self.next_ordinal = max(self.next_ordinal, mark.ordinal + 1)

    def unmark(self, identity: str) -> None:
        """Forget an identity whose next run is new work and a new candidate."""
        self._writable_marks().pop(self._local(identity), None)

    def _writable_marks(self) -> dict[str, Mark]:
        self._is_changed = True
        if self._marks is None:
            self._marks = dict(self._log.marks)
        return self._marks
