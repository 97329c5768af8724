"""Assignments: an owner's mode under a guard, asked in the background, answered in 200 ms."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import urllib3

from guardwave.control_plane.client.answers import Assignment, read
from guardwave.control_plane.client.arguments import (
    check_endpoint,
    check_environment,
    check_question,
    check_seconds,
    check_service_version,
    check_token,
    is_guard,
)
from guardwave.control_plane.client.fallbacks import (
    OUTDATED_ANSWER,
    FallbackCause,
    answer_timeout,
    client_error,
    client_fault,
    connection_failure,
    fallback,
    invalid_answer,
    no_question,
    older_generation,
    server_error,
)
from guardwave.control_plane.client.http_client import Endpoint, Key, Reply
from guardwave.control_plane.client.telemetry import GuardTelemetry

FOREGROUND = "interactive_foreground"
LONGEST_WAIT_SECONDS = 0.2
# Longer than a prompt waits: a slow answer is still worth keeping for the next one.
NETWORK_TIMEOUT_SECONDS = 2.0
REFRESH_SECONDS = 5.0
MOST_ANSWERS = 10_000
MOST_QUESTIONS_AT_ONCE = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    assignment: Assignment
    etag: str | None
    at: float


@dataclass(slots=True)
class _Question:
    """A question under way; once it is answered, `cause` states why no answer was kept."""

    answered: threading.Event = field(default_factory=threading.Event)
    cause: FallbackCause | None = None


class Assignments:
    """Resolves modes for the owners of one host. Share one between threads.

    `resolve` never raises and never takes longer than 200 ms: after a failure it answers shadow
    and states why. An answer is good for `refresh_seconds`; then the client asks again with its
    ETag. While the control plane cannot be reached, the last answer stays for its `ttl_s`, then
    shadow. Once the client has an answer of a newer generation, it uses no older one.
    """

    def __init__(  # noqa: PLR0913  # public; all but the first three go by name
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
        """Set up the client; it asks nothing before the first `resolve`.

        With `telemetry`, each answer is reported as a `feature_flag.evaluation`.

        Raises:
            ValueError: an argument cannot be used; the error names it, and never repeats the token.
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
        self._cache: dict[Key, _CachedAnswer] = {}
        self._newest: dict[str, int] = {}
        self._questions: dict[Key, _Question] = {}

    def resolve(self, guard: str, owner: str, *, route: str = FOREGROUND) -> Assignment:
        """Return the owner's assignment now. It never raises and waits at most 200 ms."""
        try:
            assignment = self._resolve(Key(guard, owner, route))
        except Exception as error:  # noqa: BLE001  # nothing of ours may stop an agent's prompt
            assignment = _fall_back(guard, client_fault(error))
        if self._telemetry is not None:
            self._telemetry.evaluated(assignment)
        return assignment

    def _resolve(self, key: Key) -> Assignment:
        try:
            held = self._cache.get(key)
        except TypeError:  # an unhashable value is no text either
            held = None
        if held is not None and self._is_current(held, self._refresh_seconds):
            return held.assignment
        cause = check_question(key)
        if cause is not None:
            return _fall_back(key.guard, cause)
        question = self._ask_in_background(key)
        if isinstance(question, FallbackCause):
            return _fall_back(key.guard, question)
        is_answered = question.answered.wait(self._timeout_seconds)
        held = self._cache.get(key)
        if held is not None and self._is_current(held, held.assignment.ttl_seconds):
            return held.assignment
        if not is_answered:
            return _fall_back(key.guard, answer_timeout(self._timeout_seconds))
        return fallback(key.guard, question.cause or OUTDATED_ANSWER)

    @contextlib.contextmanager
    def pin(self, guard: str, owner: str, *, route: str = FOREGROUND) -> Iterator[Assignment]:
        """Hold one assignment for the length of a prompt, whatever changes meanwhile."""
        yield self.resolve(guard, owner, route=route)

    def close(self) -> None:
        """Close the connections; answers that are held stay usable until they are too old."""
        self._endpoint.close()

    def _is_current(self, held: _CachedAnswer, seconds: float) -> bool:
        assignment = held.assignment
        age = self._monotonic() - held.at
        # An answer without a generation is shadow at most, so its age in generations is no matter.
        is_behind = assignment.generation is not None and assignment.generation < self._newest.get(
            assignment.guard, 0
        )
        return age < min(seconds, assignment.ttl_seconds) and not is_behind

    def _ask_in_background(self, key: Key) -> _Question | FallbackCause:
        """Return the question about the key, running or new, or the cause why none can be asked.

        It has its own thread, since no socket time-out bounds the look-up of a name or an answer
        that comes byte by byte. A late answer is kept for the next prompt.
        """
        with self._lock:
            question = self._questions.get(key)
            if question is not None:
                return question
            if len(self._questions) >= MOST_QUESTIONS_AT_ONCE:
                return no_question(f"{MOST_QUESTIONS_AT_ONCE} questions wait for their answers")
            question = self._questions[key] = _Question()
        try:
            threading.Thread(target=self._ask, args=(key, question), daemon=True).start()
        except RuntimeError:
            with self._lock:
                del self._questions[key]
            return no_question("no thread can be started: the process ends, or meets a limit")
        return question

    def _ask(self, key: Key, question: _Question) -> None:
        try:
            question.cause = self._fetch(key)
        except Exception as error:  # noqa: BLE001  # as above
            question.cause = client_fault(error)
        finally:
            if question.cause is not None:
                _warn(key.guard, question.cause)
            with self._lock:
                del self._questions[key]
            question.answered.set()

    def _fetch(self, key: Key) -> FallbackCause | None:
        """Ask, and keep the answer; return the cause if there is none to keep."""
        asked_at = self._monotonic()
        held = self._cache.get(key)
        try:
            reply = self._endpoint.ask(key, None if held is None else held.etag)
        except urllib3.exceptions.HTTPError as error:
            return connection_failure(error, self._endpoint.host)
        except ValueError as error:
            return invalid_answer(str(error))
        return self._use_reply(key, held, reply, asked_at)

    def _use_reply(
        self, key: Key, held: _CachedAnswer | None, reply: Reply, asked_at: float
    ) -> FallbackCause | None:
        status = reply.status
        if status == 304 and held is not None:
            return self._store(key, _CachedAnswer(held.assignment, held.etag, asked_at))
        if status == 200:
            try:
                assignment = read(key.guard, reply.body)
            except ValueError as error:
                return invalid_answer(str(error))
            return self._store(key, _CachedAnswer(assignment, reply.etag, asked_at))
        if status == 429 or status >= 500:
            return server_error(reply, key)
        if status >= 400:
            # A 4xx is an answer too: it ends the answer that was cached.
            with self._lock:
                self._cache.pop(key, None)
            return client_error(reply, key, self._environment)
        return invalid_answer(f"its status is {status}")

    def _store(self, key: Key, fresh: _CachedAnswer) -> FallbackCause | None:
        with self._lock:
            newest = self._newest.get(key.guard, 0)
            generation = fresh.assignment.generation
            if generation is not None:
                if generation < newest:
                    return older_generation(generation, newest)
                self._newest[key.guard] = generation
            while len(self._cache) >= MOST_ANSWERS and key not in self._cache:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = fresh
        return None


def _fall_back(guard: object, cause: FallbackCause) -> Assignment:
    _warn(guard, cause)
    return fallback(guard, cause)


def _warn(guard: object, cause: FallbackCause) -> None:
    """Log a cause. A log that fails is no reason to end a prompt."""
    with contextlib.suppress(Exception):
        subject = f"guard {guard}" if is_guard(guard) else "a guard of no such name"
        _log.warning("%s: no new assignment (%s): %s", subject, cause.reason, cause.why)
