"""Repeated failure: the guard against a tool that keeps failing in the same way."""

from guardwave.reducer.guards.repeated_failure.outcome import (
    CallOutcome,
    FailureKey,
    Observation,
    Receipt,
    SettledBatch,
    settle,
)
from guardwave.reducer.guards.repeated_failure.reduction import (
    FailureAction,
    PromptStarted,
    RepeatedFailureStep,
    reduce,
)
from guardwave.reducer.guards.repeated_failure.state import (
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
