"""Rollback page: the effect of a rollback now, and the violations of a latch."""

from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.state import ActorKind, Environment, Violation
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.decision_models import (
    CohortMove,
    LatchPart,
    RollbackConsequence,
    RollbackLine,
    RollbackPage,
    ViolationLine,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.rollouts.restart import rollouts_to_restart
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Mode

VIOLATIONS_SHOWN = 20


def rollback_page(context: Context, environment: str) -> RollbackPage:
    """Return the effect of a rollback now, and the last rollback.

    Raises:
        NotFound: no such environment.
    """
    stored = load_environment(context, environment)
    to_restart = rollouts_to_restart(context, stored, guards=stored.guards)
    restarts = {rollout.guard for rollout in to_restart}
    last = context.incidents.rollback(environment, stored.rollbacks)
    return RollbackPage(
        frame=cards.frame(context),
        environment=environment,
        etag=environment_etag(stored),
        consequences=tuple(
            _consequence(context, rollout, restarts=rollout.guard in restarts)
            for rollout in context.environments.rollouts(stored)
        ),
        latched=_latch_part(context, stored),
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


def _latch_part(context: Context, environment: Environment) -> LatchPart | None:
    latch = cards.latch_view(environment)
    if latch is None:
        return None
    found = context.incidents.violations(environment.name)
    is_open = cards.open_violations(environment)
    up_to_latch = [
        violation for violation in reversed(found) if violation.id <= latch.newest_violation
    ]
    return LatchPart(
        latch=latch,
        violations=tuple(map(_line, up_to_latch[: min(max(is_open, 1), VIOLATIONS_SHOWN)])),
        open_violations=is_open,
    )


def _line(violation: Violation) -> ViolationLine:
    return ViolationLine(
        violation_id=violation.id,
        invariant=violation.invariant,
        guard=violation.guard,
        mode=violation.mode,
        generation=violation.generation,
        at=violation.at,
    )


def _consequence(context: Context, rollout: Rollout, *, restarts: bool) -> RollbackConsequence:
    wave = cards.open_wave(context, rollout)
    newest = context.gates.newest_done(rollout.environment, rollout.guard)
    is_current = newest is not None and newest.generation == rollout.generation
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
        restarts=restarts,
        wave=None if wave is None else cards.progress_of(context, rollout, wave),
        evaluation=cards.gate_summary(newest) if newest is not None and is_current else None,
    )
