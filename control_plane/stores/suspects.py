"""Prompts that violate a delayed invariant as far as they are known, until that is decided."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from redis import Redis

from control_plane.stores.cells import Cell
from control_plane.stores.connection import unavailable
from control_plane.stores.functions import call
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.replies import text, whole
from control_plane.stores.shards import FIRST, shard_count
from reducer.vocabulary import Invariant


class Worth(IntEnum):
    """What a delayed violation is worth, by what shows it; the Lua library holds the same.

    COUNTED: not all came from a trusted producer. RECORDED: their host numbers no transitions, so
    it counts in gates and never latches. LATCHING: trusted, and numbered.
    """

    COUNTED = 1
    RECORDED = 2
    LATCHING = 3


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A delayed invariant that a prompt violates under one guard, its two minutes over.

    `prompt` is a digest, `generation` that of the assignment id of a record that shows it.
    """

    prompt: str
    cell: Cell
    invariant: Invariant
    worth: Worth
    generation: int
    shard: int = FIRST

    @property
    def identity(self) -> str:
        """What makes it the same violation when it is found again.

        One that latches is another than one that does not, whichever of them was decided before.
        """
        suffix = ":unnumbered" if self.worth is Worth.RECORDED else ""
        return f"{self.prompt}:{self.cell.guard}:{self.invariant}{suffix}"


class SuspectStore:
    """The suspicions of all environments. What is overdue stays so until it was decided."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    @unavailable()
    def overdue(
        self, environment: str, now: datetime, *, at_most: int = 100
    ) -> tuple[Suspicion, ...]:
        """Return what no late record has explained, of so many prompts of a shard at most."""
        overdue: list[Suspicion] = []
        for shard in range(self._count):
            keys = EvidenceKeys(environment, shard)
            arguments = (keys.slot, int(now.timestamp()), at_most)
            found = call(self._redis, "gw_overdue", keys=[keys.suspects], arguments=arguments)
            if not isinstance(found, list):
                raise TypeError(f"the store answered {type(found).__name__} where a list was due")
            overdue += (_suspicion(each, shard) for each in found)
        return tuple(overdue)

    @unavailable()
    def decide(self, environment: str, suspicion: Suspicion, *, counted_as: str = "") -> bool:
        """Remember that it was decided, and count it in intake's health; False when it was before.

        Call it after what the decision writes: a crash in between finds it overdue again.
        """
        keys = EvidenceKeys(environment, suspicion.shard)
        guard, invariant = suspicion.cell.guard, suspicion.invariant
        worth = int(suspicion.worth)
        arguments = (keys.slot, suspicion.prompt, guard, invariant, worth, counted_as)
        answer = call(self._redis, "gw_decide", keys=[keys.suspects], arguments=arguments)
        return bool(whole(answer))


def _suspicion(told: list[object], shard: int) -> Suspicion:
    prompt, _, invariant, worth, generation, cell = told
    return Suspicion(
        prompt=text(prompt),
        cell=Cell.named(text(cell)),
        invariant=Invariant(text(invariant)),
        worth=Worth(whole(worth)),
        generation=whole(generation),
        shard=shard,
    )
