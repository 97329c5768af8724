"""Stored answers of requests that carried an Idempotency-Key.

Draft draft-ietf-httpapi-idempotency-key-header-07: same key and payload, the same answer.
"""

from dataclasses import dataclass

from redis import Redis

from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EnvironmentKeys
from control_plane.stores.replies import octets, text, whole

KEEP_S = 24 * 3600
RUNNING_S = 60


@dataclass(frozen=True, slots=True)
class Running:
    """The first request with this key has not been answered yet."""


@dataclass(frozen=True, slots=True)
class OtherPayload:
    """The key was used before with another payload."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What the first request was answered."""

    status: int
    headers: str
    body: bytes


class IdempotencyStore:
    """Answers kept for 24 hours, by a digest of credential, method, path and key."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def claim(
        self, environment: str, digest: str, payload_hash: str
    ) -> StoredAnswer | Running | OtherPayload | None:
        """Claim the key for a request; None means: it is new, go on and `keep` the answer.

        A claim without an answer ends after a minute, so that a dead worker blocks nobody for long.
        """
        key = EnvironmentKeys(environment).idempotency(digest)
        pipe = self._redis.pipeline(transaction=True)
        pipe.hsetnx(key, "payload", payload_hash)
        pipe.expire(key, RUNNING_S, nx=True)
        pipe.hmget(key, ["payload", "status", "headers", "body"])
        is_new, _, (held, status, headers, body) = pipe.execute()
        if is_new:
            return None
        if text(held) != payload_hash:
            return OtherPayload()
        if status is None:
            return Running()
        return StoredAnswer(whole(status), text(headers), octets(body))

    @unavailable()
    def keep(self, environment: str, digest: str, answer: StoredAnswer) -> None:
        """Keep the answer of a claimed key for 24 hours."""
        key = EnvironmentKeys(environment).idempotency(digest)
        pipe = self._redis.pipeline(transaction=True)
        pipe.hset(key, "status", answer.status)
        pipe.hset(key, "headers", answer.headers)
        pipe.hset(key, "body", answer.body)
        pipe.expire(key, KEEP_S)
        pipe.execute()

    @unavailable()
    def release(self, environment: str, digest: str) -> None:
        """Forget a claim whose request failed, so that it may be sent again."""
        self._redis.delete(EnvironmentKeys(environment).idempotency(digest))
