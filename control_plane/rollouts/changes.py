"""Changes of control state: load, decide, commit, and decide again after a lost race."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from guardwave.control_plane.core.errors import InvalidField
from guardwave.control_plane.core.state import Action, Actor, AuditEntry, Environment
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment, with_policy_ceiling
from guardwave.control_plane.stores.codec import encode
from guardwave.control_plane.stores.environments import Put, Write
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.rollout.draw import Roster
from guardwave.reducer.rollout.ladder import Event, Refusal, apply
from guardwave.reducer.rollout.state import Rollout, Wave

REASON_LENGTH = 10
REASON_LIMIT = 1000

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Note:
    """The content of a change's audit entry. `target` is a guard, a cohort or the environment."""

    actor: Actor
    action: Action
    target: str
    reason: str
    generation_before: int | None = None
    generation_after: int | None = None
    gate_evaluation: int | None = None


@dataclass(frozen=True, slots=True)
class Change(Generic[Result]):
    """A decision that changes something: the environment after it, further writes, and a note."""

    environment: Environment
    writes: tuple[Write, ...]
    note: Note
    result: Result


@dataclass(frozen=True, slots=True)
class Unchanged(Generic[Result]):
    """A decision that changes nothing; it makes no audit entry."""

    result: Result


Decision = Change[Result] | Unchanged[Result]


def change(
    context: Context,
    name: str,
    decide: Callable[[Environment], Decision[Result]],
    *,
    is_dry_run: bool = False,
) -> Result:
    """Decide on the environment as it is and commit; decide again when it changed meanwhile.

    The number of tries has no limit: each lost race means that another change was committed, and
    a rollback must win in the end.

    Raises:
        NotFound: there is no such environment.
    """
    while True:
        before = load_environment(context, name)
        decision = decide(before)
        if isinstance(decision, Unchanged) or is_dry_run:
            return decision.result
        if commit(context, before, decision):
            return decision.result


def commit(context: Context, before: Environment | None, decision: Change[Result]) -> bool:
    """Commit a decision with its audit entry, if nothing changed since `before` was read."""
    note = decision.note
    entry = AuditEntry(
        sequence=1 if before is None else before.sequence + 1,
        at=context.clock.now(),
        actor=note.actor,
        action=note.action,
        target=note.target,
        reason=note.reason,
        generation_before=note.generation_before,
        generation_after=note.generation_after,
        gate_evaluation=note.gate_evaluation,
        request_id=note.actor.request_id,
        previous="" if before is None else before.head,
    )
    after = replace(
        decision.environment,
        sequence=entry.sequence,
        head=entry.hash,
        revision=decision.environment.revision + 1,
    )
    return context.environments.commit(before, after, writes=decision.writes, entry=entry)


def apply_event(context: Context, rollout: Rollout, event: Event) -> Rollout | Refusal:
    """Apply an event to a stored rollout under the ceiling that binds it now.

    The stored ceiling stays: a stricter policy binds only while it is in force.
    """
    bound = with_policy_ceiling(context, rollout)
    after = apply(bound, event)
    if isinstance(after, Refusal):
        return after
    return rollout if after is bound else replace(after, ceiling_bps=rollout.ceiling_bps)


def check_reason(reason: str) -> str:
    """Return the reason without surrounding white space.

    Raises:
        InvalidField: it has fewer than 10 or more than 1,000 characters, or a control character.
    """
    reason = reason.strip()
    if len(reason) > REASON_LIMIT:
        raise InvalidField(
            f"reason has {len(reason)} characters; at most {REASON_LIMIT} are kept",
            pointer="/reason",
        )
    if any(ord(character) < 0x20 and character not in "\t\n\r" for character in reason):
        raise InvalidField("reason holds a control character; send plain text", pointer="/reason")
    if len(reason) < REASON_LENGTH:
        raise InvalidField(
            f"reason has {len(reason)} characters; say why in at least {REASON_LENGTH}",
            pointer="/reason",
        )
    return reason


def put_rollout(rollout: Rollout) -> Put:
    """Return the write of a rollout."""
    key = EnvironmentKeys(rollout.environment).rollout(rollout.guard)
    return Put(key, encode(rollout))


def put_wave(
    environment: str, guard: str, wave: Wave, roster: Roster | None = None
) -> tuple[Put, ...]:
    """Return the writes of a wave and, when it has one, of its roster."""
    keys = EnvironmentKeys(environment)
    puts = (Put(keys.wave(guard, wave.number), encode(wave)),)
    if roster is None:
        return puts
    return (*puts, Put(keys.roster(guard, wave.number), roster.packed()))


def close_wave(context: Context, rollout: Rollout) -> tuple[Put, ...]:
    """Return the write that closes the rollout's open wave; none without an open wave."""
    if rollout.wave == 0:
        return ()
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None or wave.closed_at is not None:
        return ()
    closed = replace(wave, closed_at=context.clock.now())
    return put_wave(rollout.environment, rollout.guard, closed)


def shadow_wave(context: Context, rollout: Rollout) -> tuple[Put, ...]:
    """Return the write that opens the shadow wave that the rollout names."""
    dwell = context.policies.of(rollout.environment).dwell_days
    wave = Wave(
        number=rollout.wave,
        phase=rollout.phase,
        version_pin=rollout.version_pin,
        looks=(dwell,),
        opened_at=context.clock.now(),
    )
    return put_wave(rollout.environment, rollout.guard, wave)
