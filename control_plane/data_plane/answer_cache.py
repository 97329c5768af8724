"""Answer cache: earlier answers, since hosts ask for the same owners again and again."""

import os
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

from guardwave.control_plane.data_plane.assignment_request import AssignmentRequest
from guardwave.control_plane.data_plane.snapshot import EnvironmentSnapshot
from guardwave.reducer.rollout.eligibility import OwnerFacts

# An answer takes about 1 kB.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class AnswerBasis:
    """The inputs of an answer, which is current while each of them is the same object."""

    environment: EnvironmentSnapshot
    tokens: object
    pseudonym: str
    facts: OwnerFacts | None
    today: date

    def is_current(
        self, environment: EnvironmentSnapshot | None, tokens: object, today: date
    ) -> bool:
        """Whether the same request would get the same answer now."""
        return (
            self.environment is environment
            and self.tokens is tokens
            and self.today == today
            and self.facts is self.environment.owners.facts_of(self.pseudonym)
        )


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An encoded answer; without a basis it may not be given again."""

    body: bytes
    etag: str
    basis: AnswerBasis | None = None


class AnswerCache:
    """Answers by a keyed hash of the request, so that neither owner id nor token is kept."""

    __slots__ = ("_kept", "_secret")

    def __init__(self) -> None:
        self._kept: dict[bytes, CachedAnswer] = {}
        self._secret = os.urandom(32)

    def key_of(self, request: AssignmentRequest) -> bytes:
        """Return the key of a request; its ETag is not part of the key."""
        # No part holds a line feed: a request line and a header end with one.
        path = (request.environment, request.guard, request.owner)
        text = "\n".join(part or "" for part in (*path, request.query, request.authorization))
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._secret).digest()

    def find(self, key: bytes) -> CachedAnswer | None:
        """Return the cached answer; the caller checks whether its basis is current."""
        return self._kept.get(key)

    def keep(self, key: bytes, answer: CachedAnswer) -> None:
        """Keep an answer for the same request."""
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[key] = answer
