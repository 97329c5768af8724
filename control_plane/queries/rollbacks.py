"""The page that rolls an environment back."""

from control_plane.commands.changes import load_environment
from control_plane.context import Context
from control_plane.etags import environment_etag
from control_plane.queries import cards
from control_plane.queries.pages_changes import (
    CohortMove,
    LatchPart,
    RollbackConsequence,
    RollbackLine,
    RollbackPage,
    ViolationLine,
)
from control_plane.state import ActorKind, Environment
from reducer.rollout.state import Rollout
from reducer.vocabulary import Mode


def rollback_page(context: Context, environment: str) -> RollbackPage:
    """Return what rolling back would do now, and the last time it happened.

    Raises:
        NotFound: no such environment.
    """
    held = load_environment(context, environment)
    last = context.incidents.rollback(environment, held.rollbacks)
    return RollbackPage(
        frame=cards.frame(context),
        environment=environment,
        etag=environment_etag(held),
        consequences=tuple(
            _consequence(context, rollout) for rollout in context.environments.rollouts(held)
        ),
        latched=_latched(context, held),
        last=None
        if last is None
        else RollbackLine(
            rollback_id=last.id,
            at=last.at,
            actor=last.actor.id,
            is_automatic=last.actor.kind is ActorKind.SYSTEM,
            reason=last.reason,
        ),
    )


def _latched(context: Context, environment: Environment) -> LatchPart | None:
    latch = cards.latch_view(environment)
    if latch is None:
        return None
    found = context.incidents.violations(environment.name)
    newest = next((each for each in found if each.id == latch.newest_violation), None)
    return LatchPart(
        latch=latch,
        violation=None
        if newest is None
        else ViolationLine(newest.invariant, newest.guard, newest.mode, newest.at),
        open_violations=cards.open_violations(environment),
    )


def _consequence(context: Context, rollout: Rollout) -> RollbackConsequence:
    lines = cards.cohort_lines(rollout, cards.membership_wave(context, rollout))
    is_enforced = any(line.mode is Mode.ENFORCE and line.owners != 0 for line in lines)
    return RollbackConsequence(
        guard=rollout.guard,
        phase=rollout.phase,
        enforced_share_bps=rollout.treated_bps if is_enforced else None,
        moves=tuple(
            CohortMove(line.cohort, line.owners, line.mode, Mode.SHADOW)
            for line in lines
            if line.mode.rank > Mode.SHADOW.rank
        ),
    )
