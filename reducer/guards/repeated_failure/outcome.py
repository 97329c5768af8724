"""What one settled tool call says about its tool: the outcome table, and a whole batch weighed."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import NamedTuple

from reducer.vocabulary import ExecutionStatus, ResetReason, TerminalStatus, ToolType

# Longer ones are texts, not names: kept as a key they would be data, and without bound.
MOST_NAME = 256
_UNKNOWN_ERROR_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class Observation:
    """How one admitted call ended. It has no place for arguments, results or error texts.

    `tool` is the resolved name, not the one on display. `execution_status` and `error_type` are
    those that were frozen when the execution settled, whatever became of the call afterwards;
    `terminal_status` is how it was reported to the model. Words outside the closed sets and None
    are legal everywhere: they are classes of the outcome table, not errors.
    `is_provider_duplicate` marks a call that was answered without running (duplicate_call_id).

    Raises:
        ValueError: a field is of another type; naming the field, never its value.
    """

    call_id: str | None
    tool: str | None
    _: KW_ONLY
    tool_type: str | None = None
    terminal_status: str | None = None
    execution_status: str | None = None
    error_type: str | None = None
    is_provider_duplicate: bool = False

    def __post_init__(self) -> None:
        for name in _TEXTS:
            found = getattr(self, name)
            if found is not None and not isinstance(found, str):
                raise ValueError(f"{name} is of type {type(found).__name__}; pass a text or None")
        if not isinstance(self.is_provider_duplicate, bool):
            kind = type(self.is_provider_duplicate).__name__
            raise ValueError(f"is_provider_duplicate is of type {kind}; pass True or False")


_TEXTS = ("call_id", "tool", "tool_type", "terminal_status", "execution_status", "error_type")


class CallOutcome(StrEnum):
    """The classes of docs/guards."""

    SUCCESS = "success"
    FAILURE = "failure"
    CONTRACT_VIOLATION = "contract_violation"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    NOT_STARTED = "not_started"
    POST_EXECUTION_FAILURE = "post_execution_failure"


class FailureKey(NamedTuple):
    """What makes two failures the same: the tool and the frozen error type, never arguments."""

    tool: str
    error_type: str


class CountedFailure(NamedTuple):
    """A failure that may count. `tool_type` is None when the host sent none that is known."""

    key: FailureKey
    tool_type: ToolType | None


class Weighed(NamedTuple):
    """A batch after classification.

    `reason` is the highest one to reset, if any call gave one, and `is_disabling` says whether any
    call gave cause to stop enforcing for the prompt, even if a higher reason is the one reported.
    `failures` lack those of tools that also succeeded in the batch; `succeeded` names these tools.
    """

    reason: ResetReason | None
    is_disabling: bool
    failures: tuple[CountedFailure, ...]
    succeeded: frozenset[str]


def classify(seen: Observation) -> CallOutcome:
    """Return the class of one call by its two statuses (docs/guards).

    A success needs the tool's name, a failure also an error type that is not the class of unknown
    errors (`unknown`, in any case): without them it can't be told what failed, which is `unknown`.
    """
    outcome = _TABLE.get((seen.terminal_status, seen.execution_status))
    if outcome is None:
        is_cancelled = seen.terminal_status == TerminalStatus.CANCELLED
        return CallOutcome.CANCELLED if is_cancelled else CallOutcome.UNKNOWN
    if outcome in _NAMED and not _is_name(seen.tool):
        return CallOutcome.UNKNOWN
    if outcome is CallOutcome.FAILURE and not _is_error_class(seen.error_type):
        return CallOutcome.UNKNOWN
    return outcome


def weigh(observations: Iterable[Observation]) -> Weighed:
    """Classify a batch, provider duplicates left out (docs/guards)."""
    outcomes: set[CallOutcome] = set()
    failures: list[CountedFailure] = []
    succeeded: set[str] = set()
    for seen in observations:
        if seen.is_provider_duplicate:
            continue
        outcome = classify(seen)
        outcomes.add(outcome)
        if outcome is CallOutcome.SUCCESS:
            assert seen.tool is not None
            succeeded.add(seen.tool)
        elif outcome is CallOutcome.FAILURE:
            assert seen.tool is not None
            assert seen.error_type is not None
            key = FailureKey(seen.tool, seen.error_type)
            failures.append(CountedFailure(key, _TOOL_TYPES.get(seen.tool_type)))
    return Weighed(
        next((reason for outcome, reason in _REASONS.items() if outcome in outcomes), None),
        not _DISABLING.isdisjoint(outcomes),
        tuple(each for each in failures if each.key.tool not in succeeded),
        frozenset(succeeded),
    )


def _is_name(text: str | None) -> bool:
    return text is not None and bool(text.strip()) and len(text) <= MOST_NAME


def _is_error_class(text: str | None) -> bool:
    return text is not None and _is_name(text) and text.strip().lower() != _UNKNOWN_ERROR_TYPE


# Everything that is not in the table is unknown, but what was cancelled stays cancelled.
_TABLE: Mapping[tuple[str | None, str | None], CallOutcome] = {
    (TerminalStatus.SUCCESS, ExecutionStatus.SUCCESS): CallOutcome.SUCCESS,
    (TerminalStatus.SUCCESS, ExecutionStatus.NOT_STARTED): CallOutcome.SUCCESS,
    (TerminalStatus.SUCCESS, ExecutionStatus.ERROR): CallOutcome.CONTRACT_VIOLATION,
    (TerminalStatus.SUCCESS, ExecutionStatus.CANCELLED): CallOutcome.CONTRACT_VIOLATION,
    (TerminalStatus.ERROR, ExecutionStatus.SUCCESS): CallOutcome.POST_EXECUTION_FAILURE,
    (TerminalStatus.ERROR, ExecutionStatus.NOT_STARTED): CallOutcome.NOT_STARTED,
    (TerminalStatus.ERROR, ExecutionStatus.ERROR): CallOutcome.FAILURE,
    (TerminalStatus.ERROR, ExecutionStatus.CANCELLED): CallOutcome.CANCELLED,
}
_NAMED = frozenset({CallOutcome.SUCCESS, CallOutcome.FAILURE})
_DISABLING = frozenset({CallOutcome.CONTRACT_VIOLATION, CallOutcome.UNKNOWN})
# In order of precedence, highest first (docs/guards).
_REASONS: Mapping[CallOutcome, ResetReason] = {
    CallOutcome.CONTRACT_VIOLATION: ResetReason.CONTRACT_VIOLATION,
    CallOutcome.CANCELLED: ResetReason.CANCELLED,
    CallOutcome.UNKNOWN: ResetReason.UNKNOWN,
    CallOutcome.NOT_STARTED: ResetReason.NOT_STARTED,
    CallOutcome.POST_EXECUTION_FAILURE: ResetReason.POST_EXECUTION_FAILURE,
}
_TOOL_TYPES: Mapping[str | None, ToolType] = {word.value: word for word in ToolType}
