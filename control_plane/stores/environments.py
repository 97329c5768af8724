"""Environment store: environments, rollouts, waves and rosters, changed only by `commit`."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis import Redis

from guardwave.control_plane.core.state import AuditEntry, Environment
from guardwave.control_plane.stores.audit import StoredEntry
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.keys import (
    ENVIRONMENTS,
    STORE_ID,
    TOKENS_REVISION,
    EnvironmentKeys,
    EvidenceKeys,
)
from guardwave.control_plane.stores.server import (
    call,
    reply_bytes,
    reply_int,
    reply_text,
    translate_store_errors,
)
from guardwave.reducer.rollout.draw import Roster
from guardwave.reducer.rollout.state import Rollout, Wave


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


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """How far one environment has changed; `revision` is None when the environment is missing."""

    revision: int | None
    owner_changes: int


@dataclass(frozen=True, slots=True)
class ChangeMarks:
    """How far the store has changed; `store_id` is None while nobody has served from it."""

    store_id: str | None
    tokens_revision: int
    environments: Mapping[str, ChangeMark]


class EnvironmentStore:
    """The control plane's own state. Reads are plain; every write is a commit."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def store_id(self) -> str:
        """Return the id of this store, made when `serve` first starts on it and never again.

        It shows when a store was emptied or replaced: that one has no id, or another one.
        """
        self._redis.set(STORE_ID, secrets.token_hex(16), nx=True)
        return reply_text(self._redis.get(STORE_ID))

    @translate_store_errors()
    def change_marks(self, known: Sequence[str] = ()) -> ChangeMarks:
        """Return how far everything has changed, in one round trip while no environment is new.

        The marks of `known` environments are read whether or not the store still lists them.
        """
        pipe = self._redis.pipeline(transaction=False)
        pipe.get(STORE_ID)
        pipe.get(TOKENS_REVISION)
        pipe.smembers(ENVIRONMENTS)
        for name in known:
            pipe.hget(EnvironmentKeys(name).state, "revision")
            pipe.get(EvidenceKeys(name).owner_change_count)
        store_id, tokens, listed, *numbers = pipe.execute()
        marks = _marks(known, numbers)
        fresh = sorted({name.decode() for name in listed} - marks.keys())
        if fresh:
            marks |= self._read_marks(fresh)
        return ChangeMarks(None if store_id is None else store_id.decode(), int(tokens or 0), marks)

    def _read_marks(self, names: Sequence[str]) -> dict[str, ChangeMark]:
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.hget(EnvironmentKeys(name).state, "revision")
            pipe.get(EvidenceKeys(name).owner_change_count)
        return _marks(names, pipe.execute())

    @translate_store_errors()
    def names(self) -> tuple[str, ...]:
        """Return the names of all environments, sorted."""
        return tuple(sorted(reply_text(name) for name in self._redis.smembers(ENVIRONMENTS)))

    @translate_store_errors()
    def load(self, name: str) -> Environment | None:
        """Return the environment; None when there is none of this name."""
        stored = self._redis.hget(EnvironmentKeys(name).state, "environment")
        return None if stored is None else decode(Environment, stored)

    @translate_store_errors()
    def rollout(self, environment: str, guard: str) -> Rollout | None:
        """Return the rollout of a guard; None when the guard has none here."""
        stored = self._redis.get(EnvironmentKeys(environment).rollout(guard))
        return None if stored is None else decode(Rollout, stored)

    @translate_store_errors()
    def rollouts(self, environment: Environment) -> tuple[Rollout, ...]:
        """Return all rollouts of the environment, by guard name."""
        if not environment.guards:
            return ()
        keys = EnvironmentKeys(environment.name)
        stored = self._redis.mget([keys.rollout(guard) for guard in environment.guards])
        return tuple(decode(Rollout, text) for text in stored if text is not None)

    @translate_store_errors()
    def wave(self, environment: str, guard: str, number: int) -> Wave | None:
        """Return one wave; None when its number was never used."""
        stored = self._redis.get(EnvironmentKeys(environment).wave(guard, number))
        return None if stored is None else decode(Wave, stored)

    @translate_store_errors()
    def roster(self, environment: str, guard: str, wave: Wave) -> Roster | None:
        """Return the frozen roster of a wave; None for a wave without one.

        Raises:
            ValueError: the stored roster does not have the digest that the wave names.
        """
        if not wave.roster_digest:
            return None
        packed = self._redis.get(EnvironmentKeys(environment).roster(guard, wave.number))
        roster = Roster.unpacked(b"" if packed is None else reply_bytes(packed), wave.treated)
        if roster.digest != wave.roster_digest:
            raise ValueError(f"the roster of wave {wave.number} does not have its wave's digest")
        return roster

    @translate_store_errors()
    def commit(
        self,
        before: Environment | None,
        after: Environment,
        *,
        writes: Sequence[Write],
        entry: AuditEntry,
    ) -> bool:
        """Apply the writes and append the audit entry together, or do nothing.

        Return False when the environment changed since `before` was read: load again and decide
        again. The call compares the head of the audit chain, which every change moves.
        """
        keys = EnvironmentKeys(after.name)
        if before is None:
            # List it first: readers skip a listed environment that does not exist yet, but would
            # never find an existing one that is not listed.
            self._redis.sadd(ENVIRONMENTS, after.name)
        operations = [_operation(write, at) for at, write in enumerate(writes, start=3)]
        is_applied = call(
            self._redis,
            "gw_commit",
            keys=[keys.state, keys.audit, *(write.key for write in writes)],
            arguments=[
                "" if before is None else before.head,
                entry.hash,
                encode(after),
                entry.canonical(),
                # A nonce: shows that a repeated call, after a broken connection, is this commit.
                secrets.token_hex(8),
                json.dumps(operations),
                *(write.value for write in writes),
            ],
        )
        return bool(reply_int(is_applied))

    @translate_store_errors()
    def audit_entries(self, environment: str, *, count: int = 100) -> tuple[dict[str, object], ...]:
        """Return the newest audit entries as stored, newest first."""
        found = self._redis.xrevrange(EnvironmentKeys(environment).audit, count=count)
        return tuple(json.loads(entry.text) for entry in map(_stored_entry, found or ()))

    @translate_store_errors()
    def audit_after(
        self, environment: str, *, after: str | None, count: int
    ) -> tuple[tuple[str, StoredEntry], ...]:
        """Return audit entries with their stream ids, oldest first.

        `after` is the stream id of the last entry already read, None for the beginning.
        """
        start = "-" if after is None else f"({after}"
        found = self._redis.xrange(EnvironmentKeys(environment).audit, min=start, count=count)
        return tuple((reply_text(entry[0]), _stored_entry(entry)) for entry in found or ())

    @translate_store_errors()
    def audit_chain(self, environment: str) -> tuple[StoredEntry, ...]:
        """Return the whole audit chain as stored, oldest first, for `audit.verify`."""
        found = self._redis.xrange(EnvironmentKeys(environment).audit)
        return tuple(map(_stored_entry, found or ()))


def _marks(names: Sequence[str], numbers: Sequence[bytes | None]) -> dict[str, ChangeMark]:
    pairs = zip(names, numbers[::2], numbers[1::2], strict=True)
    return {
        name: ChangeMark(None if revision is None else int(revision), int(changes or 0))
        for name, revision, changes in pairs
    }


def _stored_entry(entry: object) -> StoredEntry:
    if not isinstance(entry, tuple) or not isinstance(entry[1], dict):
        raise TypeError(f"an audit entry is stored as {type(entry).__name__}, not with fields")
    fields = entry[1]
    return StoredEntry(reply_text(fields.get(b"entry")), reply_text(fields.get(b"hash")))


def _operation(write: Write, at: int) -> list[object]:
    match write:
        case Put():
            return ["SET", at]
        case PutField(field=field):
            return ["HSET", at, field]
