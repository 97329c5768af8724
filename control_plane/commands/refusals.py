"""Refusals of the ladder and of other rules as errors, each with what to do instead."""

from control_plane.errors import (
    FieldProblem,
    GateRequired,
    GuardwaveError,
    RuleViolated,
    StateConflict,
    StepSkipped,
)
from reducer.rollout.ladder import Refusal, RefusalCode
from reducer.rollout.state import Rollout

_ERRORS: dict[RefusalCode, type[GuardwaveError]] = {
    RefusalCode.UNKNOWN_COHORT: RuleViolated,
    RefusalCode.ABOVE_COHORT: RuleViolated,
    RefusalCode.ABOVE_CEILING: RuleViolated,
    RefusalCode.STEP_SKIPPED: StepSkipped,
    RefusalCode.WAVE_OUT_OF_ORDER: StateConflict,
    RefusalCode.NOT_OFF: StateConflict,
}


def error_of(refusal: Refusal, rollout: Rollout) -> GuardwaveError:
    """Return the error that tells a caller of this refusal."""
    if refusal.code is RefusalCode.GATE_REQUIRED:
        return gate_required(refusal.sentence, rollout)
    return _ERRORS[refusal.code](f"{refusal.sentence[0].upper()}{refusal.sentence[1:]}.")


def gate_required(sentence: str, rollout: Rollout) -> GateRequired:
    """Return the error that asks for a gate evaluation, with the link to evaluate."""
    path = f"/api/v1/environments/{rollout.environment}/guards/{rollout.guard}/gate-evaluations"
    return GateRequired(
        f"{sentence[0].upper()}{sentence[1:]}.", extras={"links": {"evaluate": path}}
    )


def rule_violated(message: str, *, pointer: str) -> RuleViolated:
    """Return the error of a member that fits the schema and breaks a rule."""
    return RuleViolated(message, extras={"errors": [FieldProblem(pointer, message)._asdict()]})
