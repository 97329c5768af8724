"""What one request knows while its calls are decided, one after the other."""

from collections.abc import Iterable

from reducer.guards.side_effect.repeat import FirstUse
from reducer.guards.side_effect.state import (
    NEW_TRACK,
    CallRecord,
    Mark,
    RequestLog,
    SideEffectDuplicate,
    Track,
)


class Work:
    """A copy of the state that changes in place: a batch copies what is known once, not per call.

    `before` is the state it was made from and stays as it is, `request` the one whose calls are
    decided; `done` gives the state after all of them.
    """

    __slots__ = (
        "_is_changed",
        "before",
        "calls",
        "marks",
        "next_ordinal",
        "refused",
        "request",
        "tracks",
    )

    def __init__(self, before: SideEffectDuplicate, request: str) -> None:
        log = before.log_of(request)
        self.before = before
        self.request = request
        self.tracks = dict(before.tracks)
        self.calls = dict(log.calls)
        self.refused = dict(log.refused)
        self.marks = dict(log.marks)
        self.next_ordinal = log.next_ordinal
        self._is_changed = False

    def done(self) -> SideEffectDuplicate:
        """Return the state after all that was decided; nothing may be decided here after it."""
        if not self._is_changed:
            return self.before
        log = RequestLog(self.calls, self.refused, self.marks, self.next_ordinal)
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

    def mark_of(self, identity: str) -> Mark:
        """Return where an identity stands, or the mark it starts with."""
        return self.marks.get(identity) or Mark(self.next_ordinal)

    def mark(self, identity: str, mark: Mark) -> None:
        """Keep where an identity stands; its ordinal is spent."""
        self._is_changed = True
        self.marks[identity] = mark
        self.next_ordinal = max(self.next_ordinal, mark.ordinal + 1)

    def unmark(self, identity: str) -> None:
        """Forget an identity that is new work again, and will be a new candidate."""
        self._is_changed = True
        self.marks.pop(identity, None)

    def refuse(self, identities: Iterable[str], first: FirstUse) -> None:
        """Remember for the request what a person refused."""
        self._is_changed = True
        self.refused.update(dict.fromkeys(identities, first))
