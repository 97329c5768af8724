"""Promotion rules: the conditions of a step up on a gate evaluation.

The evaluation must allow the step and be valid, the reason must admit a before-after comparison,
the share must fit the policy, and each required environment must have taken the step before.
"""

from dataclasses import dataclass
from typing import NamedTuple

import orjson

from guardwave.control_plane.core.errors import InvalidField, Latched, StateConflict
from guardwave.control_plane.core.state import Environment, Evaluation, EvaluationStatus
from guardwave.control_plane.rollouts.changes import apply_event
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.evaluation_validity import (
    check_not_contradicted,
    check_not_stale,
)
from guardwave.control_plane.rollouts.loading import with_policy_ceiling
from guardwave.control_plane.rollouts.refusals import error_of, rule_violated
from guardwave.reducer.rollout.draw import BPS
from guardwave.reducer.rollout.ladder import Refusal, RolloutPromoted
from guardwave.reducer.rollout.state import Rollout, Wave
from guardwave.reducer.vocabulary import Mode, Verdict

# The comparison as an evaluation's result names it, and as a reason must.
_BEFORE_AFTER = "before_after"
BEFORE_AFTER_WORDS = "before/after"


@dataclass(frozen=True, slots=True)
class PromotionRequest:
    """A step up and its gate evaluation. `share_bps` None means the policy's share of the step."""

    gate_evaluation: int
    digest: str
    to: Mode
    share_bps: int | None = None


def check_evaluation(
    context: Context,
    environment: Environment,
    rollout: Rollout,
    evaluation: Evaluation,
    *,
    request: PromotionRequest,
) -> None:
    """Check that the evaluation allows this step of this rollout now.

    Its days are left to `check_evidence_unchanged`, which may read much.

    Raises:
        Latched, EvaluationStale, StateConflict, RuleViolated: the first reason against it.
    """
    if environment.latch is not None:
        raise Latched(
            f"{environment.name} is latched by rollback {environment.latch.rollback}; acknowledge "
            "it first"
        )
    if evaluation.status is not EvaluationStatus.DONE or evaluation.evaluated_at is None:
        raise StateConflict(
            f"gate evaluation {evaluation.id} is {evaluation.status}; wait until it is done"
        )
    if evaluation.digest != request.digest:
        raise rule_violated(
            f"the digest of gate evaluation {evaluation.id} is {evaluation.digest}, not "
            f"{request.digest[:80]!r}; read the evaluation that you decide on",
            pointer="/digest",
        )
    if evaluation.verdict != Verdict.WITHIN:
        verdict = (evaluation.verdict or "").replace("_", " ")
        raise StateConflict(
            f"gate evaluation {evaluation.id} is {verdict}, and only within raises a mode. "
            f"{evaluation.sentence}",
            extras={"verdict": evaluation.verdict or ""},
        )
    check_not_stale(context, environment, rollout, evaluation)
    check_not_contradicted(context, rollout, evaluation)
    share_bps = _share(context, rollout, request) if request.to is Mode.ENFORCE else 0
    step = Step(rollout.guard, request.to, share_bps, rollout.version_pin)
    check_requirements(context, environment, step)


def is_before_after(evaluation: Evaluation) -> bool:
    """Whether nobody was held back, so that the metrics compare two periods."""
    comparison: object = orjson.loads(evaluation.result or "{}").get("comparison")
    return comparison == _BEFORE_AFTER


def check_before_after_reason(evaluation: Evaluation, reason: str) -> None:
    """Check that the reason admits a comparison of two periods, which other changes can distort.

    Raises:
        RuleViolated: it does not hold the words "before/after".
    """
    if is_before_after(evaluation) and BEFORE_AFTER_WORDS not in reason.lower():
        raise rule_violated(
            f"gate evaluation {evaluation.id} compares before and after, which a change of the "
            f"period can fool; say in the reason why you trust it, with the words "
            f'"{BEFORE_AFTER_WORDS}"',
            pointer="/reason",
        )


def rollout_after_step(context: Context, rollout: Rollout, request: PromotionRequest) -> Rollout:
    """Return the rollout after the step, whatever its evaluation says.

    Raises:
        StepSkipped, RuleViolated, InvalidField: the ladder or the policy forbids the step.
    """
    after = apply_event(context, rollout, RolloutPromoted(draft_wave(context, rollout, request)))
    if isinstance(after, Refusal):
        raise error_of(after, rollout)
    return after


def draft_wave(context: Context, rollout: Rollout, request: PromotionRequest) -> Wave:
    return Wave(
        number=rollout.last_wave + 1,
        phase=request.to,
        version_pin=rollout.version_pin,
        looks=(context.policies.of(rollout.environment).dwell_days,),
        opened_at=context.clock.now(),
        treated_bps=_share(context, rollout, request),
    )


def _share(context: Context, rollout: Rollout, request: PromotionRequest) -> int:
    """Return the requested share, or the policy's for that step."""
    policy = context.policies.of(rollout.environment)
    largest = with_policy_ceiling(context, rollout).ceiling_bps
    if request.to is Mode.WARN:
        largest = BPS - policy.holdback_bps
    share = largest if request.share_bps is None else request.share_bps
    if not 1 <= share <= BPS:
        raise InvalidField(
            f"share_bps is {share}; a share is 1 to {BPS} basis points", pointer="/share_bps"
        )
    if request.to is Mode.WARN and share > largest:
        raise rule_violated(
            f"warning {share} basis points leaves a holdback of {BPS - share}, the policy keeps "
            f"{policy.holdback_bps}; ask for {largest} at most",
            pointer="/share_bps",
        )
    return share


class Step(NamedTuple):
    """A step up of a guard: the phase, the share of owners, and the versions.

    `share_bps` matters only in enforce, where a larger share is a further step.
    """

    guard: str
    to: Mode
    share_bps: int
    versions: tuple[str, ...]

    def __str__(self) -> str:
        """Return the step in words."""
        return f"enforce for {self.share_bps} basis points" if self.has_share else str(self.to)

    @property
    def has_share(self) -> bool:
        """Whether the share distinguishes this step from others to the same phase."""
        return self.to is Mode.ENFORCE


def check_requirements(context: Context, environment: Environment, step: Step) -> None:
    """Check that each required environment took the step, treats somebody, and is still there.

    No commit of this environment compares the others: this is a condition beside the gate, and no
    evidence.

    Raises:
        StateConflict: names the first one that fails, and the cause.
    """
    policy = context.policies.of(environment.name)
    for required in sorted({*environment.requires, *policy.requires}):
        missing = _missing(context, required, step)
        if missing is not None:
            raise StateConflict(
                f"{environment.name} requires that {required} took the step to {step} first and "
                f"stands there; {missing}"
            )


def _missing(context: Context, required: str, step: Step) -> str | None:
    environment = context.environments.load(required)
    other = context.environments.rollout(required, step.guard)
    if environment is None or other is None:
        return f"{step.guard} has no rollout there"
    if environment.latch is not None:
        return f"{required} is latched by rollback {environment.latch.rollback}"
    if other.phase.rank < step.to.rank:
        return f"{step.guard} there is in {other.phase}"
    wave = _newest_wave(context, other, step.to)
    if wave is None or wave.treated == 0:
        number = "" if wave is None else f" {wave.number}"
        return f"the {step.to} wave{number} there treats nobody"
    if step.has_share and wave.treated_bps < step.share_bps:
        return f"wave {wave.number} there is enforce for {wave.treated_bps} basis points"
    return _unpinned(f"wave {wave.number} there pins", wave.version_pin, step) or _unpinned(
        # A version that it has dropped from its pin since does not count any more.
        f"the rollout there, in {other.phase}, now pins",
        other.version_pin,
        step,
    )


def _unpinned(subject: str, pin: tuple[str, ...], step: Step) -> str | None:
    lacking = [version for version in step.versions if version not in pin]
    return f"{subject} {', '.join(pin)}, without {', '.join(lacking)}" if lacking else None


def _newest_wave(context: Context, rollout: Rollout, phase: Mode) -> Wave | None:
    """Return the newest wave of a phase; the rollout may be in a higher one."""
    for number in range(rollout.last_wave, 0, -1):
        wave = context.environments.wave(rollout.environment, rollout.guard, number)
        if wave is not None and wave.phase is phase:
            return wave
    return None
