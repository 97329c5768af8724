"""Promotions: requested by a person on a gate evaluation, carried out or refused by the worker."""

from dataclasses import replace

from guardwave.control_plane.commands.waves import freeze_wave
from guardwave.control_plane.core.errors import InvalidField, NotFound, RuleViolated, StateConflict
from guardwave.control_plane.core.etags import check_precondition, rollout_etag
from guardwave.control_plane.core.state import (
    Action,
    Actor,
    Environment,
    Promotion,
    PromotionStatus,
)
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    apply_event,
    change,
    check_reason,
    close_wave,
    put_rollout,
    put_wave,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.evaluation_validity import (
    check_evidence_unchanged,
    check_unchanged_since_judged,
)
from guardwave.control_plane.rollouts.loading import load_environment, stored_rollout
from guardwave.control_plane.rollouts.promotion_rules import (
    PromotionRequest,
    check_before_after_reason,
    check_evaluation,
    draft_wave,
    rollout_after_step,
)
from guardwave.control_plane.rollouts.refusals import error_of
from guardwave.control_plane.stores.gates import put_promotion
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.reducer.rollout.ladder import Refusal, RolloutPromoted


def request_promotion(
    context: Context,
    environment: str,
    guard: str,
    *,
    request: PromotionRequest,
    actor: Actor,
    reason: str,
    if_match: str | None = None,
    is_dry_run: bool = False,
) -> Promotion:
    """Store a pending promotion for the worker, after the checks that can already be made.

    Raises:
        NotFound: unknown environment, rollout or evaluation.
        Latched, EvaluationStale, StateConflict, StepSkipped, RuleViolated: the first reason
            against it.
    """
    reason = check_reason(reason)
    before = load_environment(context, environment)
    rollout = stored_rollout(context, environment, guard)
    check_precondition(if_match, rollout_etag(rollout), is_required=False)
    evaluation = context.gates.evaluation(environment, guard, request.gate_evaluation)
    if evaluation is None:
        raise NotFound(
            f"{guard} in {environment} has no gate evaluation {request.gate_evaluation}; ask for "
            "one with POST .../gate-evaluations"
        )
    check_evaluation(context, before, rollout, evaluation, request=request)
    check_before_after_reason(evaluation, reason)
    after = rollout_after_step(context, rollout, request)
    check_evidence_unchanged(context, rollout, evaluation)
    number = 0 if is_dry_run else context.gates.next_promotion(environment, guard)
    promotion = Promotion(
        id=number,
        guard=guard,
        gate_evaluation=request.gate_evaluation,
        digest=request.digest,
        to=request.to,
        share_bps=after.treated_bps,
        reason=reason,
        actor=actor,
        requested_at=context.clock.now(),
    )
    if not is_dry_run:
        context.gates.save_promotion(environment, promotion)
        context.jobs.put(environment, Job(JobKind.PROMOTE, guard, number))
    return promotion


def carry_out(
    context: Context,
    environment: str,
    guard: str,
    number: int,
    *,
    judged_revisions: tuple[int | None, ...] | None = None,
) -> Promotion:
    """Freeze the roster and take the step, or refuse with the reason. Called by the worker.

    `judged_revisions` are those at which the worker judged the evaluation's days again; without
    them the days must be unchanged.

    The roster is frozen outside the commit. The commit compares generation and latch and reads the
    promotion again, so that a rollback in between wins: it moved the generation or refused the
    promotion.

    Raises:
        NotFound: there is no such promotion.
    """
    pending = context.gates.promotion(environment, guard, number)
    if pending is None:
        raise NotFound(f"{guard} in {environment} has no promotion {number}")
    if pending.status is not PromotionStatus.PENDING:
        return pending
    request = PromotionRequest(
        pending.gate_evaluation, pending.digest, pending.to, pending.share_bps
    )

    def decide(before: Environment) -> Decision[Promotion]:
        current = context.gates.promotion(environment, guard, number)
        if current is not None and current.status is not PromotionStatus.PENDING:
            return Unchanged(current)
        rollout = stored_rollout(context, environment, guard)
        evaluation = context.gates.evaluation(environment, guard, pending.gate_evaluation)
        if evaluation is None:
            raise StateConflict(f"gate evaluation {pending.gate_evaluation} is gone")
        check_evaluation(context, before, rollout, evaluation, request=request)
        check_evidence_unchanged(context, rollout, evaluation)
        check_unchanged_since_judged(
            context, rollout, evaluation, judged_revisions=judged_revisions
        )
        wave, roster = freeze_wave(context, rollout, draft_wave(context, rollout, request))
        after = apply_event(context, rollout, RolloutPromoted(wave))
        if isinstance(after, Refusal):
            raise error_of(after, rollout)
        done = replace(
            pending, status=PromotionStatus.DONE, wave=wave.number, decided_at=context.clock.now()
        )
        writes = (
            put_rollout(after),
            *close_wave(context, rollout),
            *put_wave(environment, guard, wave, roster),
            put_promotion(environment, done),
        )
        note = Note(
            pending.actor,
            Action.PROMOTED,
            f"{guard}: {rollout.phase} -> {pending.to}, {wave.treated_bps} basis points",
            pending.reason,
            generation_before=rollout.generation,
            generation_after=after.generation,
            gate_evaluation=pending.gate_evaluation,
        )
        return Change(before, writes, note, done)

    try:
        return change(context, environment, decide)
    except (StateConflict, InvalidField, RuleViolated) as refusal:
        current = context.gates.promotion(environment, guard, number)
        if current is not None and current.status is not PromotionStatus.PENDING:
            return current
        return _refuse(context, environment, pending, str(refusal))


def refuse_promotion(
    context: Context, environment: str, guard: str, number: int, *, why: str
) -> None:
    """End a pending promotion that could not be carried out; a decided one stays as it is."""
    promotion = context.gates.promotion(environment, guard, number)
    if promotion is not None and promotion.status is PromotionStatus.PENDING:
        _refuse(context, environment, promotion, f"it could not be carried out: {why}")


def _refuse(context: Context, environment: str, pending: Promotion, refusal: str) -> Promotion:
    refused = replace(
        pending,
        status=PromotionStatus.REFUSED,
        refusal=refusal,
        decided_at=context.clock.now(),
    )
    context.gates.save_promotion(environment, refused)
    return refused
