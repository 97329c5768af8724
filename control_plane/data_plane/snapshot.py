"""Snapshot: one worker's state of every environment, replaced as a whole, and its owner index.

Snapshots are immutable but for the owner index, which all snapshots of an environment share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.rollouts.access import trusted_among
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.credentials import Token
from guardwave.control_plane.stores.environments import ChangeMark
from guardwave.control_plane.stores.owners import OwnerChanges
from guardwave.reducer.rollout.allotment import Place
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership
from guardwave.reducer.rollout.state import Rollout, Wave

# A worker that has not heard from its store for this long answers no more than shadow.
STALE_S = 2.0

# Beyond so many audit entries between two rounds only revisions are compared.
_MOST_ENTRIES = 1000
# Entries that may be appended between the reading of the environment and that of its audit log.
_ENTRIES_MEANWHILE = 20
_MOST_SHARED_FACTS = 10_000

_Days = tuple[tuple[str, date], ...]
_FactsKey = tuple[Ownership | None, bool, _Days, _Days]


class OwnerIndex:
    """Facts by pseudonym. One thread applies changes; any thread may read meanwhile.

    It is changed in place: copying a million entries for each change would cost more than
    everything else. The facts of an owner are one value, so a reader sees the old or the new ones.
    """

    __slots__ = ("_facts", "_shared", "last_change")

    def __init__(self) -> None:
        self._facts: dict[str, OwnerFacts] = {}
        self._shared: dict[_FactsKey, OwnerFacts] = {}
        self.last_change = 0

    def __len__(self) -> int:
        return len(self._facts)

    def facts_of(self, pseudonym: str) -> OwnerFacts | None:
        """Return the owner's facts; None when nothing is known of it."""
        return self._facts.get(pseudonym)

    def apply(self, changes: OwnerChanges) -> None:
        """Take over changed facts. `last_change` is then the number from which to ask next."""
        for pseudonym, facts in changes.facts.items():
            self._facts[pseudonym] = self._share(facts)
        self.last_change = changes.last_change

    def _share(self, facts: OwnerFacts) -> OwnerFacts:
        """Return the one object that all owners with these facts share.

        Days with prompts are left out: they decide who gets on a roster, not who is eligible.
        """
        key = (
            facts.ownership,
            facts.is_trusted,
            tuple(sorted(facts.versions.items())),
            tuple(sorted(facts.producers.items())),
        )
        found = self._shared.get(key)
        if found is None:
            if len(self._shared) >= _MOST_SHARED_FACTS:
                # Facts of past days never come again; those in use live on in `_facts`.
                self._shared.clear()
            found = self._shared[key] = replace(facts, prompt_days=frozenset())
        return found


class StoreRegressionError(ValueError):
    """The store no longer holds what was read from it before."""


@dataclass(frozen=True, slots=True)
class RolloutSnapshot:
    """One rollout, with the roster that decides its cohorts.

    `wave` and `ranks` belong to `rollout.membership_wave`, None and empty without one; ranks count
    from 1. `fault` is the reason why nothing above shadow may be answered from it.
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
    """Everything a worker answers from. `read_at` is on the worker's monotonic clock, in seconds.

    `fault` is wrong with the store as a whole, `faults` with single environments; a faulty
    environment keeps its last good state, if there was one.
    """

    environments: Mapping[str, EnvironmentSnapshot] = field(default_factory=dict)
    read_at: float | None = None
    store_id: str | None = None
    tokens_revision: int = 0
    fault: str | None = None
    faults: Mapping[str, str] = field(default_factory=dict)

    def trouble_with(self, environment: str, now: float) -> str | None:
        """Return why this environment gets shadow at most; None when it may get more."""
        return self.trouble(now) or self.faults.get(environment)

    def trouble(self, now: float) -> str | None:
        """Return what is wrong with the snapshot as a whole; None when nothing is."""
        if self.fault is not None:
            return self.fault
        if self.read_at is None:
            return "this worker has not read its store yet"
        age = now - self.read_at
        if age > STALE_S:
            return f"this worker has not heard from its store for {age:.0f} s"
        return None


def load_snapshot(
    context: Context,
    name: str,
    *,
    mark: ChangeMark,
    tokens: tuple[Token, ...],
    before: EnvironmentSnapshot | None,
) -> EnvironmentSnapshot | None:
    """Return the environment as it is now, None when there is none; `before` saves work.

    The result is at least as new as `mark`, which was read earlier: a change in between may already
    be in it, and is read once more in the next round.

    Raises:
        StoreUnavailable: the store is away.
        StoreRegressionError: the environment does not continue `before`.
        ValueError: the environment cannot be read.
    """
    environment = context.environments.load(name)
    if environment is None or mark.revision is None:
        return None
    if before is not None:
        _check_continuity(context, before.environment, environment)
    known = {} if before is None else before.rollouts
    rollouts = {
        guard: _load_rollout(context, name, guard, known.get(guard)) for guard in environment.guards
    }
    owners = OwnerIndex() if before is None else before.owners
    owners.apply(context.owners.changes(name, since=owners.last_change))
    return EnvironmentSnapshot(
        environment=environment,
        rollouts={guard: rollout for guard, rollout in rollouts.items() if rollout is not None},
        owners=owners,
        trusted_producers=trusted_among(tokens, name),
        revision=mark.revision,
        pseudonym_key=bytes.fromhex(environment.pseudonym_key),
        tag_key=bytes.fromhex(environment.tag_key),
    )


def update_owners(context: Context, snapshot: EnvironmentSnapshot) -> None:
    """Read the owners that changed into the index that all snapshots of the environment share."""
    changes = context.owners.changes(snapshot.environment.name, since=snapshot.owners.last_change)
    snapshot.owners.apply(changes)


def _check_continuity(context: Context, before: Environment, after: Environment) -> None:
    """Check that the audit log continues from `before`: it may have lost its end and grown again.

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
        raise StoreRegressionError(f"its audit log no longer holds entry {before.sequence}")


def _load_rollout(
    context: Context, environment: str, guard: str, before: RolloutSnapshot | None
) -> RolloutSnapshot | None:
    """Read one rollout; if it cannot be read, the other rollouts are not affected."""
    try:
        rollout = context.environments.rollout(environment, guard)
    except ValueError:
        fault = "the stored rollout cannot be read by this server"
        return None if before is None else replace(before, fault=fault)
    if rollout is None:
        return None if before is None else replace(before, fault="the rollout is gone")
    if before is not None and rollout.generation < before.rollout.generation:
        raise StoreRegressionError(
            f"{guard} went from generation {before.rollout.generation} to {rollout.generation}"
        )
    return _add_roster(context, rollout, before)


def _add_roster(
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
