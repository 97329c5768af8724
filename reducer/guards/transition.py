"""What a guard reports of one decision: closed words and buckets, and nothing else.

There is no field for arguments, results, error texts or paths, so none can be passed on.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    GuardPhase,
    Mode,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)

_IDENTIFIER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class FailureBucket(StrEnum):
    """How many failures (or repeats) a streak has, in the buckets of docs/telemetry.md."""

    NONE = "0"
    FEW = "1-2"
    SOME = "3-4"
    MANY = "5-7"
    LIMIT = "8+"

    @classmethod
    def of(cls, count: int) -> "FailureBucket":
        """Return the bucket of a count >= 0."""
        if count <= 0:
            return cls.NONE
        if count <= 2:
            return cls.FEW
        if count <= 4:
            return cls.SOME
        return cls.MANY if count <= 7 else cls.LIMIT


class BatchBucket(StrEnum):
    """In how many batches a streak was seen, in the buckets of docs/telemetry.md."""

    NONE = "0"
    ONE = "1"
    TWO = "2"
    MORE = "3+"

    @classmethod
    def of(cls, count: int) -> "BatchBucket":
        """Return the bucket of a count >= 0."""
        if count <= 0:
            return cls.NONE
        if count == 1:
            return cls.ONE
        return cls.TWO if count == 2 else cls.MORE


@dataclass(frozen=True, slots=True)
class Transition:
    """One decision of one guard, as telemetry carries it.

    `mode` is the configured mode, also when enforcement is disabled for the prompt. Buckets are
    those of the new state, for a reset those before it; None where the guard counts nothing.
    `candidate_ordinal` numbers a guard's streaks within a prompt from 1; 0 when there is none.
    """

    guard: str
    route: Route
    mode: Mode
    phase_from: GuardPhase
    phase_to: GuardPhase
    decision: Decision
    reset_reason: ResetReason | None = None
    failure_count: FailureBucket | None = None
    batch_count: BatchBucket | None = None
    candidate_ordinal: int = 0
    is_batch_complete: bool | None = None
    tool_type: ToolType | None = None
    terminal_status: TerminalStatus | None = None
    execution_status: ExecutionStatus | None = None
    error_type: str | None = None

    def __post_init__(self) -> None:
        if self.error_type is not None and not is_identifier(self.error_type):
            raise ValueError(
                "error_type is not 1 to 64 of A-Z a-z 0-9 _ . -; "
                "leave out what is a text and not a class of errors"
            )


def is_identifier(text: object) -> bool:
    """Whether it may be reported as an error type: a text of 1 to 64 of `A-Z a-z 0-9 _ . -`."""
    return isinstance(text, str) and _IDENTIFIER.fullmatch(text) is not None
