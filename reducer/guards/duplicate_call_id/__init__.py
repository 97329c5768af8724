"""The guard against a provider that sends a tool call again under an id that was answered."""

from reducer.guards.duplicate_call_id.events import (
    BatchProposed,
    CallAction,
    CallVerdict,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
)
from reducer.guards.duplicate_call_id.reduction import (
    DuplicateCallIdStep,
    Event,
    reduce,
)
from reducer.guards.duplicate_call_id.state import (
    GENERATED_PREFIX,
    GUARD,
    SCHEMA,
    SUFFIX,
    DuplicateCallId,
    dump,
    restore,
)

__all__ = [
    "GENERATED_PREFIX",
    "GUARD",
    "SCHEMA",
    "SUFFIX",
    "BatchProposed",
    "CallAction",
    "CallVerdict",
    "DuplicateCallId",
    "DuplicateCallIdStep",
    "Event",
    "HistoryCall",
    "HistorySeeded",
    "PromptStarted",
    "TurnOutcome",
    "dump",
    "reduce",
    "restore",
]
