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
from reducer.rollout import ladder
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
        moves = _moves(context, before, RolledBack(), guard=guard)
        if not moves:
            return Unchanged(_nothing_to_lower(context, before, actor, reason))
        record = _record(context, before, moves, actor=actor, reason=reason)
        note = _note(record, moves, Action.ROLLED_BACK, environment)
        after = replace(before, rollbacks=record.id)
        writes: tuple[Write, ...] = (
            *_writes(context, moves),
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
    Every rollout's generation moves, in shadow and in off too: no evaluation made before the
    violation can promote after it. While a latch holds, a further violation is recorded and no
    more; the rollback that holds the environment is answered.
    """

    def decide(before: Environment) -> Decision[Rollback | None]:
        known = context.incidents.known(environment, [each.identity for each in found])
        fresh = {each.identity: each for each in found if each.identity not in known}
        if not fresh:
            return Unchanged(None)
        violations = _numbered(context, before, list(fresh.values()))
        if before.latch is not None:
            return _recorded(context, before, before.latch, violations)
        return _latched(context, before, violations)

    record = change(context, environment, decide)
    return None if record is None else _verified(context, environment, record)


def _latched(
    context: Context, before: Environment, violations: tuple[Violation, ...]
) -> Change[Rollback | None]:
    newest = violations[-1]
    moves = _moves(context, before, ladder.Latched())
    record = _record(context, before, moves, actor=SYSTEM, reason=_reason(newest))
    record = replace(record, violation=newest.id)
    held = Latch(
        rollback=record.id,
        reason=record.reason,
        at=record.at,
        first_violation=violations[0].id,
        newest_violation=newest.id,
    )
    after = replace(before, latch=held, violations=newest.id, rollbacks=record.id)
    writes: tuple[Write, ...] = (
        *_writes(context, moves),
        *(put_violation(before.name, each) for each in violations),
        put_rollback(before.name, record),
    )
    return Change(after, writes, _note(record, moves, Action.LATCHED, before.name), record)


def _recorded(
    context: Context, before: Environment, held: Latch, violations: tuple[Violation, ...]
) -> Change[Rollback | None]:
    newest = violations[-1]
    after = replace(before, latch=replace(held, newest_violation=newest.id), violations=newest.id)
    writes = tuple(put_violation(before.name, each) for each in violations)
    note = Note(SYSTEM, Action.VIOLATION_RECORDED, before.name, _reason(newest))
    return Change(after, writes, note, context.incidents.rollback(before.name, held.rollback))


def _reason(violation: Violation) -> str:
    return f"Invariant {violation.invariant} was violated under guard {violation.guard}."


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
        note = Note(actor, Action.ACKNOWLEDGED, f"rollback {rollback}, violation {newest}", reason)
        return Change(after, (), note, after)

    change(context, environment, decide)
    return load_environment(context, environment)


def _moves(
    context: Context,
    before: Environment,
    event: RolledBack | ladder.Latched,
    *,
    guard: str | None = None,
) -> tuple[tuple[Rollout, Rollout], ...]:
    """Return the rollouts that the event changes, each before and after it."""
    pairs: list[tuple[Rollout, Rollout]] = []
    for rollout in context.environments.rollouts(before):
        if guard is not None and rollout.guard != guard:
            continue
        after = apply(rollout, event)
        if not isinstance(after, Refusal) and after is not rollout:
            pairs.append((rollout, after))
    return tuple(pairs)


def _writes(context: Context, moves: Sequence[tuple[Rollout, Rollout]]) -> tuple[Put, ...]:
    return tuple(
        write
        for before, after in moves
        for write in (
            put_rollout(after),
            *close_wave(context, before),
            *(shadow_wave(context, after) if after.wave else ()),
        )
    )


def _record(
    context: Context,
    before: Environment,
    moves: Sequence[tuple[Rollout, Rollout]],
    *,
    actor: Actor,
    reason: str,
) -> Rollback:
    lowerings = tuple(
        Lowering(after.guard, rollout.phase, after.phase, after.generation)
        for rollout, after in moves
        if after.phase.rank < rollout.phase.rank
    )
    return Rollback(
        id=before.rollbacks + 1,
        at=context.clock.now(),
        actor=actor,
        reason=reason,
        changed=bool(lowerings),
        lowerings=lowerings,
    )


def _note(
    record: Rollback, moves: Sequence[tuple[Rollout, Rollout]], action: Action, environment: str
) -> Note:
    """Name every guard that moved; the entry's own generations have room for one alone."""
    if len(moves) == 1:
        before, after = moves[0]
        return Note(
            record.actor,
            action,
            f"{environment}: {after.guard}",
            record.reason,
            generation_before=before.generation,
            generation_after=after.generation,
        )
    named = ", ".join(
        f"{after.guard} generation {before.generation} -> {after.generation}"
        for before, after in moves
    )
    target = f"{environment}: {named}" if named else environment
    return Note(record.actor, action, target, record.reason)


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
