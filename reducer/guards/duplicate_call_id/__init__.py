"""Duplicate call id: the guard against a provider that replays a call under a used id."""

from guardwave.reducer.guards.duplicate_call_id.events import (
    BatchProposed,
    CallAction,
    CallVerdict,
    HistoryCall,
    HistorySeeded,
    PromptStarted,
    TurnOutcome,
)
from guardwave.reducer.guards.duplicate_call_id.reduction import (
    DuplicateCallIdStep,
    Event,
    decide,
    reduce,
)
from guardwave.reducer.guards.duplicate_call_id.state import (
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
    "decide",
    "dump",
    "reduce",
    "restore",
]
