"""Demotion: the rollouts, writes, record and audit note that rollback, latch and release share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from guardwave.control_plane.core.state import (
    Action,
    Actor,
    Environment,
    Lowering,
    Promotion,
    PromotionStatus,
    Rollback,
)
from guardwave.control_plane.rollouts.changes import Note, close_wave, put_rollout, shadow_wave
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.environments import Put
from guardwave.control_plane.stores.gates import put_promotion
from guardwave.reducer.rollout.ladder import Refusal, Restarted, apply
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Mode


def refuse_pending(
    context: Context, environment: str, *, guards: Sequence[str], reason: str
) -> tuple[Promotion, ...]:
    """Return the pending promotions of these guards with the refusal that a rollback gives them.

    A rollback in shadow moves no generation, so nothing else would stop these. The worker reads
    a promotion again before each try of its commit, and finds the refusal there.
    """
    return tuple(
        replace(
            promotion,
            status=PromotionStatus.REFUSED,
            refusal=f"rolled back: {reason}",
            decided_at=context.clock.now(),
        )
        for guard in guards
        for promotion in context.gates.pending_promotions(environment, guard)
    )


def put_refused_promotions(environment: str, refused: Sequence[Promotion]) -> tuple[Put, ...]:
    """Return the writes of refused promotions."""
    return tuple(put_promotion(environment, promotion) for promotion in refused)


def _refusal_texts(refused: Sequence[Promotion]) -> tuple[str, ...]:
    """Return refused promotions as an audit entry names them, with their guards."""
    return tuple(f"refused promotion {promotion.id} of {promotion.guard}" for promotion in refused)


class RolloutMove(NamedTuple):
    """One rollout before and after it is demoted or restarted."""

    before: Rollout
    after: Rollout


def restart_moves(rollouts: Sequence[Rollout]) -> tuple[RolloutMove, ...]:
    """Return the moves that restart these rollouts, so that no earlier evidence counts.

    A rollout that is off stays off with another generation. Any other goes to shadow, in a new
    shadow wave and with another salt epoch.
    """
    pairs = [(rollout, apply(rollout, Restarted())) for rollout in rollouts]
    return tuple(
        RolloutMove(before, after) for before, after in pairs if not isinstance(after, Refusal)
    )


def move_writes(context: Context, moves: Sequence[RolloutMove]) -> tuple[Put, ...]:
    """Return the writes of these moves: rollouts, closed waves and new shadow waves."""
    return tuple(
        write
        for before, after in moves
        for write in (
            put_rollout(after),
            *close_wave(context, before),
            *(shadow_wave(context, after) if after.wave else ()),
        )
    )


def rollback_record(
    context: Context,
    before: Environment,
    moves: Sequence[RolloutMove],
    *,
    actor: Actor,
    reason: str,
    guards: Sequence[str],
) -> Rollback:
    """Return the next rollback; `changed` says whether a rollout was lowered or restarted."""
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


def rollback_note(
    record: Rollback,
    moves: Sequence[RolloutMove],
    action: Action,
    environment: str,
    *,
    refused: Sequence[Promotion] = (),
) -> Note:
    """Name every guard that moved and every promotion that was refused."""
    note = Note(record.actor, action, environment, record.reason)
    return with_moves(note, moves, also=_refusal_texts(refused))


def with_moves(note: Note, moves: Sequence[RolloutMove], *, also: Sequence[str] = ()) -> Note:
    """Return the note with the moved guards, and the further texts, added to its target.

    The generations of a single guard go into the entry's own fields, which have room for one.
    """
    is_one = len(moves) == 1
    texts = [
        after.guard
        if is_one
        else f"{after.guard} generation {before.generation} -> {after.generation}"
        for before, after in moves
    ]
    parts = ", ".join((*texts, *also))
    return replace(
        note,
        target=f"{note.target}: {parts}" if parts else note.target,
        generation_before=moves[0].before.generation if is_one else None,
        generation_after=moves[0].after.generation if is_one else None,
    )


def rollouts_after(
    context: Context,
    before: Environment,
    moves: Sequence[RolloutMove],
    *,
    guards: Sequence[str],
) -> tuple[Rollout, ...]:
    """Return the rollouts of these guards after the moves, with those that did not move."""
    moved = {after.guard: after for _, after in moves}
    rollouts = context.environments.rollouts(before)
    return tuple(
        moved.get(rollout.guard, rollout) for rollout in rollouts if rollout.guard in guards
    )


def verify_rollback(context: Context, record: Rollback, after: Sequence[Rollout]) -> Rollback:
    """Read the store again; return the record as verified if no guard is above shadow there.

    A promotion that was decided after the rollback has a newer generation and does not count.
    """
    for expected in after:
        stored = context.environments.rollout(expected.environment, expected.guard)
        if stored is None:
            return record
        is_current = stored.generation == expected.generation
        if is_current and stored.phase.rank > Mode.SHADOW.rank:
            return record
    return replace(record, is_verified=True)
