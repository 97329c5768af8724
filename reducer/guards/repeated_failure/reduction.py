"""The guard against a tool that fails in the same way again and again (docs/guards)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reducer.guards import texts
from reducer.guards.mistakes import mistaken
from reducer.guards.repeated_failure.outcome import CountedFailure, weigh
from reducer.guards.repeated_failure.receipts import SettledBatch
from reducer.guards.repeated_failure.state import (
    BATCH_LIMIT,
    FAILURE_LIMIT,
    GUARD,
    RepeatedFailure,
)
from reducer.guards.transition import BatchBucket, FailureBucket, Transition, is_identifier
from reducer.vocabulary import (
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
    """A new prompt began: the streak, the latch and a disabled enforcement end."""


class FailureAction(StrEnum):
    """What the host must do now (docs/guards)."""

    NONE = "none"
    REMIND = "remind"
    STOP = "stop"

    @property
    def text(self) -> str | None:
        """The fixed system context to append for the model, or None."""
        return _TEXTS.get(self)

    @property
    def loop_type(self) -> LoopType | None:
        """Under which word a stop is recorded, once for the turn; None when it goes on."""
        return LoopType.REPEATED_TOOL_EXECUTION_FAILURE if self is FailureAction.STOP else None


_TEXTS = {
    FailureAction.REMIND: texts.REPEATED_FAILURE_REMINDER,
    FailureAction.STOP: texts.REPEATED_FAILURE_STOP,
}


class RepeatedFailureStep(NamedTuple):
    """The state after an event, what to report (one transition or none), and what to do."""

    state: RepeatedFailure
    transitions: tuple[Transition, ...] = ()
    action: FailureAction = FailureAction.NONE


def reduce(state: RepeatedFailure, event: SettledBatch | PromptStarted) -> RepeatedFailureStep:
    """Return the step after one settled batch, in the order of docs/guards.

    Raises:
        ValueError: the state or the event is of another type. Malformed observations never
            raise here.
    """
    if not isinstance(state, RepeatedFailure):
        remedy = "pass what RepeatedFailure.start (reducer.guards.repeated_failure) or a step gave"
        raise mistaken("state", state, remedy)
    match event:
        case SettledBatch():
            return _after_batch(state, event)
        case PromptStarted():
            return RepeatedFailureStep(RepeatedFailure.start(state.mode, route=state.route))
        case _:
            raise mistaken(
                "event",
                event,
                "pass a SettledBatch or PromptStarted of reducer.guards.repeated_failure",
            )


def _after_batch(state: RepeatedFailure, batch: SettledBatch) -> RepeatedFailureStep:
    if state.mode is Mode.OFF or state.phase is GuardPhase.LATCHED:
        return RepeatedFailureStep(state)
    boundary = _boundary(batch)
    if boundary is not None:
        is_disabling = boundary is ResetReason.UNRELIABLE_INPUT
        return _reset(state, batch, boundary, is_disabling=is_disabling)
    weighed = weigh(batch.observations)
    if weighed.reason is not None:
        return _reset(state, batch, weighed.reason, is_disabling=weighed.is_disabling)
    if not weighed.failures:
        if state.key is not None and state.key.tool in weighed.succeeded:
            return _reset(state, batch, ResetReason.SUCCESS)
        return RepeatedFailureStep(state)
    if any(failure.key != weighed.failures[0].key for failure in weighed.failures):
        return _reset(state, batch, ResetReason.MIXED)
    return _count(state, weighed.failures)


def _boundary(batch: SettledBatch) -> ResetReason | None:
    """Return why the batch says nothing about its tools at all: then it is not classified."""
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
    # The counts and the ordinal of what was dropped: those after it are always zero.
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
    # The counts of the new state, unlike those of a reset.
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
        tool_type=_agreed(failures),
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
    """Return the decision word of a counting step by mode and phase (docs/guards)."""
    if after.phase is GuardPhase.TRACKING:
        return Decision.TRACKED
    if after.phase is GuardPhase.WARNED:
        return Decision.WOULD_WARN if after.mode is Mode.SHADOW else Decision.WARNED
    is_enforcing = after.mode is Mode.ENFORCE and not after.is_enforcement_disabled
    return Decision.STOPPED if is_enforcing else Decision.WOULD_STOP


_ACTIONS = {Decision.WARNED: FailureAction.REMIND, Decision.STOPPED: FailureAction.STOP}


def _agreed(failures: tuple[CountedFailure, ...]) -> ToolType | None:
    types = {failure.tool_type for failure in failures}
    return types.pop() if len(types) == 1 else None
