"""Idempotency: a request repeated with the same key and payload gets the first answer again.

As in draft-ietf-httpapi-idempotency-key-header-07; the key is scoped by credential, method and
path, and the answer is kept for 24 hours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from guardwave.control_plane.core.errors import IdempotencyConflict, IdempotencyInProgress
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.idempotency import (
    PayloadMismatch,
    RequestInProgress,
    StoredAnswer,
)


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with its key. `scope` is credential, method and path; `payload` query and body."""

    environment: str
    key: str
    scope: tuple[str, ...]
    payload: bytes

    @property
    def digest(self) -> str:
        """The name the answer is stored by: SHA-256 over scope and key, hexadecimal."""
        return sha256("\n".join((*self.scope, self.key)).encode()).hexdigest()

    @property
    def payload_hash(self) -> str:
        """SHA-256 of the payload, hexadecimal."""
        return sha256(self.payload).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyedAnswer:
    """The answer to a keyed request, replayed or new. `headers` is opaque here."""

    status: int
    headers: str
    body: bytes
    is_replayed: bool = False


def replay_or_act(
    context: Context, request: KeyedRequest, act: Callable[[], KeyedAnswer]
) -> KeyedAnswer:
    """Return the stored answer to this request, or act and store the new answer.

    Errors are not stored: the caller may correct what the key does not cover, such as `If-Match`,
    and send the request again.

    Raises:
        IdempotencyConflict: the key was used for another payload.
        IdempotencyInProgress: the first request is still running.
    """
    digest = request.digest
    match context.idempotency.claim(request.environment, digest, request.payload_hash):
        case StoredAnswer(status=status, headers=headers, body=body):
            return KeyedAnswer(status, headers, body, is_replayed=True)
        case PayloadMismatch():
            raise IdempotencyConflict(
                "this Idempotency-Key was used for another payload within the last 24 hours; "
                "take a new key"
            )
        case RequestInProgress():
            raise IdempotencyInProgress(
                "the first request with this Idempotency-Key is still running; ask again in 1 s",
                extras={"retry_after_s": 1},
            )
        case None:
            pass
    try:
        answer = act()
    except BaseException:
        context.idempotency.release(request.environment, digest)
        raise
    stored = StoredAnswer(answer.status, answer.headers, answer.body)
    context.idempotency.keep(request.environment, digest, stored)
    return answer
