"""Rollback: back to shadow, by a person or by the latch, ahead of every change it races with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from guardwave.control_plane.commands.demotion import (
    move_writes,
    put_refused_promotions,
    refuse_pending,
    restart_moves,
    rollback_note,
    rollback_record,
    rollouts_after,
    verify_rollback,
    with_moves,
)
from guardwave.control_plane.core.errors import NotFound, StateConflict
from guardwave.control_plane.core.etags import check_precondition, environment_etag
from guardwave.control_plane.core.state import (
    SYSTEM,
    Action,
    Actor,
    Environment,
    Latch,
    Rollback,
    Violation,
)
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    change,
    check_reason,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.control_plane.rollouts.restart import rollouts_to_restart
from guardwave.control_plane.stores.environments import Write
from guardwave.control_plane.stores.incidents import put_rollback, put_violation
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Invariant, Mode

MAX_OPEN_VIOLATIONS = 1_000

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A violated invariant in one record, with guard, mode and generation of its assignment id.

    Without `latches` it is recorded and counted, and holds no environment in shadow.
    """

    identity: str
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    latches: bool = True


class _Answer(NamedTuple):
    """A rollback, and the rollouts after its commit, which are read again to verify it."""

    record: Rollback
    after: tuple[Rollout, ...]


def roll_back(
    context: Context, environment: str, *, actor: Actor, reason: str, guard: str | None = None
) -> Rollback:
    """Return one guard, or all guards of the environment, to shadow, in a new shadow wave.

    No state refuses it. The same commit refuses every pending promotion of these guards, in shadow
    and off too. When it lowers or restarts no rollout and refuses no promotion, the answer is the
    newest rollback of the guard with `changed` False, or one with id 0 when there is none; the
    present phases are verified then.

    Raises:
        InvalidField: the reason is too short.
        NotFound: no such environment or guard.
    """
    reason = check_reason(reason)

    def decide(before: Environment) -> Decision[_Answer]:
        guards = before.guards if guard is None else (guard,)
        # Pending promotions are read before the phases, so that one that is carried out in between
        # is seen in either: no commit compares an answer that changes nothing.
        refused = refuse_pending(context, environment, guards=guards, reason=reason)
        moves = restart_moves(rollouts_to_restart(context, before, guards=guards))
        after = rollouts_after(context, before, moves, guards=guards)
        record = rollback_record(context, before, moves, actor=actor, reason=reason, guards=guards)
        if not moves and not refused:
            return Unchanged(_Answer(_newest(context, record, environment, guard=guard), after))
        record = replace(record, changed=True)
        note = rollback_note(record, moves, Action.ROLLED_BACK, environment, refused=refused)
        environment_after = replace(before, rollbacks=record.id)
        writes: tuple[Write, ...] = (
            *move_writes(context, moves),
            *put_refused_promotions(environment, refused),
            put_rollback(environment, record),
        )
        return Change(environment_after, writes, note, _Answer(record, after))

    if guard is not None:
        load_rollout(context, environment, guard)
    record, after = change(context, environment, decide)
    return verify_rollback(context, record, after)


def _newest(context: Context, record: Rollback, environment: str, *, guard: str | None) -> Rollback:
    """Return the newest rollback of the guard as an answer that changed nothing."""
    for rollback in context.incidents.rollbacks(environment):
        if guard is None or guard in rollback.guards:
            return replace(rollback, changed=False)
    return replace(record, id=0, changed=False)


def latch(context: Context, environment: str, found: Sequence[FoundViolation]) -> Rollback | None:
    """Record violations and hold the environment in shadow; None when all were known before.

    One commit writes violations, rollback and latch, before any evidence of the records that
    showed them: a crash in between loses nothing, because the sender repeats the request. Every
    rollout's generation moves, in shadow and in off too, so that no evaluation made before the
    violation promotes after it, and no pending promotion is carried out. Under a latch a further
    violation is only recorded; the answer is the rollback that holds the environment. A latch
    records at most `MAX_OPEN_VIOLATIONS`, each with an audit entry; further ones change nothing, so
    that a storm of violating records fills neither the store nor the audit chain.
    """

    def decide(before: Environment) -> Decision[_Answer | None]:
        latch = before.latch
        if latch is not None and is_full(latch):
            return Unchanged(_holding_rollback(context, before, latch))
        room = MAX_OPEN_VIOLATIONS - (0 if latch is None else latch.open_violations)
        violations = new_violations(context, before, found, room=room)
        if not violations:
            return Unchanged(None)
        if latch is not None:
            answer = _holding_rollback(context, before, latch)
            return violations_change(before, violations, answer=answer)
        return _latch_change(context, before, violations)

    answer = change(context, environment, decide)
    return None if answer is None else verify_rollback(context, *answer)


def is_full(latch: Latch) -> bool:
    """Whether the latch records no further violation."""
    return latch.open_violations >= MAX_OPEN_VIOLATIONS


def _holding_rollback(context: Context, before: Environment, latch: Latch) -> _Answer | None:
    record = context.incidents.rollback(before.name, latch.rollback)
    return None if record is None else _Answer(record, context.environments.rollouts(before))


def _latch_change(
    context: Context, before: Environment, violations: tuple[Violation, ...]
) -> Change[_Answer | None]:
    newest = violations[-1]
    moves = restart_moves(context.environments.rollouts(before))
    record = rollback_record(
        context, before, moves, actor=SYSTEM, reason=_reason(newest), guards=before.guards
    )
    record = replace(record, violation=newest.id)
    latch = Latch(
        rollback=record.id,
        reason=record.reason,
        at=record.at,
        first_violation=violations[0].id,
        newest_violation=newest.id,
    )
    after = replace(before, latch=latch, violations=newest.id, rollbacks=record.id)
    writes: tuple[Write, ...] = (
        *move_writes(context, moves),
        *(put_violation(before.name, violation) for violation in violations),
        put_rollback(before.name, record),
    )
    note = rollback_note(record, moves, Action.LATCHED, before.name)
    rollouts = rollouts_after(context, before, moves, guards=before.guards)
    return Change(after, writes, note, _Answer(record, rollouts))


def violations_change(
    before: Environment, violations: tuple[Violation, ...], *, answer: Result
) -> Change[Result]:
    """Return the change that only writes violations; a latch that holds names the newest one."""
    newest = violations[-1]
    latch = before.latch and replace(before.latch, newest_violation=newest.id)
    after = replace(before, latch=latch, violations=newest.id)
    writes = tuple(put_violation(before.name, violation) for violation in violations)
    note = Note(SYSTEM, Action.VIOLATION_RECORDED, before.name, _reason(newest))
    return Change(after, writes, note, answer)


def _reason(violation: Violation) -> str:
    invariant = violation.invariant.replace("_", " ")
    return f"A record of {violation.guard} violated the invariant “{invariant}”."


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
    """Release the latch, if `last_violation` is the newest one recorded.

    The same commit restarts every rollout that is not off in a new shadow wave, so that neither
    days with violations that a full latch did not record nor earlier evaluations promote. A
    rollout that an import left above shadow comes down, too.

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
        rollouts = context.environments.rollouts(before)
        moves = restart_moves([rollout for rollout in rollouts if rollout.phase is not Mode.OFF])
        target = f"rollback {rollback}, violation {newest}"
        note = with_moves(Note(actor, Action.ACKNOWLEDGED, target, reason), moves)
        after = replace(before, latch=None)
        return Change(after, move_writes(context, moves), note, after)

    change(context, environment, decide)
    return load_environment(context, environment)


def new_violations(
    context: Context, before: Environment, found: Sequence[FoundViolation], *, room: int
) -> tuple[Violation, ...]:
    """Return the violations that are not recorded yet, numbered; at most `room` of them."""
    known = context.incidents.known(before.name, [violation.identity for violation in found])
    new = {item.identity: item for item in found if item.identity not in known}
    now = context.clock.now()
    return tuple(
        Violation(
            id=number,
            identity=item.identity,
            invariant=item.invariant,
            guard=item.guard,
            mode=item.mode,
            generation=item.generation,
            at=now,
            latches=item.latches,
        )
        for number, item in enumerate(list(new.values())[:room], start=before.violations + 1)
    )
