"""All guards of a session, from the most specific to the broadest.

Call-id replay, invalid parameters after three, identical call, side effect, repeated failure, total
cap (docs/guards): only the first that stops a turn owns the reason. Each guard works alone too.
"""

from reducer.guards.duplicate_call_id import HistorySeeded
from reducer.guards.pipeline.events import (
    Answered,
    BatchProposed,
    BatchSettled,
    CallFate,
    Event,
    Fate,
    PipelineStep,
    PromptStarted,
    Proposal,
    Stop,
    TurnStarting,
)
from reducer.guards.pipeline.reduction import (
    reduce,
)
from reducer.guards.pipeline.snapshot import (
    dump,
    restore,
)
from reducer.guards.pipeline.state import (
    GUARDS,
    PIPELINE,
    SCHEMA,
    Limits,
    Pipeline,
)

__all__ = [
    "GUARDS",
    "PIPELINE",
    "SCHEMA",
    "Answered",
    "BatchProposed",
    "BatchSettled",
    "CallFate",
    "Event",
    "Fate",
    "HistorySeeded",
    "Limits",
    "Pipeline",
    "PipelineStep",
    "PromptStarted",
    "Proposal",
    "Stop",
    "TurnStarting",
    "dump",
    "reduce",
    "restore",
]
