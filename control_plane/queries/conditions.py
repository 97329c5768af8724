"""What is so of a rollout, wave, evaluation or promotion, each with a reason and a sentence."""

from dataclasses import dataclass
from datetime import datetime

from control_plane.queries.days import WaveDayView, complete_days
from control_plane.queries.pages import GuardCard
from control_plane.queries.treated import nobody_treated
from control_plane.state import (
    Environment,
    Evaluation,
    EvaluationStatus,
    Plan,
    PlanStatus,
    Promotion,
    PromotionStatus,
)
from reducer.rollout.state import Wave
from reducer.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class ConditionView:
    """Whether something holds, a word and a sentence why, and since when (None: unknown)."""

    type: str
    holds: bool
    reason: str
    message: str
    since: datetime | None = None


def of_rollout(environment: Environment, card: GuardCard) -> tuple[ConditionView, ...]:
    """Say whether the rollout is latched, has a wave open, and may take its next step.

    A wave that treats nobody is said so as one condition more.
    """
    return (
        latched(environment),
        ConditionView(
            "wave_open",
            card.wave is not None,
            "open" if card.wave else "closed_by_lowering",
            f"Wave {card.wave.number} is open."
            if card.wave
            else "No wave is open since a mode was lowered; start one with POST .../waves.",
            card.wave.started_at if card.wave else None,
        ),
        ConditionView(
            "next_step_allowed",
            card.next_step.is_allowed,
            "allowed" if card.next_step.is_allowed else "not_allowed",
            card.next_step.why_not or f"The next step, to {card.next_step.to}, can be asked for.",
        ),
        *_nobody_treated(card.nobody_treated, card.wave.started_at if card.wave else None),
    )


def _nobody_treated(sentence: str | None, since: datetime | None) -> tuple[ConditionView, ...]:
    if sentence is None:
        return ()
    return (ConditionView("nobody_treated", True, "too_few_owners", sentence, since),)


def latched(environment: Environment) -> ConditionView:
    """Say whether an automatic rollback holds the environment in shadow."""
    held = environment.latch
    if held is None:
        return ConditionView("latched", False, "no_latch", "No automatic rollback holds it.")
    why = held.reason.rstrip(".")
    message = (
        f"Rollback {held.rollback} holds it: {why}. Acknowledge it, naming violation "
        f"{held.newest_violation}."
    )
    return ConditionView("latched", True, "rolled_back", message, held.at)


def of_wave(wave: Wave, days: tuple[WaveDayView, ...]) -> tuple[ConditionView, ...]:
    """Say whether the wave is open, and whether its first declared look is reached.

    That it treats nobody is one condition more.
    """
    is_open = wave.closed_at is None
    complete, declared = len(complete_days(days)), wave.looks[0]
    return (
        ConditionView(
            "open",
            is_open,
            "open" if is_open else "closed",
            f"It was opened at {wave.opened_at:%Y-%m-%d %H:%M} UTC"
            + ("." if wave.closed_at is None else f", closed at {wave.closed_at:%Y-%m-%d %H:%M}."),
            wave.closed_at or wave.opened_at,
        ),
        ConditionView(
            "look_reached",
            complete >= declared,
            "complete_days",
            f"{_days(complete)} so far; the first look is after {declared}.",
        ),
        *_nobody_treated(nobody_treated(wave), wave.opened_at),
    )


def _days(number: int) -> str:
    return "1 complete day" if number == 1 else f"{number} complete days"


def of_evaluation(evaluation: Evaluation) -> tuple[ConditionView, ...]:
    """Say whether the evaluation is done, and whether its verdict allows a step up."""
    is_done = evaluation.status is EvaluationStatus.DONE
    since = evaluation.evaluated_at
    return (
        ConditionView(
            "done",
            is_done,
            str(evaluation.status),
            f"Gate evaluation {evaluation.id} is {evaluation.status}.",
            since or evaluation.requested_at,
        ),
        ConditionView(
            "within",
            evaluation.verdict == Verdict.WITHIN,
            evaluation.verdict or str(evaluation.status),
            evaluation.sentence or "There is no verdict yet.",
            since,
        ),
    )


def of_promotion(promotion: Promotion) -> tuple[ConditionView, ...]:
    """Say whether the promotion was carried out."""
    message = promotion.refusal or (
        f"Wave {promotion.wave} was opened by it."
        if promotion.status is PromotionStatus.DONE
        else "The worker has not decided on it yet."
    )
    return (
        ConditionView(
            "done",
            promotion.status is PromotionStatus.DONE,
            str(promotion.status),
            message,
            promotion.decided_at or promotion.requested_at,
        ),
    )


def of_plan(plan: Plan) -> tuple[ConditionView, ...]:
    """Say whether the plan was made."""
    return (
        ConditionView(
            "done",
            plan.status is PlanStatus.DONE,
            str(plan.status),
            plan.sentence or "The worker has not made it yet.",
            plan.planned_at or plan.requested_at,
        ),
    )
