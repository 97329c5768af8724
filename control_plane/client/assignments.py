"""Which mode a guard has for an owner: asked for in the background, answered within 200 ms."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from control_plane.client.answers import Assignment, fallback, read
from control_plane.client.asking import OWNER_IN_PATH, Endpoint, Key, Reply
from control_plane.client.telemetry import GuardTelemetry

FOREGROUND = "interactive_foreground"
LONGEST_WAIT_SECONDS = 0.2
# Longer than a prompt waits: a slow answer is still worth keeping for the next one.
NETWORK_TIMEOUT_SECONDS = 2.0
REFRESH_SECONDS = 5.0
MOST_ANSWERS = 10_000
MOST_QUESTIONS_AT_ONCE = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    assignment: Assignment
    etag: str | None
    at: float


class Assignments:
    """Resolves modes for the owners of one host. Share one between threads.

    Every failure answers shadow: `resolve` never raises and never takes longer than 200 ms. An
    answer is good for `refresh_seconds`; then the control plane is asked again with its ETag. While
    it cannot be reached the last answer stays for the `ttl_s` it came with, then shadow. Once an
    answer of a newer generation was seen, no older one is used.
    """

    def __init__(  # noqa: PLR0913  # what hosts write; all but the first three by name
        self,
        endpoint: str,
        token: str,
        environment: str,
        *,
        service_version: str,
        timeout_seconds: float = LONGEST_WAIT_SECONDS,
        refresh_seconds: float = REFRESH_SECONDS,
        telemetry: GuardTelemetry | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the control plane; nothing is asked before the first `resolve`.

        With `telemetry`, each answer is reported as a `feature_flag.evaluation`.

        Raises:
            ValueError: the endpoint is not an http(s) URL, or the wait is not within 0 to 0.2 s.
        """
        if not 0 < timeout_seconds <= LONGEST_WAIT_SECONDS:
            raise ValueError(
                f"timeout_seconds is {timeout_seconds}; a prompt waits more than 0 and at most "
                f"{LONGEST_WAIT_SECONDS} s"
            )
        self._endpoint = Endpoint(
            endpoint,
            token,
            environment,
            service_version=service_version,
            timeout_seconds=NETWORK_TIMEOUT_SECONDS,
        )
        self._timeout_seconds = timeout_seconds
        self._refresh_seconds = refresh_seconds
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._held: dict[Key, _Held] = {}
        self._newest: dict[str, int] = {}
        self._asking: dict[Key, threading.Event] = {}

    def resolve(self, guard: str, owner: str, *, route: str = FOREGROUND) -> Assignment:
        """Return the owner's assignment now. It never raises and waits at most 200 ms."""
        assignment = self._resolve(guard, owner, route)
        if self._telemetry is not None:
            self._telemetry.evaluated(assignment)
        return assignment

    def _resolve(self, guard: str, owner: str, route: str) -> Assignment:
        key = Key(guard, owner, route)
        held = self._held.get(key)
        if held is not None and self._is_current(held, self._refresh_seconds):
            return held.assignment
        if OWNER_IN_PATH.fullmatch(owner) is None:
            return fallback(guard, "the owner id holds characters that cannot be asked for")
        answered = self._ask_in_background(key)
        if answered is not None:
            answered.wait(self._timeout_seconds)
        held = self._held.get(key)
        if held is not None and self._is_current(held, held.assignment.ttl_seconds):
            return held.assignment
        return fallback(guard, "the control plane was not reached, or did not say")

    @contextlib.contextmanager
    def pin(self, guard: str, owner: str, *, route: str = FOREGROUND) -> Iterator[Assignment]:
        """Hold one assignment for the length of a prompt, whatever changes meanwhile."""
        yield self.resolve(guard, owner, route=route)

    def close(self) -> None:
        """Close the connections; answers that are held stay usable until they are too old."""
        self._endpoint.close()

    def _is_current(self, held: _Held, seconds: float) -> bool:
        assignment = held.assignment
        age = self._monotonic() - held.at
        limit = min(seconds, assignment.ttl_seconds)
        return age < limit and (assignment.generation or 0) >= self._newest.get(assignment.guard, 0)

    def _ask_in_background(self, key: Key) -> threading.Event | None:
        """Return what tells that the question is answered; None when too many are under way.

        A thread of its own, since no time-out of a socket bounds looking up a name or an answer
        that comes byte by byte. One that arrives late is kept for the next prompt.
        """
        with self._lock:
            answered = self._asking.get(key)
            if answered is not None:
                return answered
            if len(self._asking) >= MOST_QUESTIONS_AT_ONCE:
                return None
            answered = self._asking[key] = threading.Event()
        try:
            threading.Thread(target=self._ask, args=(key, answered), daemon=True).start()
        except RuntimeError:  # no thread can be started: the interpreter ends, or a limit is met
            with self._lock:
                del self._asking[key]
            return None
        return answered

    def _ask(self, key: Key, answered: threading.Event) -> None:
        asked_at = self._monotonic()
        held = self._held.get(key)
        try:
            reply = self._endpoint.ask(key, None if held is None else held.etag)
            self._take(key, held, reply, asked_at)
        except Exception as error:  # noqa: BLE001  # nothing of ours may stop an agent's prompt
            _log.warning("guard %s: no assignment (%s)", key.guard, type(error).__name__)
        finally:
            with self._lock:
                del self._asking[key]
            answered.set()

    def _take(self, key: Key, held: _Held | None, reply: Reply, asked_at: float) -> None:
        if reply.status == 304 and held is not None:
            self._keep(key, _Held(held.assignment, held.etag, asked_at))
        elif reply.status == 200:
            self._keep(key, _Held(read(key.guard, reply.body), reply.etag, asked_at))
        elif 400 <= reply.status < 500 and reply.status != 429:
            # A refusal is an answer: what was held before is no longer vouched for.
            _log.warning("guard %s: the control plane refused with %d", key.guard, reply.status)
            with self._lock:
                self._held.pop(key, None)

    def _keep(self, key: Key, fresh: _Held) -> None:
        with self._lock:
            newest = self._newest.get(key.guard, 0)
            generation = fresh.assignment.generation
            if generation is not None:
                if generation < newest:
                    return
                self._newest[key.guard] = generation
            while len(self._held) >= MOST_ANSWERS and key not in self._held:
                del self._held[next(iter(self._held))]
            self._held[key] = fresh
