"""What one request knows while its calls are decided, one after the other."""

from collections.abc import Iterable, Mapping

from reducer.guards.side_effect.ladder import Scope
from reducer.guards.side_effect.repeat import FirstUse
from reducer.guards.side_effect.state import (
    NEW_TRACK,
    CallRecord,
    Mark,
    RequestLog,
    SideEffectDuplicate,
    Track,
    in_request,
)


class Work:
    """A copy of the state that changes in place: a batch copies what is known once, not per call.

    `before` is the state it was made from and stays as it is, `request` the one whose calls are
    decided; `done` gives the state after all of them. Marks and refusals are the request's: they
    hold for an identity whatever thread it was met in.
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
        # Most batches repeat nothing: these two are copied when they change.
        self._refused: dict[str, FirstUse] | None = None
        self._marks: dict[str, Mark] | None = None
        self._is_changed = False

    def done(self) -> SideEffectDuplicate:
        """Return the state after all that was decided; nothing may be decided here after it."""
        if not self._is_changed:
            return self.before
        marks = self._log.marks if self._marks is None else self._marks
        log = RequestLog(self.calls, self.refused, marks, self.next_ordinal)
        requests = {**self.before.requests, self.request: log}
        return self.before.with_known(self.tracks, requests)

    def record(self, call_id: str, record: CallRecord) -> None:
        """Keep what became of a call."""
        self._is_changed = True
        self.calls[call_id] = record

    def track_of(self, identity: str) -> Track:
        """Return an identity's first run and those in flight."""
        return self.tracks.get(identity, NEW_TRACK)

    def follow(self, identity: str, track: Track) -> None:
        """Keep an identity's track; one without anything in it is dropped."""
        self._is_changed = True
        if track == NEW_TRACK:
            self.tracks.pop(identity, None)
        else:
            self.tracks[identity] = track

    @property
    def refused(self) -> Mapping[str, FirstUse]:
        """What a person refused in this request, by identity."""
        return self._log.refused if self._refused is None else self._refused

    def refuse(self, identities: Iterable[str], first: FirstUse) -> None:
        """Remember for the request what a person refused."""
        self._is_changed = True
        local = (self._local(each) for each in identities)
        self._refused = {**self.refused, **dict.fromkeys(local, first)}

    def refused_of(self, identity: str) -> FirstUse | None:
        """Return the run that a person refused to repeat in this request, if one did."""
        refused = self.refused
        return refused.get(self._local(identity)) if refused else None

    def places_of(self, identity: str) -> tuple[str, ...]:
        """Return an identity and, for one of a thread's, what calls without a thread know it by."""
        local = self._local(identity)
        return (identity,) if local == identity else (identity, local)

    def _local(self, identity: str) -> str:
        return in_request(identity, self.request) if self.is_threaded else identity

    def start(self, home: str, use: FirstUse) -> None:
        """Follow a run that begins now; a first run that is too long ago gives way to it."""
        for place in self.places_of(home):
            track = self.track_of(place)
            if self._is_over(track, use.at_ms):
                track = track._replace(first=None)
                if place == home:
                    self.unmark(home)
            self.follow(place, track.with_running(use))

    def _is_over(self, track: Track, now_ms: int) -> bool:
        first = track.first
        return first is not None and self.before.ladder.is_expired(first.at_ms, now_ms)

    def mark_of(self, identity: str) -> Mark:
        """Return where an identity stands, or the mark it starts with."""
        marks = self._log.marks if self._marks is None else self._marks
        if self.is_threaded:
            identity = in_request(identity, self.request)
        return marks.get(identity) or Mark(self.next_ordinal)

    def mark(self, identity: str, mark: Mark) -> None:
        """Keep where an identity stands; its ordinal is spent."""
        if self.is_threaded:
            identity = in_request(identity, self.request)
        self._own_marks()[identity] = mark
        self.next_ordinal = max(self.next_ordinal, mark.ordinal + 1)

    def unmark(self, identity: str) -> None:
        """Forget an identity that is new work again, and will be a new candidate."""
        self._own_marks().pop(self._local(identity), None)

    def _own_marks(self) -> dict[str, Mark]:
        self._is_changed = True
        if self._marks is None:
            self._marks = dict(self._log.marks)
        return self._marks
