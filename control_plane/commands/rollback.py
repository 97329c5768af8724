"""Back to shadow: by a person, or by the system with a latch. It outranks what it races with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    change,
    check_reason,
    close_wave,
    load_environment,
    load_rollout,
    put_rollout,
    shadow_wave,
)
from control_plane.context import Context
from control_plane.errors import NotFound, StateConflict
from control_plane.etags import check_precondition, environment_etag
from control_plane.state import (
    SYSTEM,
    Action,
    Actor,
    Environment,
    Latch,
    Lowering,
    Rollback,
    Violation,
)
from control_plane.stores.environments import Put, Write
from control_plane.stores.incidents import put_rollback, put_violation
from reducer.rollout.ladder import Refusal, RolledBack, apply
from reducer.rollout.state import Rollout
from reducer.vocabulary import Invariant, Mode


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A violated invariant in one record, with what the assignment id of the record says."""

    identity: str
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int


def roll_back(
    context: Context, environment: str, *, actor: Actor, reason: str, guard: str | None = None
) -> Rollback:
    """Return one guard, or all guards of the environment, to shadow.

    Nothing of the state can refuse it. When there is nothing to lower the newest rollback is
    answered with `changed` False.

    Raises:
        InvalidField: the reason is too short.
        NotFound: no such environment or guard.
    """
    reason = check_reason(reason)

    def decide(before: Environment) -> Decision[Rollback]:
        lowered = _lowered(context, before, guard)
        if not lowered:
            return Unchanged(_nothing_to_lower(context, before, actor, reason))
        record = _record(context, before, lowered, actor=actor, reason=reason)
        note = _note(record, lowered, Action.ROLLED_BACK, guard or environment)
        after = replace(before, rollbacks=record.id)
        writes: tuple[Write, ...] = (
            *_writes(context, lowered),
            put_rollback(environment, record),
        )
        return Change(after, writes, note, record)

    if guard is not None:
        load_rollout(context, environment, guard)
    return _verified(context, environment, change(context, environment, decide))


def latch(context: Context, environment: str, found: Sequence[FoundViolation]) -> Rollback | None:
    """Record violations and hold the environment in shadow; None when all were known before.

    One commit writes violations, rollback and latch together, before any evidence of the records
    that showed them: a crash in between loses nothing, because the sender repeats the request.
    """

    def decide(before: Environment) -> Decision[Rollback | None]:
        known = context.incidents.known(environment, [each.identity for each in found])
        fresh = {each.identity: each for each in found if each.identity not in known}
        if not fresh:
            return Unchanged(None)
        violations = _numbered(context, before, list(fresh.values()))
        newest = violations[-1]
        reason = f"Invariant {newest.invariant} was violated under guard {newest.guard}."
        lowered = _lowered(context, before, None)
        record = _record(context, before, lowered, actor=SYSTEM, reason=reason)
        record = replace(record, violation=newest.id)
        held = before.latch
        latched = Latch(
            rollback=record.id if held is None else held.rollback,
            reason=reason if held is None else held.reason,
            at=record.at if held is None else held.at,
            first_violation=violations[0].id if held is None else held.first_violation,
            newest_violation=newest.id,
        )
        adds_rollback = bool(lowered) or held is None
        after = replace(
            before,
            latch=latched,
            violations=newest.id,
            rollbacks=record.id if adds_rollback else before.rollbacks,
        )
        writes = (
            *_writes(context, lowered),
            *(put_violation(environment, each) for each in violations),
            *((put_rollback(environment, record),) if adds_rollback else ()),
        )
        action = Action.LATCHED if adds_rollback else Action.VIOLATION_RECORDED
        return Change(after, writes, _note(record, lowered, action, environment), record)

    record = change(context, environment, decide)
    return None if record is None else _verified(context, environment, record)


def acknowledge(
    context: Context,
    environment: str,
    rollback: int,
    *,
    last_violation: int,
    actor: Actor,
    reason: str,
    if_match: str | None,
) -> Environment:
    """Release the latch, naming the newest violation seen; a newer one refuses it.

    Raises:
        NotFound: no such environment or rollback.
        StateConflict: the environment is not latched by this rollback, or a newer violation came.
    """
    reason = check_reason(reason)

    def decide(before: Environment) -> Decision[Environment]:
        if context.incidents.rollback(environment, rollback) is None:
            raise NotFound(f"{environment} has no rollback {rollback}")
        check_precondition(if_match, environment_etag(before), is_required=True)
        if before.latch is None or before.latch.rollback != rollback:
            holder = "nothing" if before.latch is None else f"rollback {before.latch.rollback}"
            raise StateConflict(f"{environment} is latched by {holder}, not by rollback {rollback}")
        newest = before.latch.newest_violation
        if last_violation != newest:
            raise StateConflict(
                f"the newest violation is {newest}, not {last_violation}; look at it before you "
                "acknowledge"
            )
        after = replace(before, latch=None)
        note = Note(actor, Action.ACKNOWLEDGED, f"rollback {rollback}", reason)
        return Change(after, (), note, after)

    change(context, environment, decide)
    return load_environment(context, environment)


def _lowered(
    context: Context, before: Environment, guard: str | None
) -> tuple[tuple[Rollout, Rollout], ...]:
    pairs: list[tuple[Rollout, Rollout]] = []
    for rollout in context.environments.rollouts(before):
        if guard is not None and rollout.guard != guard:
            continue
        after = apply(rollout, RolledBack())
        if not isinstance(after, Refusal) and after is not rollout:
            pairs.append((rollout, after))
    return tuple(pairs)


def _writes(context: Context, lowered: Sequence[tuple[Rollout, Rollout]]) -> tuple[Put, ...]:
    return tuple(
        write
        for before, after in lowered
        for write in (
            put_rollout(after),
            *close_wave(context, before),
            *shadow_wave(context, after),
        )
    )


def _record(
    context: Context,
    before: Environment,
    lowered: Sequence[tuple[Rollout, Rollout]],
    *,
    actor: Actor,
    reason: str,
) -> Rollback:
    return Rollback(
        id=before.rollbacks + 1,
        at=context.clock.now(),
        actor=actor,
        reason=reason,
        changed=bool(lowered),
        lowerings=tuple(
            Lowering(after.guard, rollout.phase, after.phase, after.generation)
            for rollout, after in lowered
        ),
    )


def _note(
    record: Rollback, lowered: Sequence[tuple[Rollout, Rollout]], action: Action, target: str
) -> Note:
    generations = lowered[0] if len(lowered) == 1 else None
    return Note(
        record.actor,
        action,
        target,
        record.reason,
        generation_before=generations[0].generation if generations else None,
        generation_after=generations[1].generation if generations else None,
    )


def _numbered(
    context: Context, before: Environment, fresh: Sequence[FoundViolation]
) -> tuple[Violation, ...]:
    now = context.clock.now()
    return tuple(
        Violation(
            id=number,
            identity=each.identity,
            invariant=each.invariant,
            guard=each.guard,
            mode=each.mode,
            generation=each.generation,
            at=now,
        )
        for number, each in enumerate(fresh, start=before.violations + 1)
    )


def _nothing_to_lower(context: Context, before: Environment, actor: Actor, reason: str) -> Rollback:
    newest = context.incidents.rollback(before.name, before.rollbacks)
    if newest is not None:
        return replace(newest, changed=False)
    return Rollback(0, context.clock.now(), actor, reason, changed=False, lowerings=())


def _verified(context: Context, environment: str, record: Rollback) -> Rollback:
    """Read the store again: no guard that was lowered may show a mode above shadow.

    A promotion that was decided after the rollback has a newer generation and does not count.
    """
    for lowering in record.lowerings:
        held = context.environments.rollout(environment, lowering.guard)
        is_current = held is not None and held.generation == lowering.generation
        if held is None or (is_current and held.phase.rank > Mode.SHADOW.rank):
            return record
    return replace(record, is_verified=True)
