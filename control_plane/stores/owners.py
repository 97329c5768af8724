"""Owner facts: stated by people and imports, learned from accepted records, never by owner id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from redis import Redis

from control_plane.stores.connection import unavailable
from control_plane.stores.functions import call
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.packing import unpack
from control_plane.stores.replies import pair, text, whole
from reducer.rollout.eligibility import OwnerFacts, Ownership


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """What a person or an import says of one owner."""

    ownership: Ownership
    is_trusted: bool

    def packed(self) -> str:
        """Return the facts as stored."""
        return f"{self.ownership}|{int(self.is_trusted)}"

    @classmethod
    def unpacked(cls, stored: str) -> "StatedFacts":
        """Return the facts of their stored form."""
        ownership, trusted = stored.split("|")
        return cls(Ownership(ownership), trusted == "1")


@dataclass(frozen=True, slots=True)
class OwnerChanges:
    """Facts of the owners that changed since a change number, and the number to ask from next."""

    facts: Mapping[str, OwnerFacts]
    upto: int


class OwnerStore:
    """Facts of the owners of all environments, by pseudonym."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def state(self, environment: str, facts: Mapping[str, StatedFacts]) -> int:
        """State facts of owners by pseudonym; answer how many of them changed."""
        keys = EvidenceKeys(environment)
        pairs = [part for name, stated in facts.items() for part in (name, stated.packed())]
        names = (keys.facts, keys.owner_changes, keys.owner_change_count)
        return whole(call(self._redis, "gw_facts", keys=names, arguments=pairs))

    @unavailable()
    def facts(self, environment: str, pseudonyms: Sequence[str]) -> dict[str, OwnerFacts]:
        """Return what is known of these owners; one that nothing is known of is absent."""
        if not pseudonyms:
            return {}
        keys = EvidenceKeys(environment)
        pipe = self._redis.pipeline(transaction=False)
        pipe.hmget(keys.facts, pseudonyms)
        pipe.hmget(keys.sightings, pseudonyms)
        stated, seen = pipe.execute()
        both = zip(pseudonyms, stated, seen, strict=True)
        return {name: _facts(told, held) for name, told, held in both if told or held}

    @unavailable()
    def all_facts(self, environment: str) -> dict[str, OwnerFacts]:
        """Return what is known of every owner of the environment."""
        return dict(self.changes(environment, since=0).facts)

    @unavailable()
    def changes(self, environment: str, *, since: int, at_most: int = 5000) -> OwnerChanges:
        """Return the owners whose facts changed after change number `since`."""
        keys = EvidenceKeys(environment)
        upto = since
        facts: dict[str, OwnerFacts] = {}
        while True:
            found = self._redis.zrange(
                keys.owner_changes,
                f"({upto}",
                "+inf",
                byscore=True,
                offset=0,
                num=at_most,
                withscores=True,
            )
            numbered = [pair(entry) for entry in found]
            facts.update(self.facts(environment, [text(name) for name, _ in numbered]))
            if numbered:
                upto = whole(numbered[-1][1])
            if len(found) < at_most:
                return OwnerChanges(facts, upto)


def _facts(stated: bytes | None, seen: bytes | None) -> OwnerFacts:
    told = None if stated is None else StatedFacts.unpacked(stated.decode())
    held = {} if seen is None else unpack(seen)
    if not isinstance(held, dict):
        raise TypeError(f"sightings are stored as {type(held).__name__}, not as a map")
    return OwnerFacts(
        ownership=None if told is None else told.ownership,
        is_trusted=told is not None and told.is_trusted,
        versions=_days(held.get("v")),
        producers=_days(held.get("p")),
        prompt_days=frozenset(_days(held.get("d")).values()),
    )


def _days(stored: object) -> dict[str, date]:
    # An empty Lua table is packed as an empty array.
    if not isinstance(stored, dict):
        return {}
    return {str(name): date.fromisoformat(str(day)) for name, day in stored.items()}
