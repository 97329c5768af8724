"""What a rollback does to promotions that wait: refused in its own commit, in any phase."""

from collections.abc import Sequence
from dataclasses import replace

from control_plane.context import Context
from control_plane.state import Promotion, PromotionStatus
from control_plane.stores.environments import Put
from control_plane.stores.gates import put_promotion


def refused_pending(
    context: Context, environment: str, *, guards: Sequence[str], reason: str
) -> tuple[Promotion, ...]:
    """Return every pending promotion of these guards as the rollback leaves it: refused.

    A rollback in shadow moves no generation, so nothing else would hold these back. The worker
    reads the promotion again before each try of its commit, and finds the refusal there.
    """
    return tuple(
        replace(
            pending,
            status=PromotionStatus.REFUSED,
            refusal=f"rolled back: {reason}",
            decided_at=context.clock.now(),
        )
        for guard in guards
        for pending in context.gates.pending_promotions(environment, guard)
    )


def put_refused(environment: str, refused: Sequence[Promotion]) -> tuple[Put, ...]:
    """Return the writes of refused promotions."""
    return tuple(put_promotion(environment, each) for each in refused)


def named(refused: Sequence[Promotion]) -> tuple[str, ...]:
    """Return how an audit entry names refused promotions, each with its guard."""
    return tuple(f"refused promotion {each.id} of {each.guard}" for each in refused)
