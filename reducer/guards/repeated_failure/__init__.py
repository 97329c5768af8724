"""The guard against a tool that fails in the same way again and again."""

from reducer.guards.repeated_failure.outcome import (
    CallOutcome,
    FailureKey,
    Observation,
)
from reducer.guards.repeated_failure.receipts import (
    Receipt,
    SettledBatch,
    settle,
)
from reducer.guards.repeated_failure.reduction import (
    FailureAction,
    PromptStarted,
    RepeatedFailureStep,
    reduce,
)
from reducer.guards.repeated_failure.state import (
    BATCH_LIMIT,
    FAILURE_LIMIT,
    GUARD,
    SCHEMA,
    RepeatedFailure,
    dump,
    restore,
)

__all__ = [
    "BATCH_LIMIT",
    "FAILURE_LIMIT",
    "GUARD",
    "SCHEMA",
    "CallOutcome",
    "FailureAction",
    "FailureKey",
    "Observation",
    "PromptStarted",
    "Receipt",
    "RepeatedFailure",
    "RepeatedFailureStep",
    "SettledBatch",
    "dump",
    "reduce",
    "restore",
    "settle",
]
