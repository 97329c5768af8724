"""Environments, rollouts, waves and rosters, and the one way to change them: `commit`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redis import Redis

from control_plane.state import AuditEntry, Environment
from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.keys import ENVIRONMENTS, EnvironmentKeys
from reducer.rollout.draw import Roster
from reducer.rollout.ladder import Rollout, Wave


@dataclass(frozen=True, slots=True)
class Put:
    """Set a string key to these bytes, within a commit."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class PutField:
    """Set one field of a hash, within a commit."""

    key: str
    field: str
    value: bytes


Write = Put | PutField


class EnvironmentStore:
    """The control plane's own state. Reads are plain; every write is a commit."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def names(self) -> tuple[str, ...]:
        """Return the names of all environments, sorted."""
        return tuple(sorted(name.decode() for name in self._redis.smembers(ENVIRONMENTS)))

    @unavailable()
    def load(self, name: str) -> Environment | None:
        """Return the environment, None when there is none of this name."""
        stored = self._redis.hget(EnvironmentKeys(name).state, "environment")
        return None if stored is None else decode(Environment, stored)

    @unavailable()
    def rollout(self, environment: str, guard: str) -> Rollout | None:
        """Return the rollout of a guard, None when the guard has none here."""
        stored = self._redis.get(EnvironmentKeys(environment).rollout(guard))
        return None if stored is None else decode(Rollout, stored)

    @unavailable()
    def rollouts(self, environment: Environment) -> tuple[Rollout, ...]:
        """Return all rollouts of the environment, by guard name."""
        if not environment.guards:
            return ()
        keys = EnvironmentKeys(environment.name)
        stored = self._redis.mget([keys.rollout(guard) for guard in environment.guards])
        return tuple(decode(Rollout, each) for each in stored if each is not None)

    @unavailable()
    def wave(self, environment: str, guard: str, number: int) -> Wave | None:
        """Return one wave, None when its number was never used."""
        stored = self._redis.get(EnvironmentKeys(environment).wave(guard, number))
        return None if stored is None else decode(Wave, stored)

    @unavailable()
    def roster(self, environment: str, guard: str, wave: Wave) -> Roster | None:
        """Return the frozen roster of a wave, None for a wave without one.

        Raises:
            ValueError: the stored roster does not have the digest that the wave names.
        """
        if not wave.roster_digest:
            return None
        packed = self._redis.get(EnvironmentKeys(environment).roster(guard, wave.number))
        roster = Roster.unpacked(packed or b"", wave.treated)
        if roster.digest != wave.roster_digest:
            raise ValueError(f"the roster of wave {wave.number} does not have its wave's digest")
        return roster

    @unavailable()
    def commit(
        self,
        before: Environment | None,
        after: Environment,
        *,
        writes: Sequence[Write],
        entry: AuditEntry,
    ) -> bool:
        """Apply the writes and append the audit entry together, or do nothing.

        Returns False when the environment changed since `before` was read: load again and decide
        again. The audit chain's head is what is compared, so every change is seen by every other.
        """
        keys = EnvironmentKeys(after.name)
        if before is None:
            # Listed first: a listed environment that does not exist yet is skipped everywhere, an
            # unlisted one that exists would be forgotten.
            self._redis.sadd(ENVIRONMENTS, after.name)
        ops = [_operation(write, at) for at, write in enumerate(writes, start=3)]
        done = self._redis.fcall(
            "gw_commit",
            2 + len(writes),
            keys.state,
            keys.audit,
            *(write.key for write in writes),
            "" if before is None else before.head,
            entry.hash,
            encode(after),
            entry.canonical(),
            json.dumps(ops),
            *(write.value for write in writes),
        )
        return bool(done)

    @unavailable()
    def audit_entries(self, environment: str, *, count: int = 100) -> tuple[dict[str, object], ...]:
        """Return the newest audit entries as stored, newest first."""
        found = self._redis.xrevrange(EnvironmentKeys(environment).audit, count=count)
        return tuple(json.loads(fields[b"entry"]) for _, fields in found)


def _operation(write: Write, at: int) -> list[object]:
    match write:
        case Put():
            return ["SET", at]
        case PutField(field=field):
            return ["HSET", at, field]
