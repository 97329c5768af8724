"""What rollback, latch and release do alike: who moves, what is written, said and verified."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from control_plane.commands.changes import Note, close_wave, put_rollout, shadow_wave
from control_plane.commands.outranked import named
from control_plane.context import Context
from control_plane.state import Action, Actor, Environment, Lowering, Promotion, Rollback
from control_plane.stores.environments import Put
from reducer.rollout.ladder import BegunAnew, Refusal, apply
from reducer.rollout.state import Rollout
from reducer.vocabulary import Mode


class Move(NamedTuple):
    """A rollout that changes, before and after it."""

    before: Rollout
    after: Rollout


def moves_of(rollouts: Sequence[Rollout]) -> tuple[Move, ...]:
    """Return each rollout with what it is when all that was known of it holds no more.

    One that is off stays off with another generation; any other is in shadow, in a new shadow wave
    and with another salt epoch.
    """
    pairs = [(rollout, apply(rollout, BegunAnew())) for rollout in rollouts]
    return tuple(Move(each, after) for each, after in pairs if not isinstance(after, Refusal))


def writes_of(context: Context, moves: Sequence[Move]) -> tuple[Put, ...]:
    """Return the writes of moved rollouts: their old waves closed, their shadow waves opened."""
    return tuple(
        write
        for before, after in moves
        for write in (
            put_rollout(after),
            *close_wave(context, before),
            *(shadow_wave(context, after) if after.wave else ()),
        )
    )


def record_of(
    context: Context,
    before: Environment,
    moves: Sequence[Move],
    *,
    actor: Actor,
    reason: str,
    guards: Sequence[str],
) -> Rollback:
    """Return the next rollback; `changed` says whether a rollout was lowered or began anew."""
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
        changed=any(after.wave for _, after in moves),
        lowerings=lowerings,
        guards=tuple(guards),
    )


def note_of(
    record: Rollback,
    moves: Sequence[Move],
    action: Action,
    environment: str,
    *,
    refused: Sequence[Promotion] = (),
) -> Note:
    """Name every guard that moved and every promotion that was refused."""
    note = Note(record.actor, action, environment, record.reason)
    return naming(note, moves, also=named(refused))


def naming(note: Note, moves: Sequence[Move], *, also: Sequence[str] = ()) -> Note:
    """Return the note with every guard that moved in its target, and what else is to be told.

    The generations of one moved guard go into the entry's own fields, which have room for one.
    """
    is_one = len(moves) == 1
    moved = [
        after.guard
        if is_one
        else f"{after.guard} generation {before.generation} -> {after.generation}"
        for before, after in moves
    ]
    parts = ", ".join((*moved, *also))
    return replace(
        note,
        target=f"{note.target}: {parts}" if parts else note.target,
        generation_before=moves[0].before.generation if is_one else None,
        generation_after=moves[0].after.generation if is_one else None,
    )


def left_by(
    context: Context,
    before: Environment,
    moves: Sequence[Move],
    *,
    guards: Sequence[str],
) -> tuple[Rollout, ...]:
    """Return the rollouts of these guards as the moves leave them, moved or not."""
    moved = {after.guard: after for _, after in moves}
    held = context.environments.rollouts(before)
    return tuple(moved.get(each.guard, each) for each in held if each.guard in guards)


def verified(context: Context, record: Rollback, left: Sequence[Rollout]) -> Rollback:
    """Read the store again: no guard may show a mode above shadow.

    A promotion that was decided after the rollback has a newer generation and does not count.
    """
    for expected in left:
        held = context.environments.rollout(expected.environment, expected.guard)
        if held is None:
            return record
        is_current = held.generation == expected.generation
        if is_current and held.phase.rank > Mode.SHADOW.rank:
            return record
    return replace(record, is_verified=True)
