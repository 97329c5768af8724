"""Violations and rollbacks, as they were committed."""

from redis import Redis

from control_plane.state import HarmLook, Rollback, Violation
from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.environments import PutField
from control_plane.stores.keys import EnvironmentKeys


def put_violation(environment: str, violation: Violation) -> PutField:
    """Return the write that records a violation under its record's identity."""
    key = EnvironmentKeys(environment).violations
    return PutField(key, violation.identity, encode(violation))


def put_rollback(environment: str, rollback: Rollback) -> PutField:
    """Return the write that records a rollback under its number."""
    return PutField(EnvironmentKeys(environment).rollbacks, str(rollback.id), encode(rollback))


def put_harm_look(environment: str, look: HarmLook) -> PutField:
    """Return the write that records a look for harm; each look of a wave is one field."""
    key = EnvironmentKeys(environment).harm_looks(look.guard)
    return PutField(key, f"{look.wave}:{look.number}", encode(look))


class IncidentStore:
    """What went wrong in all environments, and what was done about it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def known(self, environment: str, identities: list[str]) -> frozenset[str]:
        """Return which of these record identities already have a violation."""
        if not identities:
            return frozenset()
        key = EnvironmentKeys(environment).violations
        held = zip(identities, self._redis.hmget(key, identities), strict=True)
        return frozenset(identity for identity, stored in held if stored is not None)

    @unavailable()
    def violations(self, environment: str) -> tuple[Violation, ...]:
        """Return all violations of the environment, oldest first."""
        stored = self._redis.hvals(EnvironmentKeys(environment).violations)
        return tuple(sorted((decode(Violation, each) for each in stored), key=_violation_id))

    @unavailable()
    def rollback(self, environment: str, number: int) -> Rollback | None:
        """Return one rollback, None when its number was never given."""
        stored = self._redis.hget(EnvironmentKeys(environment).rollbacks, str(number))
        return None if stored is None else decode(Rollback, stored)

    @unavailable()
    def rollbacks(self, environment: str) -> tuple[Rollback, ...]:
        """Return all rollbacks of the environment, newest first."""
        stored = self._redis.hvals(EnvironmentKeys(environment).rollbacks)
        found = (decode(Rollback, each) for each in stored)
        return tuple(sorted(found, key=_rollback_id, reverse=True))

    @unavailable()
    def record_harm_look(self, environment: str, look: HarmLook) -> None:
        """Keep a look that changes nothing else; the first one of its number stays."""
        write = put_harm_look(environment, look)
        self._redis.hsetnx(write.key, write.field, write.value)

    @unavailable()
    def harm_looks(self, environment: str, guard: str) -> tuple[HarmLook, ...]:
        """Return all looks for harm at a guard, in order of wave and number."""
        stored = self._redis.hvals(EnvironmentKeys(environment).harm_looks(guard))
        looks = (decode(HarmLook, each) for each in stored)
        return tuple(sorted(looks, key=lambda look: (look.wave, look.number)))


def _violation_id(violation: Violation) -> int:
    return violation.id


def _rollback_id(rollback: Rollback) -> int:
    return rollback.id
