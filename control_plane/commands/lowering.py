"""What a rollback and a latch do alike: which rollouts move, what is written, said and verified."""

from collections.abc import Sequence
from dataclasses import replace

from control_plane.commands.changes import Note, close_wave, put_rollout, shadow_wave
from control_plane.commands.outranked import named
from control_plane.context import Context
from control_plane.state import Action, Actor, Environment, Lowering, Promotion, Rollback
from control_plane.stores.environments import Put
from reducer.rollout.ladder import Latched, Refusal, RolledBack, apply
from reducer.rollout.state import Rollout
from reducer.vocabulary import Mode


def moves_of(
    context: Context,
    before: Environment,
    event: RolledBack | Latched,
    *,
    guards: Sequence[str],
) -> tuple[tuple[Rollout, Rollout], ...]:
    """Return the rollouts of these guards that the event changes, each before and after it."""
    pairs: list[tuple[Rollout, Rollout]] = []
    for rollout in context.environments.rollouts(before):
        if rollout.guard not in guards:
            continue
        after = apply(rollout, event)
        if not isinstance(after, Refusal) and after is not rollout:
            pairs.append((rollout, after))
    return tuple(pairs)


def writes_of(context: Context, moves: Sequence[tuple[Rollout, Rollout]]) -> tuple[Put, ...]:
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
    moves: Sequence[tuple[Rollout, Rollout]],
    *,
    actor: Actor,
    reason: str,
    guards: Sequence[str],
) -> Rollback:
    """Return the next rollback of the environment; `changed` says whether a phase went down."""
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
        guards=tuple(guards),
    )


def note_of(
    record: Rollback,
    moves: Sequence[tuple[Rollout, Rollout]],
    action: Action,
    environment: str,
    *,
    refused: Sequence[Promotion] = (),
) -> Note:
    """Name every guard that moved and every promotion that was refused.

    The generations of one moved guard go into the entry's own fields, which have room for one.
    """
    is_one = len(moves) == 1
    moved = [
        after.guard
        if is_one
        else f"{after.guard} generation {before.generation} -> {after.generation}"
        for before, after in moves
    ]
    parts = ", ".join((*moved, *named(refused)))
    return Note(
        record.actor,
        action,
        f"{environment}: {parts}" if parts else environment,
        record.reason,
        generation_before=moves[0][0].generation if is_one else None,
        generation_after=moves[0][1].generation if is_one else None,
    )


def left_by(
    context: Context,
    before: Environment,
    moves: Sequence[tuple[Rollout, Rollout]],
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
