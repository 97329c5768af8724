"""Transitions: a guard's report of one decision, made of closed words and buckets.

It has no field for arguments, results, error texts or paths, so it cannot pass them on.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from guardwave.reducer.vocabulary import (
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
    """The number of failures or repeats of a streak, in the buckets of `docs/telemetry.md`."""

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
    """The number of batches of a streak, in the buckets of `docs/telemetry.md`."""

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

    `mode` is the configured mode, even when enforcement is disabled for the prompt. The buckets
    describe the new state, or for a reset the state before it; None where the guard counts
    nothing. `candidate_ordinal` numbers a guard's streaks within a prompt from 1; 0 means none.
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
                "leave out a text that is not a class of errors"
            )


def is_identifier(text: object) -> bool:
    """Whether a value may be reported as an error type: 1 to 64 of `A-Z a-z 0-9 _ . -`."""
    return isinstance(text, str) and _IDENTIFIER.fullmatch(text) is not None
