"""Owner facts: stated by people and imports, learned from accepted records, keyed by pseudonym."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from redis import Redis

from guardwave.control_plane.stores.codec import unpack
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import (
    call,
    reply_int,
    reply_pair,
    reply_text,
    translate_store_errors,
)
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """The facts that a person or an import stated about one owner."""

    ownership: Ownership
    is_trusted: bool

    def encode(self) -> str:
        """Return the facts as stored."""
        return f"{self.ownership}|{int(self.is_trusted)}"

    @classmethod
    def decode(cls, stored: str) -> "StatedFacts":
        """Return the facts from their stored form."""
        ownership, trusted = stored.split("|")
        return cls(Ownership(ownership), trusted == "1")


@dataclass(frozen=True, slots=True)
class OwnerChanges:
    """Facts of the owners that changed, and the change number from which to ask next."""

    facts: Mapping[str, OwnerFacts]
    last_change: int


class OwnerStore:
    """Facts of the owners of all environments, by pseudonym."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def state_facts(self, environment: str, facts: Mapping[str, StatedFacts]) -> int:
        """Store stated facts by pseudonym; return how many of them changed."""
        keys = EvidenceKeys(environment)
        pairs = [part for name, stated in facts.items() for part in (name, stated.encode())]
        names = (keys.facts, keys.owner_changes, keys.owner_change_count)
        return reply_int(call(self._redis, "gw_facts", keys=names, arguments=pairs))

    @translate_store_errors()
    def facts(self, environment: str, pseudonyms: Sequence[str]) -> dict[str, OwnerFacts]:
        """Return the known facts of these owners, without those of unknown owners."""
        if not pseudonyms:
            return {}
        keys = EvidenceKeys(environment)
        pipe = self._redis.pipeline(transaction=False)
        pipe.hmget(keys.facts, pseudonyms)
        pipe.hmget(keys.activity, pseudonyms)
        rows = zip(pseudonyms, *pipe.execute(), strict=True)
        return {name: _facts(stated, seen) for name, stated, seen in rows if stated or seen}

    @translate_store_errors()
    def all_facts(self, environment: str) -> dict[str, OwnerFacts]:
        """Return the facts of every owner of the environment."""
        return dict(self.changes(environment, since=0).facts)

    @translate_store_errors()
    def changes(self, environment: str, *, since: int, at_most: int = 5000) -> OwnerChanges:
        """Return the owners whose facts changed after change number `since`."""
        keys = EvidenceKeys(environment)
        last_change = since
        facts: dict[str, OwnerFacts] = {}
        while True:
            found = self._redis.zrange(
                keys.owner_changes,
                f"({last_change}",
                "+inf",
                byscore=True,
                offset=0,
                num=at_most,
                withscores=True,
            )
            numbered = [reply_pair(entry) for entry in found]
            facts.update(self.facts(environment, [reply_text(name) for name, _ in numbered]))
            if numbered:
                last_change = reply_int(numbered[-1][1])
            if len(found) < at_most:
                return OwnerChanges(facts, last_change)


def _facts(stated: bytes | None, seen: bytes | None) -> OwnerFacts:
    statement = None if stated is None else StatedFacts.decode(stated.decode())
    activity = {} if seen is None else unpack(seen)
    if not isinstance(activity, dict):
        raise TypeError(f"owner activity is stored as {type(activity).__name__}, not as a map")
    return OwnerFacts(
        ownership=None if statement is None else statement.ownership,
        is_trusted=statement is not None and statement.is_trusted,
        versions=_days(activity.get("v")),
        producers=_days(activity.get("p")),
        prompt_days=frozenset(_days(activity.get("d")).values()),
    )


def _days(stored: object) -> dict[str, date]:
    # An empty Lua table is packed as an empty array.
    if not isinstance(stored, dict):
        return {}
    return {str(name): date.fromisoformat(str(day)) for name, day in stored.items()}
