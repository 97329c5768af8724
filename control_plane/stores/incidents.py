"""Incidents: violations, rollbacks and looks for harm, as committed."""

from redis import Redis

from guardwave.control_plane.core.state import HarmLook, Rollback, Violation
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.environments import PutField
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server import translate_store_errors


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
    """The incidents of all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def known(self, environment: str, identities: list[str]) -> frozenset[str]:
        """Return which of these record identities already have a violation."""
        if not identities:
            return frozenset()
        key = EnvironmentKeys(environment).violations
        pairs = zip(identities, self._redis.hmget(key, identities), strict=True)
        return frozenset(identity for identity, stored in pairs if stored is not None)

    @translate_store_errors()
    def violations(self, environment: str) -> tuple[Violation, ...]:
        """Return all violations of the environment, oldest first."""
        stored = self._redis.hvals(EnvironmentKeys(environment).violations)
        return tuple(sorted((decode(Violation, text) for text in stored), key=_violation_id))

    @translate_store_errors()
    def rollback(self, environment: str, number: int) -> Rollback | None:
        """Return one rollback; None when its number was never used."""
        stored = self._redis.hget(EnvironmentKeys(environment).rollbacks, str(number))
        return None if stored is None else decode(Rollback, stored)

    @translate_store_errors()
    def rollbacks(self, environment: str) -> tuple[Rollback, ...]:
        """Return all rollbacks of the environment, newest first."""
        stored = self._redis.hvals(EnvironmentKeys(environment).rollbacks)
        rollbacks = (decode(Rollback, text) for text in stored)
        return tuple(sorted(rollbacks, key=_rollback_id, reverse=True))

    @translate_store_errors()
    def record_harm_look(self, environment: str, look: HarmLook) -> None:
        """Keep a look that changes nothing else; the first one with its number stays."""
        write = put_harm_look(environment, look)
        self._redis.hsetnx(write.key, write.field, write.value)

    @translate_store_errors()
    def harm_looks(self, environment: str, guard: str) -> tuple[HarmLook, ...]:
        """Return all looks for harm at a guard, in order of wave and number."""
        stored = self._redis.hvals(EnvironmentKeys(environment).harm_looks(guard))
        looks = (decode(HarmLook, text) for text in stored)
        return tuple(sorted(looks, key=lambda look: (look.wave, look.number)))


def _violation_id(violation: Violation) -> int:
    return violation.id


def _rollback_id(rollback: Rollback) -> int:
    return rollback.id
