"""Repeated failure, step by step: the state and the decision after each batch (`docs/guards`)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.repeated_failure.outcome import (
    CountedFailure,
    SettledBatch,
    classify_batch,
)
from guardwave.reducer.guards.repeated_failure.state import (
    BATCH_LIMIT,
    FAILURE_LIMIT,
    GUARD,
    RepeatedFailure,
)
from guardwave.reducer.guards.transition import (
    BatchBucket,
    FailureBucket,
    Transition,
    is_identifier,
)
from guardwave.reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    GuardPhase,
    LoopType,
    Mode,
    ResetReason,
    TerminalStatus,
    ToolType,
)


@dataclass(frozen=True, slots=True)
class PromptStarted:
    """A new prompt began. It ends the streak, the latch and a disabled enforcement."""


class FailureAction(StrEnum):
    """The action of the host (`docs/guards`)."""

    NONE = "none"
    REMIND = "remind"
    STOP = "stop"

    @property
    def text(self) -> str | None:
        """The fixed system context to append for the model, or None."""
        return _TEXTS.get(self)

    @property
    def loop_type(self) -> LoopType | None:
        """The word that records a stop, once for the turn; None while the turn goes on."""
        return LoopType.REPEATED_TOOL_EXECUTION_FAILURE if self is FailureAction.STOP else None


_TEXTS = {
    FailureAction.REMIND: messages.REPEATED_FAILURE_REMINDER,
    FailureAction.STOP: messages.REPEATED_FAILURE_STOP,
}


class RepeatedFailureStep(NamedTuple):
    """The state after an event, with at most one transition and the host's action."""

    state: RepeatedFailure
    transitions: tuple[Transition, ...] = ()
    action: FailureAction = FailureAction.NONE


def reduce(state: RepeatedFailure, event: SettledBatch | PromptStarted) -> RepeatedFailureStep:
    """Return the step after one event, by the rules of `docs/guards` in their order.

    Raises:
        ValueError: the state or the event is of a wrong type. Malformed observations never
            raise here.
    """
    if not isinstance(state, RepeatedFailure):
        remedy = (
            "pass the result of RepeatedFailure.start (guardwave.guards.repeated_failure) "
            "or of a step"
        )
        raise argument_error("state", state, remedy)
    match event:
        case SettledBatch():
            return _after_batch(state, event)
        case PromptStarted():
            return RepeatedFailureStep(RepeatedFailure.start(state.mode, route=state.route))
        case _:
            raise argument_error(
                "event",
                event,
                "pass a SettledBatch or PromptStarted of guardwave.guards.repeated_failure",
            )


def _after_batch(state: RepeatedFailure, batch: SettledBatch) -> RepeatedFailureStep:
    if state.mode is Mode.OFF or state.phase is GuardPhase.LATCHED:
        return RepeatedFailureStep(state)
    boundary = _boundary(batch)
    if boundary is not None:
        is_disabling = boundary is ResetReason.UNRELIABLE_INPUT
        return _reset(state, batch, boundary, is_disabling=is_disabling)
    calls = classify_batch(batch.observations)
    if calls.reason is not None:
        return _reset(state, batch, calls.reason, is_disabling=calls.is_disabling)
    if not calls.failures:
        if state.key is not None and state.key.tool in calls.succeeded:
            return _reset(state, batch, ResetReason.SUCCESS)
        return RepeatedFailureStep(state)
    if any(failure.key != calls.failures[0].key for failure in calls.failures):
        return _reset(state, batch, ResetReason.MIXED)
    return _count(state, calls.failures)


def _boundary(batch: SettledBatch) -> ResetReason | None:
    """Return the reason why the batch cannot be classified at all, if there is one."""
    if not batch.is_input_reliable:
        return ResetReason.UNRELIABLE_INPUT
    if batch.has_external_input:
        return ResetReason.EXTERNAL_INPUT
    if batch.has_queued_prompt:
        return ResetReason.QUEUED_PROMPT
    return None if batch.is_complete else ResetReason.INCOMPLETE


def _reset(
    state: RepeatedFailure, batch: SettledBatch, reason: ResetReason, *, is_disabling: bool = False
) -> RepeatedFailureStep:
    after = RepeatedFailure(
        state.mode,
        state.route,
        last_ordinal=state.last_ordinal,
        is_enforcement_disabled=state.is_enforcement_disabled or is_disabling,
    )
    if after == state:
        return RepeatedFailureStep(state)
    # The counts and the ordinal are those of the dropped streak; after a reset they are zero.
    transition = Transition(
        guard=GUARD,
        route=state.route,
        mode=state.mode,
        phase_from=state.phase,
        phase_to=after.phase,
        decision=Decision.RESET,
        reset_reason=reason,
        failure_count=FailureBucket.of(state.failure_count),
        batch_count=BatchBucket.of(state.batch_count),
        candidate_ordinal=state.candidate_ordinal,
        is_batch_complete=batch.is_complete,
    )
    return RepeatedFailureStep(after, (transition,))


def _count(state: RepeatedFailure, failures: tuple[CountedFailure, ...]) -> RepeatedFailureStep:
    """Count failures that all have the same key."""
    key = failures[0].key
    is_same = key == state.key
    failure_count = len(failures) + (state.failure_count if is_same else 0)
    batch_count = 1 + (state.batch_count if is_same else 0)
    after = RepeatedFailure(
        state.mode,
        state.route,
        _next_phase(state.phase, failure_count, batch_count) if is_same else GuardPhase.TRACKING,
        key,
        failure_count,
        batch_count,
        candidate_ordinal=state.candidate_ordinal if is_same else state.last_ordinal + 1,
        last_ordinal=state.last_ordinal if is_same else state.last_ordinal + 1,
        is_enforcement_disabled=state.is_enforcement_disabled,
    )
    decision = _decision(after)
    # The counts are those of the new state, unlike in a reset.
    transition = Transition(
        guard=GUARD,
        route=state.route,
        mode=state.mode,
        phase_from=state.phase,
        phase_to=after.phase,
        decision=decision,
        failure_count=FailureBucket.of(failure_count),
        batch_count=BatchBucket.of(batch_count),
        candidate_ordinal=after.candidate_ordinal,
        is_batch_complete=True,
        tool_type=_common_type(failures),
        terminal_status=TerminalStatus.ERROR,
        execution_status=ExecutionStatus.ERROR,
        error_type=key.error_type if is_identifier(key.error_type) else None,
    )
    return RepeatedFailureStep(after, (transition,), _ACTIONS.get(decision, FailureAction.NONE))


def _next_phase(phase: GuardPhase, failure_count: int, batch_count: int) -> GuardPhase:
    if phase is GuardPhase.WARNED:
        return GuardPhase.LATCHED
    is_at_limit = failure_count >= FAILURE_LIMIT and batch_count >= BATCH_LIMIT
    return GuardPhase.WARNED if is_at_limit else GuardPhase.TRACKING


def _decision(after: RepeatedFailure) -> Decision:
    """Return the decision of a counting step by mode and phase (`docs/guards`)."""
    if after.phase is GuardPhase.TRACKING:
        return Decision.TRACKED
    if after.phase is GuardPhase.WARNED:
        return Decision.WOULD_WARN if after.mode is Mode.SHADOW else Decision.WARNED
    is_enforcing = after.mode is Mode.ENFORCE and not after.is_enforcement_disabled
    return Decision.STOPPED if is_enforcing else Decision.WOULD_STOP


_ACTIONS = {Decision.WARNED: FailureAction.REMIND, Decision.STOPPED: FailureAction.STOP}


def _common_type(failures: tuple[CountedFailure, ...]) -> ToolType | None:
    types = {failure.tool_type for failure in failures}
    return types.pop() if len(types) == 1 else None
