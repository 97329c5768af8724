"""Which mode a guard has for an owner: asked for in the background, answered within 200 ms."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import urllib3

from control_plane.client.answers import Assignment, read
from control_plane.client.arguments import (
    check_endpoint,
    check_environment,
    check_seconds,
    check_service_version,
    check_token,
    is_guard,
    why_not_asked,
)
from control_plane.client.asking import Endpoint, Key, Reply
from control_plane.client.fallbacks import (
    OVERTAKEN,
    Doubt,
    failed,
    fallback,
    not_asked,
    not_reached,
    not_understood,
    refused,
    superseded,
    too_slow,
    unavailable,
)
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


@dataclass(slots=True)
class _Question:
    """A question under way. `doubt` is why nothing was kept, once it is answered."""

    answered: threading.Event = field(default_factory=threading.Event)
    doubt: Doubt | None = None


class Assignments:
    """Resolves modes for the owners of one host. Share one between threads.

    Every failure answers shadow and says why: `resolve` never raises, whatever it is given, and
    never takes longer than 200 ms. An
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
            ValueError: an argument cannot be used; it names the argument and never the token.
        """
        check_endpoint(endpoint)
        check_token(token)
        check_environment(environment)
        check_service_version(service_version)
        check_seconds("timeout_seconds", timeout_seconds, most=LONGEST_WAIT_SECONDS)
        check_seconds("refresh_seconds", refresh_seconds)
        if not isinstance(telemetry, GuardTelemetry | None):
            raise ValueError(
                f"telemetry is of type {type(telemetry).__name__}; give GuardTelemetry"
            )
        self._environment = environment
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
        self._asking: dict[Key, _Question] = {}

    def resolve(self, guard: str, owner: str, *, route: str = FOREGROUND) -> Assignment:
        """Return the owner's assignment now. It never raises and waits at most 200 ms."""
        try:
            assignment = self._resolve(Key(guard, owner, route))
        except Exception as error:  # noqa: BLE001  # nothing of ours may stop an agent's prompt
            assignment = _fall_back(guard, failed(error))
        if self._telemetry is not None:
            self._telemetry.evaluated(assignment)
        return assignment

    def _resolve(self, key: Key) -> Assignment:
        try:
            held = self._held.get(key)
        except TypeError:  # what has no hash is no text either
            held = None
        if held is not None and self._is_current(held, self._refresh_seconds):
            return held.assignment
        doubt = why_not_asked(key)
        if doubt is not None:
            return _fall_back(key.guard, doubt)
        question = self._ask_in_background(key)
        if isinstance(question, Doubt):
            return _fall_back(key.guard, question)
        is_answered = question.answered.wait(self._timeout_seconds)
        held = self._held.get(key)
        if held is not None and self._is_current(held, held.assignment.ttl_seconds):
            return held.assignment
        if not is_answered:
            return _fall_back(key.guard, too_slow(self._timeout_seconds))
        return fallback(key.guard, question.doubt or OVERTAKEN)

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
        # Without a generation it is shadow at most: from a server that vouches for no more.
        is_behind = assignment.generation is not None and assignment.generation < self._newest.get(
            assignment.guard, 0
        )
        return age < min(seconds, assignment.ttl_seconds) and not is_behind

    def _ask_in_background(self, key: Key) -> _Question | Doubt:
        """Return the question about the key, one under way or a new one, or what forbids one.

        A thread of its own, since no time-out of a socket bounds looking up a name or an answer
        that comes byte by byte. One that arrives late is kept for the next prompt.
        """
        with self._lock:
            question = self._asking.get(key)
            if question is not None:
                return question
            if len(self._asking) >= MOST_QUESTIONS_AT_ONCE:
                return not_asked(f"{MOST_QUESTIONS_AT_ONCE} questions wait for their answers")
            question = self._asking[key] = _Question()
        try:
            threading.Thread(target=self._ask, args=(key, question), daemon=True).start()
        except RuntimeError:
            with self._lock:
                del self._asking[key]
            return not_asked("no thread can be started: the process ends, or meets a limit")
        return question

    def _ask(self, key: Key, question: _Question) -> None:
        try:
            question.doubt = self._answer_of(key)
        except Exception as error:  # noqa: BLE001  # as above
            question.doubt = failed(error)
        finally:
            if question.doubt is not None:
                _warn(key.guard, question.doubt)
            with self._lock:
                del self._asking[key]
            question.answered.set()

    def _answer_of(self, key: Key) -> Doubt | None:
        """Ask, and keep what is said; return why there is nothing to keep."""
        asked_at = self._monotonic()
        held = self._held.get(key)
        try:
            reply = self._endpoint.ask(key, None if held is None else held.etag)
        except urllib3.exceptions.HTTPError as error:
            return not_reached(error, self._endpoint.host)
        except ValueError as error:
            return not_understood(str(error))
        return self._take(key, held, reply, asked_at)

    def _take(self, key: Key, held: _Held | None, reply: Reply, asked_at: float) -> Doubt | None:
        status = reply.status
        if status == 304 and held is not None:
            return self._keep(key, _Held(held.assignment, held.etag, asked_at))
        if status == 200:
            try:
                assignment = read(key.guard, reply.body)
            except ValueError as error:
                return not_understood(str(error))
            return self._keep(key, _Held(assignment, reply.etag, asked_at))
        if status == 429 or status >= 500:
            return unavailable(reply, key)
        if status >= 400:
            # A refusal is an answer: what was held before is no longer vouched for.
            with self._lock:
                self._held.pop(key, None)
            return refused(reply, key, self._environment)
        return not_understood(f"its status is {status}")

    def _keep(self, key: Key, fresh: _Held) -> Doubt | None:
        with self._lock:
            newest = self._newest.get(key.guard, 0)
            generation = fresh.assignment.generation
            if generation is not None:
                if generation < newest:
                    return superseded(generation, newest)
                self._newest[key.guard] = generation
            while len(self._held) >= MOST_ANSWERS and key not in self._held:
                del self._held[next(iter(self._held))]
            self._held[key] = fresh
        return None


def _fall_back(guard: object, doubt: Doubt) -> Assignment:
    _warn(guard, doubt)
    return fallback(guard, doubt)


def _warn(guard: object, doubt: Doubt) -> None:
    """Log a doubt. A log that fails is no reason to end a prompt."""
    with contextlib.suppress(Exception):
        about = f"guard {guard}" if is_guard(guard) else "a guard of no such name"
        _log.warning("%s: no new assignment (%s): %s", about, doubt.reason, doubt.why)
