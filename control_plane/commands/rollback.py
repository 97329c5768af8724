"""Back to shadow: by a person, or by the system with a latch. It outranks what it races with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from control_plane.commands.beginning_anew import to_begin_anew
from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    change,
    check_reason,
    load_environment,
    load_rollout,
)
from control_plane.commands.lowering import (
    left_by,
    moves_of,
    naming,
    note_of,
    record_of,
    verified,
    writes_of,
)
from control_plane.commands.outranked import put_refused, refused_pending
from control_plane.context import Context
from control_plane.errors import NotFound, StateConflict
from control_plane.etags import check_precondition, environment_etag
from control_plane.state import (
    SYSTEM,
    Action,
    Actor,
    Environment,
    Latch,
    Rollback,
    Violation,
)
from control_plane.stores.environments import Write
from control_plane.stores.incidents import put_rollback, put_violation
from reducer.rollout.state import Rollout
from reducer.vocabulary import Invariant, Mode

OPEN_VIOLATIONS = 1_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A violated invariant in one record, with what the assignment id of the record says.

    Without `latches` it is one that is recorded and counted, and holds nothing.
    """

    identity: str
    invariant: Invariant
    guard: str
    mode: Mode
    generation: int
    latches: bool = True


class _Answer(NamedTuple):
    """A record, and the rollouts as that commit left them: what is read again to verify it."""

    record: Rollback
    left: tuple[Rollout, ...]


def roll_back(
    context: Context, environment: str, *, actor: Actor, reason: str, guard: str | None = None
) -> Rollback:
    """Return one guard, or all guards of the environment, to shadow, in a new shadow wave.

    Nothing of the state can refuse it. Every pending promotion of these guards is refused in the
    same commit, in shadow and off too. When no rollout is lowered or begins anew and no promotion
    is refused, the newest rollback that was about the guard is answered with `changed` False, and
    one with id 0 when there is none; what is verified then is the phases as they are.

    Raises:
        InvalidField: the reason is too short.
        NotFound: no such environment or guard.
    """
    reason = check_reason(reason)

    def decide(before: Environment) -> Decision[_Answer]:
        guards = before.guards if guard is None else (guard,)
        # What waits is read before the phases: a promotion that is carried out in between is seen
        # in one of the two. An answer that nothing was to do is not compared by any commit.
        refused = refused_pending(context, environment, guards=guards, reason=reason)
        moves = moves_of(to_begin_anew(context, before, guards=guards))
        left = left_by(context, before, moves, guards=guards)
        record = record_of(context, before, moves, actor=actor, reason=reason, guards=guards)
        if not moves and not refused:
            return Unchanged(_Answer(_newest(context, record, environment, guard=guard), left))
        record = replace(record, changed=True)
        note = note_of(record, moves, Action.ROLLED_BACK, environment, refused=refused)
        after = replace(before, rollbacks=record.id)
        writes: tuple[Write, ...] = (
            *writes_of(context, moves),
            *put_refused(environment, refused),
            put_rollback(environment, record),
        )
        return Change(after, writes, note, _Answer(record, left))

    if guard is not None:
        load_rollout(context, environment, guard)
    record, left = change(context, environment, decide)
    return verified(context, record, left)


def _newest(context: Context, asked: Rollback, environment: str, *, guard: str | None) -> Rollback:
    """Return the rollback that holds what was asked for, as an answer that changed nothing."""
    for held in context.incidents.rollbacks(environment):
        if guard is None or guard in held.guards:
            return replace(held, changed=False)
    return replace(asked, id=0, changed=False)


def latch(context: Context, environment: str, found: Sequence[FoundViolation]) -> Rollback | None:
    """Record violations and hold the environment in shadow; None when all were known before.

    One commit writes violations, rollback and latch together, before any evidence of the records
    that showed them: a crash in between loses nothing, because the sender repeats the request.
    Every rollout's generation moves, in shadow and in off too: no evaluation made before the
    violation can promote after it, and no promotion that waits is carried out. While a latch
    holds, a further violation is recorded and no more; the rollback that holds the environment is
    answered. A latch records `OPEN_VIOLATIONS` at most, each with an audit entry; those beyond
    change nothing, so that a storm of violating records fills neither the store nor the chain.
    """

    def decide(before: Environment) -> Decision[_Answer | None]:
        held = before.latch
        if held is not None and is_full(held):
            return Unchanged(_held(context, before, held))
        room = OPEN_VIOLATIONS - (0 if held is None else held.open_violations)
        violations = unknown_of(context, before, found, room=room)
        if not violations:
            return Unchanged(None)
        if held is not None:
            return recorded(before, violations, answer=_held(context, before, held))
        return _latched(context, before, violations)

    answer = change(context, environment, decide)
    return None if answer is None else verified(context, *answer)


def is_full(latch: Latch) -> bool:
    """Whether the latch records no further violation."""
    return latch.open_violations >= OPEN_VIOLATIONS


def _held(context: Context, before: Environment, latch: Latch) -> _Answer | None:
    record = context.incidents.rollback(before.name, latch.rollback)
    return None if record is None else _Answer(record, context.environments.rollouts(before))


def _latched(
    context: Context, before: Environment, violations: tuple[Violation, ...]
) -> Change[_Answer | None]:
    newest = violations[-1]
    moves = moves_of(context.environments.rollouts(before))
    record = record_of(
        context, before, moves, actor=SYSTEM, reason=_reason(newest), guards=before.guards
    )
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
        *writes_of(context, moves),
        *(put_violation(before.name, each) for each in violations),
        put_rollback(before.name, record),
    )
    note = note_of(record, moves, Action.LATCHED, before.name)
    left = left_by(context, before, moves, guards=before.guards)
    return Change(after, writes, note, _Answer(record, left))


def recorded(before: Environment, violations: tuple[Violation, ...], *, answer: T) -> Change[T]:
    """Return the change that writes violations and no more; a latch that holds is told of them."""
    newest, held = violations[-1], before.latch
    told = None if held is None else replace(held, newest_violation=newest.id)
    after = replace(before, latch=told, violations=newest.id)
    writes = tuple(put_violation(before.name, each) for each in violations)
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
    """Release the latch, naming the newest violation recorded; a newer one refuses it.

    Every rollout that is not off begins anew in the same commit, in a new shadow wave: what a full
    latch saw and did not record was in no day that counts, and no evaluation made before promotes.
    One that an import left above shadow is in shadow then.

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
        moves = moves_of([each for each in rollouts if each.phase is not Mode.OFF])
        target = f"rollback {rollback}, violation {newest}"
        note = naming(Note(actor, Action.ACKNOWLEDGED, target, reason), moves)
        after = replace(before, latch=None)
        return Change(after, writes_of(context, moves), note, after)

    change(context, environment, decide)
    return load_environment(context, environment)


def unknown_of(
    context: Context, before: Environment, found: Sequence[FoundViolation], *, room: int
) -> tuple[Violation, ...]:
    """Return the violations that are not recorded yet, numbered, as far as there is room."""
    known = context.incidents.known(before.name, [each.identity for each in found])
    fresh = {each.identity: each for each in found if each.identity not in known}
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
            latches=each.latches,
        )
        for number, each in enumerate(list(fresh.values())[:room], start=before.violations + 1)
    )
