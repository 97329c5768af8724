"""Doing a request once: the same key and payload get the first answer again.

Draft draft-ietf-httpapi-idempotency-key-header-07: the key is scoped by credential, method and
path; the answer is kept for 24 hours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from control_plane.context import Context
from control_plane.errors import IdempotencyConflict, IdempotencyInProgress
from control_plane.stores.idempotency import OtherPayload, Running, StoredAnswer


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """Which request it is. `scope` is credential, method and path; `payload` is query and body."""

    environment: str
    key: str
    scope: tuple[str, ...]
    payload: bytes

    @property
    def digest(self) -> str:
        """What the answer is kept under: SHA-256 over scope and key, hexadecimal."""
        return sha256("\n".join((*self.scope, self.key)).encode()).hexdigest()

    @property
    def payload_hash(self) -> str:
        """SHA-256 of the payload, hexadecimal."""
        return sha256(self.payload).hexdigest()


@dataclass(frozen=True, slots=True)
class Once:
    """An answer, and whether it is that of an earlier request. `headers` is opaque here."""

    status: int
    headers: str
    body: bytes
    is_replayed: bool = False


def once(context: Context, request: KeyedRequest, act: Callable[[], Once]) -> Once:
    """Return the kept answer of this request, or act and keep what it answers.

    A refusal is not kept: the request may be mended in what the key does not cover, such as
    `If-Match`, and sent again.

    Raises:
        IdempotencyConflict: the key was used for another payload.
        IdempotencyInProgress: the first request is still running.
    """
    digest = request.digest
    held = context.idempotency.claim(request.environment, digest, request.payload_hash)
    match held:
        case StoredAnswer(status=status, headers=headers, body=body):
            return Once(status, headers, body, is_replayed=True)
        case OtherPayload():
            raise IdempotencyConflict(
                "this Idempotency-Key was used for another payload within the last 24 hours; "
                "take a new key"
            )
        case Running():
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
