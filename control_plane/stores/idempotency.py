"""Stored answers of requests that carried an Idempotency-Key.

Draft draft-ietf-httpapi-idempotency-key-header-07: same key and payload, the same answer.
"""

from dataclasses import dataclass

from redis import Redis

from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EnvironmentKeys

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
        if self._redis.hsetnx(key, "payload", payload_hash):
            self._redis.expire(key, RUNNING_S)
            return None
        held, status, headers, body = self._redis.hmget(
            key, ["payload", "status", "headers", "body"]
        )
        if held is not None and held.decode() != payload_hash:
            return OtherPayload()
        if status is None or headers is None or body is None:
            return Running()
        return StoredAnswer(int(status), headers.decode(), bytes(body))

    @unavailable()
    def keep(self, environment: str, digest: str, answer: StoredAnswer) -> None:
        """Keep the answer of a claimed key for 24 hours."""
        key = EnvironmentKeys(environment).idempotency(digest)
        pipe = self._redis.pipeline(transaction=True)
        fields = {"status": answer.status, "headers": answer.headers, "body": answer.body}
        pipe.hset(key, mapping=fields)
        pipe.expire(key, KEEP_S)
        pipe.execute()

    @unavailable()
    def release(self, environment: str, digest: str) -> None:
        """Forget a claim whose request failed, so that it may be sent again."""
        self._redis.delete(EnvironmentKeys(environment).idempotency(digest))
