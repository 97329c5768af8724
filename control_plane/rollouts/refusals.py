"""Refusals: those of the ladder and of other rules, as errors with a remedy."""

from guardwave.control_plane.core.errors import (
    FieldProblem,
    GateRequired,
    GuardwaveError,
    RuleViolated,
    StateConflict,
    StepSkipped,
)
from guardwave.reducer.rollout.ladder import Refusal, RefusalCode
from guardwave.reducer.rollout.state import Rollout

_ERRORS: dict[RefusalCode, type[GuardwaveError]] = {
    RefusalCode.UNKNOWN_COHORT: RuleViolated,
    RefusalCode.ABOVE_COHORT: RuleViolated,
    RefusalCode.ABOVE_CEILING: RuleViolated,
    RefusalCode.STEP_SKIPPED: StepSkipped,
    RefusalCode.WAVE_OUT_OF_ORDER: StateConflict,
    RefusalCode.NOT_OFF: StateConflict,
}


def error_of(refusal: Refusal, rollout: Rollout) -> GuardwaveError:
    """Return the error that reports this refusal to the caller."""
    if refusal.code is RefusalCode.GATE_REQUIRED:
        return gate_required(refusal.sentence, rollout)
    return _ERRORS[refusal.code](f"{refusal.sentence[0].upper()}{refusal.sentence[1:]}.")


def gate_required(sentence: str, rollout: Rollout) -> GateRequired:
    """Return the error that demands a gate evaluation, with the link that makes one."""
    path = f"/api/v1/environments/{rollout.environment}/guards/{rollout.guard}/gate-evaluations"
    return GateRequired(
        f"{sentence[0].upper()}{sentence[1:]}.", extras={"links": {"evaluate": path}}
    )


def rule_violated(message: str, *, pointer: str) -> RuleViolated:
    """Return the error for a member that fits the schema and breaks a rule."""
    return RuleViolated(message, extras={"errors": [FieldProblem(pointer, message)._asdict()]})
