"""Answers that were given before: hosts ask for the same owners again and again."""

import os
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

from control_plane.data_plane.snapshot import EnvironmentSnapshot
from control_plane.queries.assignment_questions import AssignmentRequest
from reducer.rollout.eligibility import OwnerFacts

# About 1 kB each.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Grounds:
    """What an answer was decided on. It holds as long as each of these is still the very same."""

    held: EnvironmentSnapshot
    credentials: object
    pseudonym: str
    facts: OwnerFacts | None
    today: date

    def hold(self, held: EnvironmentSnapshot | None, credentials: object, today: date) -> bool:
        """Whether the same question would be answered the same now."""
        return (
            self.held is held
            and self.credentials is credentials
            and self.today == today
            and self.facts is self.held.owners.facts_of(self.pseudonym)
        )


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as sent; without grounds it is good for one asker only."""

    body: bytes
    etag: str
    grounds: Grounds | None = None


class AnswerMemory:
    """Answers by a keyed hash of their question, so that neither owner id nor token is kept."""

    __slots__ = ("_kept", "_secret")

    def __init__(self) -> None:
        self._kept: dict[bytes, KeptAnswer] = {}
        self._secret = os.urandom(32)

    def key_of(self, asked: AssignmentRequest) -> bytes:
        """Return what the question is found by; the ETag that it brings is no part of it."""
        # No part holds a line feed: a request line and a header end with one.
        parts = (asked.environment, asked.guard, asked.owner, asked.query, asked.authorization)
        text = "\n".join(part or "" for part in parts)
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._secret).digest()

    def find(self, key: bytes) -> KeptAnswer | None:
        """Return the answer that was kept; whether its grounds hold is for the asker to see."""
        return self._kept.get(key)

    def keep(self, key: bytes, answer: KeptAnswer) -> None:
        """Keep an answer for whoever asks the same."""
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[key] = answer
