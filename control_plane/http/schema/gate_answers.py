"""Gate answers: gate evaluations, evidence bundles and promotions."""

from datetime import date, datetime

import orjson
from pydantic import ConfigDict, Field, JsonValue

from guardwave.control_plane.core.state import (
    Evaluation,
    EvaluationStatus,
    Promotion,
    PromotionStatus,
)
from guardwave.control_plane.http.schema import answers
from guardwave.control_plane.http.schema.answers import Answer, Condition, rollout_address
from guardwave.control_plane.queries import conditions
from guardwave.reducer.vocabulary import Gate, Mode, Verdict


class EvaluationSummary(Answer):
    """One gate evaluation without its result."""

    id: int
    guard: str
    gate: Gate
    status: EvaluationStatus
    requested_at: datetime
    actor: str
    evaluated_at: datetime | None
    generation: int | None
    wave: int | None
    verdict: Verdict | None
    sentence: str | None
    digest: str | None
    days_used: list[date]
    conditions: list[Condition]
    links: dict[str, str]


class EvaluationAnswer(EvaluationSummary):
    """One gate evaluation. `result` is the whole report, null until it is done, then for ever."""

    result: dict[str, JsonValue] | None


class BundleAnswer(Answer):
    """The evidence of one gate evaluation beside its result, which is JSON as a text.

    `gathered` holds the owner-days, roster, policy, code version and seed; docs/statistics.md.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    schema_: int = Field(alias="schema")
    evaluation: int
    digest: str
    result: str
    gathered: dict[str, JsonValue]


class PromotionAnswer(Answer):
    """One step up. `id` is null and there is no link to it when it was only tried out."""

    id: int | None
    guard: str
    gate_evaluation: int
    digest: str
    to: Mode
    share_bps: int | None
    reason: str
    requested_at: datetime
    actor: str
    status: PromotionStatus
    refusal: str | None
    wave: int | None
    decided_at: datetime | None
    conditions: list[Condition]
    links: dict[str, str]


def evaluation_summary(environment: str, evaluation: Evaluation) -> EvaluationSummary:
    """Return a gate evaluation as a list shows it."""
    address = rollout_address(environment, evaluation.guard)
    return EvaluationSummary(
        id=evaluation.id,
        guard=evaluation.guard,
        gate=evaluation.gate,
        status=evaluation.status,
        requested_at=evaluation.requested_at,
        actor=evaluation.actor.id,
        evaluated_at=evaluation.evaluated_at,
        generation=evaluation.generation,
        wave=evaluation.wave,
        verdict=None if evaluation.verdict is None else Verdict(evaluation.verdict),
        sentence=evaluation.sentence,
        digest=evaluation.digest,
        days_used=list(evaluation.days_used),
        conditions=answers.conditions(conditions.of_evaluation(evaluation)),
        links={
            "self": f"{address}/gate-evaluations/{evaluation.id}",
            "rollout": address,
            "promotions": f"{address}/promotions",
            **_bundle_link(address, evaluation),
        },
    )


def _bundle_link(address: str, evaluation: Evaluation) -> dict[str, str]:
    """Return the link to the bundle; only an evaluation with a verdict has one."""
    if evaluation.status is not EvaluationStatus.DONE:
        return {}
    return {"bundle": f"{address}/gate-evaluations/{evaluation.id}/bundle"}


def evaluation_answer(environment: str, evaluation: Evaluation) -> EvaluationAnswer:
    """Return a gate evaluation in full."""
    summary = evaluation_summary(environment, evaluation)
    result = None if evaluation.result is None else orjson.loads(evaluation.result)
    return EvaluationAnswer(**dict(summary), result=result)


def promotion_answer(environment: str, promotion: Promotion) -> PromotionAnswer:
    """Return the answer for a promotion."""
    address = rollout_address(environment, promotion.guard)
    itself = {"self": f"{address}/promotions/{promotion.id}"} if promotion.id else {}
    return PromotionAnswer(
        id=promotion.id or None,
        guard=promotion.guard,
        gate_evaluation=promotion.gate_evaluation,
        digest=promotion.digest,
        to=promotion.to,
        share_bps=promotion.share_bps,
        reason=promotion.reason,
        requested_at=promotion.requested_at,
        actor=promotion.actor.id,
        status=promotion.status,
        refusal=promotion.refusal,
        wave=promotion.wave,
        decided_at=promotion.decided_at,
        conditions=answers.conditions(conditions.of_promotion(promotion)),
        links={
            **itself,
            "rollout": address,
            "gate_evaluation": f"{address}/gate-evaluations/{promotion.gate_evaluation}",
        },
    )
