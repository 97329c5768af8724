"""Promotion job: a requested step is carried out, after late records were judged again."""

from typing import NamedTuple

from guardwave.control_plane.commands.promotions import carry_out, refuse_promotion
from guardwave.control_plane.core.errors import EvaluationStale
from guardwave.control_plane.core.state import Evaluation, Promotion, PromotionStatus
from guardwave.control_plane.jobs.conclude import conclude
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.jobs.interim import look_for_harm
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.evaluation_validity import (
    check_evidence_unchanged,
    revisions_now,
)
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Verdict

# How often records may interrupt a judgement of the days before the step is refused.
ATTEMPTS = 3


class _SecondJudgement(NamedTuple):
    """The revisions and the refusal of a second judgement of the days; both None without one."""

    revisions: tuple[int | None, ...] | None = None
    refusal: str | None = None


def promote(context: Context, environment: str, guard: str, number: int) -> Promotion:
    """Carry out a pending promotion, or refuse it with the reason.

    A look for harm that is due is made first. After late records that the policy tolerates, the
    days of its evaluation are judged again, because even few records can use up a margin.

    Raises:
        NotFound: there is no such promotion.
        ValueError: the owner-days of a look contradict each other.
    """
    rollout = context.environments.rollout(environment, guard)
    if rollout is not None:
        # After an outage of the worker the step may be queued before the look.
        look_for_harm(context, environment, guard, rollout.wave)
    judgement = _judge_again(context, environment, guard, number)
    if judgement.refusal is not None:
        refuse_promotion(context, environment, guard, number, why=judgement.refusal)
    return carry_out(context, environment, guard, number, judged_revisions=judgement.revisions)


def _judge_again(context: Context, environment: str, guard: str, number: int) -> _SecondJudgement:
    """Judge the days of a pending promotion's evaluation again if their revisions have moved.

    A promotion that is impossible anyway is left to `carry_out`, which gives the reason.
    """
    pending = context.gates.promotion(environment, guard, number)
    rollout = context.environments.rollout(environment, guard)
    if pending is None or rollout is None or pending.status is not PromotionStatus.PENDING:
        return _SecondJudgement()
    evaluation = context.gates.evaluation(environment, guard, pending.gate_evaluation)
    if evaluation is None or evaluation.generation != rollout.generation:
        return _SecondJudgement()
    before = revisions_now(context, rollout, evaluation)
    if before == evaluation.day_revisions:
        return _SecondJudgement()
    try:
        check_evidence_unchanged(context, rollout, evaluation)
    except EvaluationStale:
        return _SecondJudgement()
    refusal: str | None = None
    for _ in range(ATTEMPTS):
        refusal = _why_not_within(context, rollout, evaluation)
        after = revisions_now(context, rollout, evaluation)
        if refusal is not None or after == before:
            break
        before = after
    return _SecondJudgement(before, refusal)


def _why_not_within(context: Context, rollout: Rollout, evaluation: Evaluation) -> str | None:
    """Return the refusal of an evaluation whose days are not within any more, None for within."""
    wave = context.environments.wave(rollout.environment, rollout.guard, rollout.wave)
    if wave is None:
        return None
    cause = f"late records changed the days of gate evaluation {evaluation.id}, and "
    try:
        declared = len(evaluation.days_used)
        gathered, _ = gather(context, rollout, wave, gate=evaluation.gate, declared=declared)
        renewed = conclude(gathered).evaluation
    except ValueError as error:
        return f"{cause}the evidence contradicts itself now: {error}; evaluate again"
    if renewed.days.used == evaluation.days_used and renewed.verdict is Verdict.WITHIN:
        return None
    return f"{cause}judged again they are {renewed.verdict}: {renewed.sentence} Evaluate again"
