"""Idempotency: stored answers of requests that carried an Idempotency-Key.

Draft draft-ietf-httpapi-idempotency-key-header-07: same key and payload, the same answer.
"""

from dataclasses import dataclass

from redis import Redis

from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server import (
    reply_bytes,
    reply_int,
    reply_text,
    translate_store_errors,
)

KEEP_S = 24 * 3600
RUNNING_S = 60


@dataclass(frozen=True, slots=True)
class RequestInProgress:
    """The first request with this key has not been answered yet."""


@dataclass(frozen=True, slots=True)
class PayloadMismatch:
    """The key was used before with another payload."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the first request with this key."""

    status: int
    headers: str
    body: bytes


class IdempotencyStore:
    """Answers kept for 24 hours, by a digest of credential, method, path and key."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def claim(
        self, environment: str, digest: str, payload_hash: str
    ) -> StoredAnswer | RequestInProgress | PayloadMismatch | None:
        """Claim the key for a request; None means that it is new: go on, then `keep` the answer.

        A claim without an answer ends after a minute, so that a dead worker blocks nobody for long.
        """
        key = EnvironmentKeys(environment).idempotency(digest)
        pipe = self._redis.pipeline(transaction=True)
        pipe.hsetnx(key, "payload", payload_hash)
        pipe.expire(key, RUNNING_S, nx=True)
        pipe.hmget(key, ["payload", "status", "headers", "body"])
        is_new, _, (first_payload, status, headers, body) = pipe.execute()
        if is_new:
            return None
        if reply_text(first_payload) != payload_hash:
            return PayloadMismatch()
        if status is None:
            return RequestInProgress()
        return StoredAnswer(reply_int(status), reply_text(headers), reply_bytes(body))

    @translate_store_errors()
    def keep(self, environment: str, digest: str, answer: StoredAnswer) -> None:
        """Keep the answer of a claimed key for 24 hours."""
        key = EnvironmentKeys(environment).idempotency(digest)
        pipe = self._redis.pipeline(transaction=True)
        pipe.hset(key, "status", answer.status)
        pipe.hset(key, "headers", answer.headers)
        pipe.hset(key, "body", answer.body)
        pipe.expire(key, KEEP_S)
        pipe.execute()

    @translate_store_errors()
    def release(self, environment: str, digest: str) -> None:
        """Remove the claim of a failed request, so that it may be sent again."""
        self._redis.delete(EnvironmentKeys(environment).idempotency(digest))
