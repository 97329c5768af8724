"""Suspects: prompts that seem to violate a delayed invariant, until late records are in."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from redis import Redis

from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.shards import FIRST_SHARD, shard_count
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.server import (
    call,
    reply_int,
    reply_text,
    translate_store_errors,
)
from guardwave.reducer.vocabulary import Invariant


class Severity(IntEnum):
    """The consequence of a delayed violation, by its evidence; the Lua library holds the same.

    COUNTED: some records came from an untrusted producer. RECORDED: the host numbers no
    transitions, so the violation counts in gates and never latches. LATCHING: trusted and numbered.
    """

    COUNTED = 1
    RECORDED = 2
    LATCHING = 3


@dataclass(frozen=True, slots=True)
class SuspectedViolation:
    """A delayed invariant that a prompt violates under one guard, two minutes later.

    `prompt` is a digest, `generation` that of the assignment id of a record of the violation.
    """

    prompt: str
    stratum: Stratum
    invariant: Invariant
    severity: Severity
    generation: int
    shard: int = FIRST_SHARD

    @property
    def identity(self) -> str:
        """The identity by which a violation that is found again counts once.

        A latching violation and a recorded one differ, so that one may follow the other.
        """
        suffix = ":unnumbered" if self.severity is Severity.RECORDED else ""
        return f"{self.prompt}:{self.stratum.guard}:{self.invariant}{suffix}"


class SuspectStore:
    """The suspects of all environments. An overdue violation stays overdue until it is decided."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._count = shard_count(redis)

    @translate_store_errors()
    def overdue(
        self, environment: str, now: datetime, *, at_most: int = 100
    ) -> tuple[SuspectedViolation, ...]:
        """Return violations that no late record explained, of `at_most` prompts of each shard."""
        overdue: list[SuspectedViolation] = []
        for shard in range(self._count):
            keys = EvidenceKeys(environment, shard)
            arguments = (keys.slot, int(now.timestamp()), at_most)
            found = call(self._redis, "gw_overdue", keys=[keys.suspects], arguments=arguments)
            if not isinstance(found, list):
                raise TypeError(
                    f"the store answered {type(found).__name__} where a list was expected"
                )
            overdue += (_suspected_violation(reply, shard) for reply in found)
        return tuple(overdue)

    @translate_store_errors()
    def decide(
        self, environment: str, suspected: SuspectedViolation, *, counted_as: str = ""
    ) -> bool:
        """Mark a violation as decided and count it in intake's health; False if it was decided.

        Call it after the decision is written: after a crash in between it is overdue again.
        """
        keys = EvidenceKeys(environment, suspected.shard)
        guard, invariant = suspected.stratum.guard, suspected.invariant
        severity = int(suspected.severity)
        arguments = (keys.slot, suspected.prompt, guard, invariant, severity, counted_as)
        answer = call(self._redis, "gw_decide", keys=[keys.suspects], arguments=arguments)
        return bool(reply_int(answer))


def _suspected_violation(reply: list[object], shard: int) -> SuspectedViolation:
    prompt, _, invariant, severity, generation, stratum = reply
    return SuspectedViolation(
        prompt=reply_text(prompt),
        stratum=Stratum.from_name(reply_text(stratum)),
        invariant=Invariant(reply_text(invariant)),
        severity=Severity(reply_int(severity)),
        generation=reply_int(generation),
        shard=shard,
    )
