"""Side-effect state: first runs, calls and refusals, and the keys of their identities.

It holds ids and digests, never arguments or results.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.modes import check_mode, check_route, mode_on
from guardwave.reducer.guards.side_effect.ladder import DEFAULT_LADDER, Ladder, Scope
from guardwave.reducer.guards.side_effect.repeat import FirstUse, Layer, Repeat
from guardwave.reducer.guards.transition import FailureBucket, Transition
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode, Route

GUARD = "side_effect_duplicate"
SCHEMA = 1
_REQUEST_PREFIX = f"{Scope.REQUEST}/"
_IDENTITY = re.compile(rf"(?:{Scope.REQUEST}|{Scope.THREAD})/([0-9]{{1,9}})/")


class CallStatus(StrEnum):
    """The status of a call."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFLECTED = "reflected"
    SUSPENDED = "suspended"
    DENIED = "denied"

    @property
    def is_finished(self) -> bool:
        """Whether the record answers the call from now on; a failed call may run again."""
        return self in _FINISHED


_FINISHED = frozenset({CallStatus.SUCCEEDED, CallStatus.REFLECTED, CallStatus.DENIED})


class OpenQuestion(NamedTuple):
    """The open question of a suspended call.

    `home` is the identity of the call's own arguments, `about` the identity of the run it repeats.
    """

    home: str
    about: str
    repeat: Repeat


class CallRecord(NamedTuple):
    """One call of a request.

    While the call runs, `home` is the identity of its arguments, None if the guard leaves it alone.
    `xid` is set if a success becomes a first use, `question` while the call is suspended.
    """

    status: CallStatus
    home: str | None = None
    xid: str | None = None
    channel: str | None = None
    is_approved: bool = False
    question: OpenQuestion | None = None


class Track(NamedTuple):
    """One identity: its first successful run, the runs in flight, and whether it was nudged."""

    first: FirstUse | None = None
    running: tuple[FirstUse, ...] = ()
    is_nudged: bool = False

    def with_running(self, use: FirstUse) -> "Track":
        """Return the track with a run in flight; a second start of one call is the same run."""
        running = _others(self.running, use.request, use.call_id)
        return Track(self.first, (*running, use), self.is_nudged)

    def without_running(self, request: str, call_id: str) -> "Track":
        """Return the track without a run that settled."""
        return Track(self.first, _others(self.running, request, call_id), self.is_nudged)

    def without_runs_of(self, request: str) -> "Track":
        """Return the track without the runs of a request that ended."""
        running = tuple(use for use in self.running if use.request != request)
        return Track(self.first, running, self.is_nudged)


def _others(running: tuple[FirstUse, ...], request: str, call_id: str) -> tuple[FirstUse, ...]:
    if not running:
        return running
    return tuple(use for use in running if (use.request, use.call_id) != (request, call_id))


class Mark(NamedTuple):
    """The position of an identity within one request, as telemetry reports it."""

    ordinal: int
    phase: GuardPhase = GuardPhase.IDLE
    repeats: int = 0


class RequestLog(NamedTuple):
    """The records of one request, including the calls of its sub-agents."""

    calls: Mapping[str, CallRecord]
    refused: Mapping[str, FirstUse]
    marks: Mapping[str, Mark]
    next_ordinal: int


NEW_REQUEST = RequestLog({}, {}, {}, 1)
NEW_TRACK = Track()
_NO_TRACKS: Mapping[str, Track] = {}
_NO_REQUESTS: Mapping[str, RequestLog] = {}


class SideEffectDuplicate(NamedTuple):
    """The state of the guard, which the host keeps for one thread or one request."""

    mode: Mode
    route: Route = Route.INTERACTIVE_FOREGROUND
    ladder: Ladder = DEFAULT_LADDER
    tracks: Mapping[str, Track] = _NO_TRACKS
    requests: Mapping[str, RequestLog] = _NO_REQUESTS
    is_enforcement_disabled: bool = False

    @classmethod
    def start(
        cls,
        mode: Mode,
        *,
        route: Route = Route.INTERACTIVE_FOREGROUND,
        ladder: Ladder = DEFAULT_LADDER,
    ) -> "SideEffectDuplicate":
        """Return the state before any call; with the default ladder a repeat asks a person.

        Raises:
            ValueError: the mode or the route is a plain text, or the ladder is not a Ladder.
        """
        check_mode(GUARD, mode)
        check_route(route)
        if not isinstance(ladder, Ladder):
            remedy = "pass Ladder.parse(setting) (guardwave.guards.side_effect)"
            raise argument_error("ladder", ladder, remedy)
        return cls(mode_on(route, mode), route, ladder)

    @property
    def withholds(self) -> bool:
        """Whether a call may be kept from running at all."""
        return self.mode is Mode.ENFORCE and not self.is_enforcement_disabled

    def log_of(self, request: str) -> RequestLog:
        """Return the records of a request."""
        return self.requests.get(request, NEW_REQUEST)

    def with_records(
        self, tracks: Mapping[str, Track], requests: Mapping[str, RequestLog]
    ) -> "SideEffectDuplicate":
        """Return the state with other tracks and requests."""
        return SideEffectDuplicate(
            self.mode, self.route, self.ladder, tracks, requests, self.is_enforcement_disabled
        )

    def transition(self, before: Mark, after: Mark, decision: Decision) -> Transition:
        """Return the transition of one decision about one identity."""
        return Transition(
            guard=GUARD,
            route=self.route,
            mode=self.mode,
            phase_from=before.phase,
            phase_to=after.phase,
            decision=decision,
            failure_count=FailureBucket.of(after.repeats),
            candidate_ordinal=after.ordinal,
        )


class Place(NamedTuple):
    """The reach of the search for repeats of a call; `key` is the prefix of its identities."""

    scope: Scope
    key: str


def place_of(ladder: Ladder, request: str, thread: str | None) -> Place:
    """Return the place of a call: its thread, if the ladder has that scope, or its request."""
    if ladder.scope is Scope.THREAD and thread is not None and thread.strip():
        return Place(Scope.THREAD, place_key(Scope.THREAD, thread))
    return Place(Scope.REQUEST, place_key(Scope.REQUEST, request))


def place_key(scope: Scope, name: str) -> str:
    """Return the prefix of the identities of a request or thread.

    The length keeps any two names apart, whatever characters they contain.
    """
    return f"{scope}/{len(name)}/{name}/"


def in_request(identity: str, request: str) -> str:
    """Return the key of an identity within a request, even if the identity is of a thread."""
    if identity.startswith(_REQUEST_PREFIX):
        return identity
    _, length, rest = identity.split("/", 2)
    return place_key(Scope.REQUEST, request) + rest[int(length) + 1 :]


def is_identity(text: str) -> bool:
    """Whether a text has the form of an identity's key."""
    prefix = _IDENTITY.match(text)
    return prefix is not None and text[prefix.end() + int(prefix[1]) :].startswith("/")


def identity_of(place: Place, layer: Layer, digest: str) -> str:
    """Return the key of an identity within its place."""
    return f"{place.key}{layer}/{digest}"
