"""Conditions: those of rollouts, waves, evaluations, promotions and plans, each with a reason.

An answer carries them as `conditions`. A wave or a step that treats nobody is one of them.
"""

from dataclasses import dataclass
from datetime import datetime

from guardwave.control_plane.core.state import (
    Environment,
    Evaluation,
    EvaluationStatus,
    Plan,
    PlanStatus,
    Promotion,
    PromotionStatus,
)
from guardwave.control_plane.queries.page_models import GuardCard
from guardwave.control_plane.rollouts.days import WaveDayView, complete_days
from guardwave.reducer.rollout.draw import treated_count
from guardwave.reducer.rollout.state import TREATED, Wave
from guardwave.reducer.vocabulary import Mode, Verdict


def nobody_treated(wave: Wave) -> str | None:
    """Return the sentence that a wave treats nobody, and why; None in shadow or if it does."""
    if wave.phase.rank <= Mode.SHADOW.rank or wave.treated > 0:
        return None
    return f"Nobody is {TREATED[wave.phase]}: {_why(wave.treated_bps, wave.roster_size)}."


def nobody_would_be_treated(to: Mode, share_bps: int, owners: int) -> str | None:
    """Return the sentence that a step would treat none of these owners; None if it would."""
    if treated_count(share_bps, owners) > 0:
        return None
    return f"Nobody would be {TREATED[to]}: {_why(share_bps, owners)}."


def _why(share_bps: int, owners: int) -> str:
    if owners == 0:
        return "no owner is on the roster"
    noun = "owner is" if owners == 1 else "owners are"
    return f"{owners:,} {noun} too few for {share_bps / 100:g} %"


@dataclass(frozen=True, slots=True)
class ConditionView:
    """Whether a condition holds, its reason as a word and a sentence, and since when, if known."""

    type: str
    holds: bool
    reason: str
    message: str
    since: datetime | None = None


def of_rollout(environment: Environment, card: GuardCard) -> tuple[ConditionView, ...]:
    """Return the conditions of a rollout: latched, wave open, next step allowed, nobody treated."""
    return (
        latch_condition(environment),
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


def latch_condition(environment: Environment) -> ConditionView:
    """Return the condition that an automatic rollback holds the environment in shadow."""
    latch = environment.latch
    if latch is None:
        return ConditionView("latched", False, "no_latch", "No automatic rollback holds it.")
    why = latch.reason.rstrip(".")
    message = (
        f"Rollback {latch.rollback} holds it: {why}. Acknowledge it, naming violation "
        f"{latch.newest_violation}."
    )
    return ConditionView("latched", True, "rolled_back", message, latch.at)


def of_wave(wave: Wave, days: tuple[WaveDayView, ...]) -> tuple[ConditionView, ...]:
    """Return the conditions of a wave: open, first declared look reached, nobody treated."""
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
    """Return the conditions of an evaluation: done, and within, which allows a step up."""
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
    """Return the condition that the promotion was carried out."""
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
    """Return the condition that the plan was made."""
    return (
        ConditionView(
            "done",
            plan.status is PlanStatus.DONE,
            str(plan.status),
            plan.sentence or "The worker has not made it yet.",
            plan.planned_at or plan.requested_at,
        ),
    )
