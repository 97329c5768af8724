"""Taking the step that a person asked for, after judging again what late records changed."""

from typing import NamedTuple

from control_plane.commands.promotions import carry_out, refuse_promotion
from control_plane.commands.standing import check_standing, revisions_now
from control_plane.context import Context
from control_plane.errors import EvaluationStale
from control_plane.jobs.concluding import conclude
from control_plane.jobs.gathering import gather
from control_plane.jobs.looking import look_for_harm
from control_plane.state import Evaluation, Promotion, PromotionStatus
from reducer.rollout.state import Rollout
from reducer.vocabulary import Verdict

# How often records may come in while the days are judged, before the step is refused.
ATTEMPTS = 3


class _Judged(NamedTuple):
    """What judging an evaluation's days again said, and their revisions; both None: no need to."""

    revisions: tuple[int | None, ...] | None = None
    refusal: str | None = None


def promote(context: Context, environment: str, guard: str, number: int) -> Promotion:
    """Carry out a pending promotion, or refuse it with the reason.

    A look for harm that is due is made first. Where records came late, as few as the policy
    tolerates, the days of its evaluation are judged once more: as few can be all of a margin.

    Raises:
        NotFound: there is no such promotion.
        ValueError: the owner-days that a look needs contradict each other.
    """
    rollout = context.environments.rollout(environment, guard)
    if rollout is not None:
        # After an outage of the worker the step may stand in the queue before the look.
        look_for_harm(context, environment, guard, rollout.wave)
    judged = _judged_again(context, environment, guard, number)
    if judged.refusal is not None:
        refuse_promotion(context, environment, guard, number, why=judged.refusal)
    return carry_out(context, environment, guard, number, judged=judged.revisions)


def _judged_again(context: Context, environment: str, guard: str, number: int) -> _Judged:
    """Judge the days of a pending promotion's evaluation if they have other revisions now.

    What makes the promotion impossible anyway is left to the promotion, which says so.
    """
    asked = context.gates.promotion(environment, guard, number)
    rollout = context.environments.rollout(environment, guard)
    if asked is None or rollout is None or asked.status is not PromotionStatus.PENDING:
        return _Judged()
    evaluation = context.gates.evaluation(environment, guard, asked.gate_evaluation)
    if evaluation is None or evaluation.generation != rollout.generation:
        return _Judged()
    before = revisions_now(context, rollout, evaluation)
    if before == evaluation.day_revisions:
        return _Judged()
    try:
        check_standing(context, rollout, evaluation)
    except EvaluationStale:
        return _Judged()
    refusal: str | None = None
    for _ in range(ATTEMPTS):
        refusal = _why_not_within(context, rollout, evaluation)
        after = revisions_now(context, rollout, evaluation)
        if refusal is not None or after == before:
            break
        before = after
    return _Judged(before, refusal)


def _why_not_within(context: Context, rollout: Rollout, evaluation: Evaluation) -> str | None:
    """Return what the days of an evaluation are judged to be now, None for within."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None:
        return None
    told = f"late records changed the days of gate evaluation {evaluation.id}, and "
    try:
        declared = len(evaluation.days_used)
        gathered, _ = gather(context, rollout, wave, gate=evaluation.gate, declared=declared)
        found = conclude(gathered).evaluation
    except ValueError as error:
        return f"{told}the evidence contradicts itself now: {error}; evaluate again"
    if found.days.used == evaluation.days_used and found.verdict is Verdict.WITHIN:
        return None
    return f"{told}judged again they are {found.verdict}: {found.sentence} Evaluate again"
