"""What one web worker knows: an immutable picture of every environment, replaced as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from control_plane.commands.trust import trusted_among
from control_plane.context import Context
from control_plane.data_plane.owner_index import OwnerIndex
from control_plane.state import Environment
from control_plane.stores.credentials import Token
from control_plane.stores.environments import Mark
from reducer.rollout.allotment import Place
from reducer.rollout.state import Rollout, Wave

# A worker that has not heard from its store for this long answers no more than shadow.
STALE_S = 2.0


# More audit entries than this between two readings are not walked; revisions are still compared.
_MOST_ENTRIES = 1000
_ENTRIES_MEANWHILE = 20


class WentBackError(ValueError):
    """The store no longer holds what was read from it before."""


@dataclass(frozen=True, slots=True)
class RolloutSnapshot:
    """One rollout, with the roster that tells its cohorts apart.

    `wave` and `ranks` are of `rollout.membership_wave`, None and empty without one; ranks count
    from 1. `fault` says why nothing above shadow may be answered from this.
    """

    rollout: Rollout
    wave: Wave | None = None
    ranks: Mapping[str, int] = field(default_factory=dict, repr=False)
    fault: str | None = None

    def place_of(self, pseudonym: str) -> Place | None:
        """Return the owner's place on the roster; None for an owner that is not on it."""
        rank = self.ranks.get(pseudonym)
        if rank is None or self.wave is None:
            return None
        return Place(rank, self.wave.roster_size, self.wave.treated, self.wave.algorithm)


@dataclass(frozen=True, slots=True)
class EnvironmentSnapshot:
    """One environment at a revision. The keys stay inside the process."""

    environment: Environment
    rollouts: Mapping[str, RolloutSnapshot]
    owners: OwnerIndex
    trusted_producers: frozenset[str]
    revision: int
    pseudonym_key: bytes = field(repr=False)
    tag_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a worker answers from. `heard_at` is on the worker's monotonic clock, in seconds.

    `fault` says what is wrong with the store as a whole, `faults` with single environments; a
    faulty environment keeps the last picture of it that was good, if there ever was one.
    """

    environments: Mapping[str, EnvironmentSnapshot] = field(default_factory=dict)
    heard_at: float | None = None
    store_id: str | None = None
    tokens_revision: int = 0
    fault: str | None = None
    faults: Mapping[str, str] = field(default_factory=dict)

    def trouble_with(self, environment: str, now: float) -> str | None:
        """Say why nothing above shadow may be answered for this environment; None: it may."""
        return self.trouble(now) or self.faults.get(environment)

    def trouble(self, now: float) -> str | None:
        """Say what is wrong with the whole snapshot; None when it can be answered from."""
        if self.fault is not None:
            return self.fault
        if self.heard_at is None:
            return "this worker has not read its store yet"
        age = now - self.heard_at
        if age > STALE_S:
            return f"this worker has not heard from its store for {age:.0f} s"
        return None


def load(
    context: Context,
    name: str,
    *,
    mark: Mark,
    tokens: tuple[Token, ...],
    before: EnvironmentSnapshot | None,
) -> EnvironmentSnapshot | None:
    """Return the environment as it is now, None when there is none; `before` saves work.

    The result is at least as new as `mark`, which was read earlier: a change that comes in between
    may already be in it and is read once more on the next round.

    Raises:
        StoreUnavailable: the store is away.
        WentBackError: the environment does not continue `before`.
        ValueError: the environment cannot be read.
    """
    environment = context.environments.load(name)
    if environment is None or mark.revision is None:
        return None
    if before is not None:
        _check_continuity(context, before.environment, environment)
    known = {} if before is None else before.rollouts
    rollouts = {
        guard: _rollout(context, name, guard, known.get(guard)) for guard in environment.guards
    }
    owners = OwnerIndex() if before is None else before.owners
    owners.learn(context.owners.changes(name, since=owners.upto))
    return EnvironmentSnapshot(
        environment=environment,
        rollouts={guard: found for guard, found in rollouts.items() if found is not None},
        owners=owners,
        trusted_producers=trusted_among(tokens, name),
        revision=mark.revision,
        pseudonym_key=bytes.fromhex(environment.pseudonym_key),
        tag_key=bytes.fromhex(environment.tag_key),
    )


def follow_owners(context: Context, held: EnvironmentSnapshot) -> None:
    """Learn the owners that changed. The index is shared by all snapshots of the environment."""
    found = context.owners.changes(held.environment.name, since=held.owners.upto)
    held.owners.learn(found)


def _check_continuity(context: Context, before: Environment, after: Environment) -> None:
    """Refuse a history that forked: one that lost its end and grew as long again meanwhile.

    Revisions alone would not show that. Each audit entry names the hash of the one before it.
    """
    span = after.sequence - before.sequence
    if span > _MOST_ENTRIES:
        return
    if span > 0:
        entries = context.environments.audit_entries(after.name, count=span + _ENTRIES_MEANWHILE)
        continues = any(entry["previous"] == before.head for entry in entries)
    else:
        continues = after.head == before.head
    if not continues:
        raise WentBackError(f"its audit log no longer holds entry {before.sequence}")


def _rollout(
    context: Context, environment: str, guard: str, before: RolloutSnapshot | None
) -> RolloutSnapshot | None:
    """Read one rollout; one that cannot be read does not take the others along."""
    try:
        rollout = context.environments.rollout(environment, guard)
    except ValueError:
        fault = "the stored rollout cannot be read by this server"
        return None if before is None else replace(before, fault=fault)
    if rollout is None:
        return None if before is None else replace(before, fault="the rollout is gone")
    if before is not None and rollout.generation < before.rollout.generation:
        raise WentBackError(
            f"{guard} went from generation {before.rollout.generation} to {rollout.generation}"
        )
    return _with_roster(context, rollout, before)


def _with_roster(
    context: Context, rollout: Rollout, before: RolloutSnapshot | None
) -> RolloutSnapshot:
    number = rollout.membership_wave
    if number == 0:
        return RolloutSnapshot(rollout)
    if before is not None and before.wave is not None and before.wave.number == number:
        return replace(before, rollout=rollout, fault=None)
    try:
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is None:
            return RolloutSnapshot(rollout, fault=f"wave {number} is gone")
        roster = context.environments.roster(rollout.environment, rollout.guard, wave)
    except ValueError as error:
        return RolloutSnapshot(rollout, fault=f"wave {number} cannot be used: {error}")
    ordered = () if roster is None else roster.pseudonyms
    ranks = {pseudonym: rank for rank, pseudonym in enumerate(ordered, start=1)}
    return RolloutSnapshot(rollout, wave, ranks)
