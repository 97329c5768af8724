"""The page that rolls an environment back."""

from control_plane.commands.beginning_anew import to_begin_anew
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
from control_plane.state import ActorKind, Environment, Violation
from reducer.rollout.state import Rollout
from reducer.vocabulary import Mode

VIOLATIONS_SHOWN = 20


def rollback_page(context: Context, environment: str) -> RollbackPage:
    """Return what rolling back would do now, and the last time it happened.

    Raises:
        NotFound: no such environment.
    """
    held = load_environment(context, environment)
    anew = {each.guard for each in to_begin_anew(context, held, guards=held.guards)}
    last = context.incidents.rollback(environment, held.rollbacks)
    return RollbackPage(
        frame=cards.frame(context),
        environment=environment,
        etag=environment_etag(held),
        consequences=tuple(
            _consequence(context, rollout, begins_anew=rollout.guard in anew)
            for rollout in context.environments.rollouts(held)
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
    is_open = cards.open_violations(environment)
    upto = [each for each in reversed(found) if each.id <= latch.newest_violation]
    return LatchPart(
        latch=latch,
        violations=tuple(map(_line, upto[: min(max(is_open, 1), VIOLATIONS_SHOWN)])),
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


def _consequence(context: Context, rollout: Rollout, *, begins_anew: bool) -> RollbackConsequence:
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
        begins_anew=begins_anew,
        wave=None if wave is None else cards.progress_of(context, rollout, wave),
        evaluation=cards.gate_summary(newest) if newest is not None and is_current else None,
    )
