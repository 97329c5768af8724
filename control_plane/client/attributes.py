"""Telemetry attributes: a transition and a prompt's end in the terms of the contract.

Types are checked when a record is built: a host's code may pass anything, and a text in place of a
number or of a member of a closed set could hold what must not leave the host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeGuard, TypeVar

from guardwave.reducer import contract
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
    Mode,
    Outcome,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)

Member = TypeVar("Member", bound=StrEnum)

# Label, field of a transition, and the closed set of its values.
_LabelTable: TypeAlias = tuple[tuple[str, str, type[StrEnum]], ...]
_REQUIRED: _LabelTable = (
    (contract.ROUTE, "route", Route),
    (contract.MODE, "mode", Mode),
    (contract.PHASE_FROM, "phase_from", GuardPhase),
    (contract.PHASE_TO, "phase_to", GuardPhase),
    (contract.DECISION, "decision", Decision),
)
_OPTIONAL: _LabelTable = (
    (contract.RESET_REASON, "reset_reason", ResetReason),
    (contract.FAILURE_BUCKET, "failure_count", FailureBucket),
    (contract.BATCH_BUCKET, "batch_count", BatchBucket),
    (contract.TOOL_TYPE, "tool_type", ToolType),
    (contract.TERMINAL_STATUS, "terminal_status", TerminalStatus),
    (contract.EXECUTION_STATUS, "execution_status", ExecutionStatus),
)


class InvalidValue(TypeError):
    """A value that cannot be reported: its field, its type, and what fits there."""

    def __init__(self, field: str, found: object, remedy: str) -> None:
        self.field = field
        is_text = type(found) is str
        what = "a text that does not fit" if is_text else f"of type {type(found).__name__}"
        super().__init__(f"{field} is {'None' if found is None else what}; give {remedy}")


@dataclass(frozen=True, slots=True)
class PromptEnd:
    """How a prompt ended. None means unknown and is not reported.

    `duration_seconds` runs from the prompt's start to its end; `turns` are requests to a model;
    `calls_after_would_stop` are the tool calls that ran after a guard's first `would_stop`. A
    number beyond the contract's limits (a day, 2^31 - 1, 2^53 - 1 tokens) counts as unknown. The
    outcome may be given as its plain text.
    """

    outcome: Outcome
    duration_seconds: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls_after_would_stop: int | None = None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together, None unless both are known."""
        read = count_of(self.input_tokens, contract.TOKEN_LIMIT)
        written = count_of(self.output_tokens, contract.TOKEN_LIMIT)
        return None if read is None or written is None else read + written

    @property
    def known_turns(self) -> int | None:
        """The turns, None if they are no count."""
        return count_of(self.turns, contract.COUNT_LIMIT)

    @property
    def known_duration_seconds(self) -> float | None:
        """The duration, None if no prompt can take that long, as after a clock was set back."""
        seconds = self.duration_seconds
        if not is_number(seconds) or not 0 <= seconds <= contract.DURATION_LIMIT_SECONDS:
            return None
        return float(seconds)


def invalid_numbers(end: PromptEnd) -> tuple[InvalidValue, ...]:
    """Return an error for each numeric field that holds something else; it counts as unknown."""
    counts = ("turns", "tool_calls", "input_tokens", "output_tokens", "calls_after_would_stop")
    invalid = [
        InvalidValue(f"PromptEnd.{name}", value, "a whole number, or None where it is not known")
        for name in counts
        if (value := getattr(end, name)) is not None and not is_count(value)
    ]
    seconds = end.duration_seconds
    if seconds is not None and not is_number(seconds):
        remedy = "seconds, or None if not known"
        invalid.append(InvalidValue("PromptEnd.duration_seconds", seconds, remedy))
    return tuple(invalid)


def end_attributes(end: PromptEnd) -> dict[str, str | int | float]:
    """Return the attributes of `prompt.end` without ids and the number of transitions.

    Raises:
        InvalidValue: the outcome is none.
    """
    most = contract.COUNT_LIMIT
    numbers: dict[str, int | float | None] = {
        contract.DURATION: end.known_duration_seconds,
        contract.TURNS: end.known_turns,
        contract.TOOL_CALLS: count_of(end.tool_calls, most),
        contract.INPUT_TOKENS: count_of(end.input_tokens, contract.TOKEN_LIMIT),
        contract.OUTPUT_TOKENS: count_of(end.output_tokens, contract.TOKEN_LIMIT),
        contract.CALLS_AFTER_WOULD_STOP: count_of(end.calls_after_would_stop, most),
    }
    known = {key: value for key, value in numbers.items() if value is not None}
    outcome = member_of(end.outcome, Outcome, "PromptEnd.outcome")
    return {contract.OUTCOME: outcome.value, **known}


def transition_labels(transition: Transition) -> dict[str, str]:
    """Return the labels of `agent.guard.transitions`: members of closed sets only.

    No prompt, ordinal or error type: a metric attribute must never identify a prompt.

    Raises:
        InvalidValue: a field holds no member of its set.
    """
    labels = {contract.GUARD: transition.guard}
    for key, name, members in _REQUIRED:
        labels[key] = member_of(getattr(transition, name), members, f"Transition.{name}").value
    for key, name, members in _OPTIONAL:
        value = getattr(transition, name)
        if value is not None:
            labels[key] = member_of(value, members, f"Transition.{name}").value
    return labels


def transition_attributes(
    transition: Transition,
    labels: Mapping[str, str],
    *,
    sequence: int,
    is_history_preserved: bool | None,
) -> dict[str, str | int | bool]:
    """Return the attributes of the event without ids: `labels` of `transition_labels`, and more.

    `is_history_preserved` is reported with a stop only.

    Raises:
        InvalidValue: a field of the transition or `is_history_preserved` has another type.
    """
    ordinal = count_of(transition.candidate_ordinal, contract.COUNT_LIMIT)
    if ordinal is None:
        field = "Transition.candidate_ordinal"
        raise InvalidValue(field, transition.candidate_ordinal, "a whole number from 0")
    attributes: dict[str, str | int | bool] = {
        **labels,
        contract.SEQUENCE: sequence,
        contract.ORDINAL: ordinal,
    }
    if transition.is_batch_complete is not None:
        attributes[contract.BATCH_COMPLETE] = flag_of(
            transition.is_batch_complete, "Transition.is_batch_complete"
        )
    if transition.error_type is not None:
        attributes[contract.ERROR_TYPE] = identifier_of(
            transition.error_type, "Transition.error_type"
        )
    is_stop = labels[contract.DECISION] == Decision.STOPPED.value
    if is_stop and is_history_preserved is not None:
        attributes[contract.HISTORY_PRESERVED] = flag_of(
            is_history_preserved, "is_history_preserved"
        )
    return attributes


def member_of(value: object, members: type[Member], field: str) -> Member:
    """Return a member of a closed set, which may be given as its plain text.

    Raises:
        InvalidValue: it is none. A member of another set is none even with the same spelling: a
            terminal status is no execution status.
    """
    if isinstance(value, members):
        return value
    if type(value) is str and value in members._value2member_map_:
        return members(value)
    raise InvalidValue(field, value, f"one of {', '.join(members)}")


def flag_of(value: object, field: str) -> bool:
    """Return a truth value.

    Raises:
        InvalidValue: it is none.
    """
    if not isinstance(value, bool):
        raise InvalidValue(field, value, "True, False or, where it is not known, None")
    return value


def identifier_of(value: object, field: str) -> str:
    """Return the class of an error.

    Raises:
        InvalidValue: it is no identifier, so it may be an error's text.
    """
    if not is_identifier(value):
        raise InvalidValue(field, value, "the class of an error, 1 to 64 of A-Z a-z 0-9 _ . -")
    return str(value)


def count_of(value: object, most: int) -> int | None:
    """Return a whole number from 0 to `most`, None for anything else."""
    return value if is_count(value) and 0 <= value <= most else None


def is_count(value: object) -> TypeGuard[int]:
    """Whether it is a whole number. True is an int in Python but no count."""
    return type(value) is int


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number, with or without a fraction."""
    return isinstance(value, int | float) and not isinstance(value, bool)
