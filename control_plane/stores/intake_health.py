"""What intake counted, by producer and version, and which treatment its records still show."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from redis import Redis

from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.replies import text, whole
from reducer.vocabulary import Mode


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What came from one producer, by the id of its token, with one service version.

    An empty version says that the items named none. `counts` are counters of intake; two of them
    are no counts: `last_record_s` is when the last record came, `ahead_s` how many seconds the
    newest record of that request lay ahead of the clock here, negative behind it.
    """

    producer: str
    version: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TreatedRecords:
    """Records of prompts under assignment ids of one mode above shadow and one generation."""

    guard: str
    mode: Mode
    generation: int
    records: int
    last_second: int


class IntakeHealthStore:
    """Intake's health of all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def sources(self, environment: str) -> tuple[SourceCounts, ...]:
        """Return what was counted of each producer and version, sorted by them."""
        counted: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for name, value in self._redis.hgetall(EvidenceKeys(environment).sources).items():
            producer, version, counter = json.loads(name)
            counted[producer, version][counter] = whole(value)
        return tuple(SourceCounts(*of, counts) for of, counts in sorted(counted.items()))

    @unavailable()
    def treated(self, environment: str) -> tuple[TreatedRecords, ...]:
        """Return how many records came under ids that give more than shadow, and when the last."""
        told: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for name, value in self._redis.hgetall(EvidenceKeys(environment).treated).items():
            which, _, part = text(name).rpartition("|")
            told[which][part] = whole(value)
        return tuple(
            _treated(which, parts) for which, parts in sorted(told.items()) if "|" in which
        )

    @unavailable()
    def forget_treated(self, environment: str, *, before_second: int) -> int:
        """Forget ids whose last record is older; answer of how many."""
        key = EvidenceKeys(environment).treated
        old = [each for each in self.treated(environment) if each.last_second < before_second]
        names = [f"{each.guard}|{each.mode}|{each.generation}" for each in old]
        if names:
            parts = [f"{name}|{part}" for name in names for part in ("records", "last")]
            self._redis.hdel(key, *parts)
        return len(old)


def _treated(which: str, parts: Mapping[str, int]) -> TreatedRecords:
    guard, mode, generation = which.split("|")
    return TreatedRecords(
        guard, Mode(mode), int(generation), parts.get("records", 0), parts.get("last", 0)
    )
