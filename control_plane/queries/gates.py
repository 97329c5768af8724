"""Gate page: one gate evaluation, and the promotion that it allows."""

import orjson

from guardwave.control_plane.core.errors import GuardwaveError, NotFound
from guardwave.control_plane.core.state import Environment, Evaluation, EvaluationStatus
from guardwave.control_plane.queries import cards
from guardwave.control_plane.queries.conditions import nobody_would_be_treated
from guardwave.control_plane.queries.decision_models import (
    CohortMove,
    GatePage,
    LadderPosition,
    PositionChange,
    PromotionLine,
    PromotionOffer,
)
from guardwave.control_plane.queries.evaluation_model import EvaluationView, evaluation_view
from guardwave.control_plane.queries.interim import look_lines
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.evaluation_validity import check_evidence_unchanged
from guardwave.control_plane.rollouts.loading import load_environment, load_rollout
from guardwave.control_plane.rollouts.promotion_rules import (
    BEFORE_AFTER_WORDS,
    PromotionRequest,
    check_evaluation,
    is_before_after,
)
from guardwave.reducer.rollout.draw import BPS, treated_count
from guardwave.reducer.rollout.state import COHORT_MODES, REFERENCE, TREATED, Rollout
from guardwave.reducer.vocabulary import Mode


def gate_page(context: Context, environment: str, guard: str, number: int) -> GatePage:
    """Return one finished gate evaluation.

    Raises:
        NotFound: no such environment, rollout or evaluation, or it is not done yet.
    """
    stored = load_environment(context, environment)
    rollout = load_rollout(context, environment, guard)
    evaluation = context.gates.evaluation(environment, guard, number)
    if evaluation is None:
        raise NotFound(f"{guard} in {environment} has no gate evaluation {number}")
    if evaluation.status is not EvaluationStatus.DONE or evaluation.result is None:
        raise NotFound(f"gate evaluation {number} is {evaluation.status}; reload in a moment")
    newest = context.gates.newest_done(environment, guard)
    promotions = context.gates.promotions(environment, guard)
    moved_on = _moved_on(rollout, evaluation)
    assert evaluation.evaluated_at is not None  # it is done
    view = evaluation_view(orjson.loads(evaluation.result))
    looks = look_lines(context, environment, guard, wave=evaluation.wave or 0)
    earlier = tuple(look for look in looks if look.through <= evaluation.evaluated_at.date())
    return GatePage(
        frame=cards.frame(context),
        card=cards.card(context, stored, rollout),
        evaluation_id=number,
        digest=evaluation.digest or "",
        evaluated_at=evaluation.evaluated_at,
        evaluation=view,
        newest_id=number if newest is None else newest.id,
        moved_on=moved_on,
        offer=None if moved_on else _offer(context, stored, rollout, evaluation, view=view),
        promotions=tuple(
            PromotionLine(
                promotion_id=promotion.id,
                status=promotion.status,
                requested_at=promotion.requested_at,
                actor=promotion.actor.id,
                reason=promotion.reason,
                refusal=promotion.refusal,
            )
            for promotion in promotions
            if promotion.gate_evaluation == number
        ),
        looks=earlier,
        later_looks=len(looks) - len(earlier),
    )


def _moved_on(rollout: Rollout, evaluation: Evaluation) -> PositionChange | None:
    """Return the positions at the evaluation and now; None while they are the same."""
    then = LadderPosition(
        phase=Mode(evaluation.gate.value),
        wave=evaluation.wave or 0,
        generation=evaluation.generation or 0,
    )
    now = LadderPosition(rollout.phase, rollout.wave, rollout.generation)
    return None if then == now else PositionChange(then, now)


def _offer(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    view: EvaluationView,
) -> PromotionOffer | None:
    """Return the step that the evaluation may allow; None when the ladder has no further step."""
    policy = context.policies.of(environment.name)
    if rollout.phase is Mode.ENFORCE and rollout.treated_bps >= rollout.ceiling_bps:
        return None
    to = Mode.ENFORCE if rollout.phase is Mode.ENFORCE else list(Mode)[rollout.phase.rank + 1]
    share = rollout.ceiling_bps if to is Mode.ENFORCE else BPS - policy.holdback_bps
    request = PromotionRequest(evaluation.id, evaluation.digest or "", to, share)
    try:
        check_evaluation(context, environment, rollout, evaluation, request=request)
        check_evidence_unchanged(context, rollout, evaluation)
        why_not = None
    except GuardwaveError as error:
        why_not = str(error)
    membership = cards.membership_wave(context, rollout)
    owners = None if membership is None else membership.roster_size
    return PromotionOffer(
        to=to,
        share_bps=share,
        moves=_moves(rollout, owners, to=to, share_bps=share, with_data=sum(view.owners.values())),
        is_allowed=why_not is None,
        why_not=why_not,
        nobody_treated=None if owners is None else nobody_would_be_treated(to, share, owners),
        words=BEFORE_AFTER_WORDS if is_before_after(evaluation) else None,
    )


def _moves(
    rollout: Rollout, rostered: int | None, *, to: Mode, share_bps: int, with_data: int
) -> tuple[CohortMove, ...]:
    """Return the effect of the step on the present roster, or else on the owners with data."""
    before = COHORT_MODES[rollout.phase][REFERENCE[rollout.phase]]
    owners = with_data if rostered is None else rostered
    treated = treated_count(share_bps, owners)
    after = COHORT_MODES[to]
    return tuple(
        CohortMove(cohort, count, before, after[cohort], is_estimate=rostered is None)
        for cohort, count in ((TREATED[to], treated), (REFERENCE[to], owners - treated))
    )
