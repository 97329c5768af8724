"""Identical call: the limit on equal calls, with a turn without tools before it."""

from guardwave.reducer.guards.identical_call.events import (
    BatchSettled,
    Budget,
    CallsProposed,
    Event,
    Failure,
    RunAction,
    RunStarted,
    SynthesisCause,
    Turn,
    TurnMode,
    TurnStarted,
)
from guardwave.reducer.guards.identical_call.reduction import (
    IdenticalCallStep,
    propose,
    reduce,
    settle,
)
from guardwave.reducer.guards.identical_call.state import (
    GUARD,
    LEAST_THRESHOLD,
    MAX_EVIDENCE_RESETS,
    SCHEMA,
    THRESHOLD,
    IdenticalCall,
    dump,
    restore,
)

__all__ = [
    "GUARD",
    "LEAST_THRESHOLD",
    "MAX_EVIDENCE_RESETS",
    "SCHEMA",
    "THRESHOLD",
    "BatchSettled",
    "Budget",
    "CallsProposed",
    "Event",
    "Failure",
    "IdenticalCall",
    "IdenticalCallStep",
    "RunAction",
    "RunStarted",
    "SynthesisCause",
    "Turn",
    "TurnMode",
    "TurnStarted",
    "dump",
    "propose",
    "reduce",
    "restore",
    "settle",
]
