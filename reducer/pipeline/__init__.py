"""Pipeline: all guards of a session, from the most specific to the broadest.

The order is call-id replay, three calls with invalid parameters, identical call, side effect,
repeated failure, total number of calls (`docs/guards`). The first that stops a turn gives its
reason. Each guard also works alone.
"""

from guardwave.reducer.guards.duplicate_call_id import HistorySeeded
from guardwave.reducer.pipeline.events import (
    Answered,
    BatchProposed,
    BatchSettled,
    CallDisposition,
    Event,
    HostAction,
    PipelineStep,
    PromptStarted,
    Proposal,
    Stop,
    TurnStarting,
)
from guardwave.reducer.pipeline.invalid_params import ERROR_TYPE as INVALID_PARAMS
from guardwave.reducer.pipeline.reduction import reduce
from guardwave.reducer.pipeline.state import (
    GUARDS,
    PIPELINE,
    SCHEMA,
    Limits,
    Pipeline,
    dump,
    restore,
)

__all__ = [
    "GUARDS",
    "INVALID_PARAMS",
    "PIPELINE",
    "SCHEMA",
    "Answered",
    "BatchProposed",
    "BatchSettled",
    "CallDisposition",
    "Event",
    "HistorySeeded",
    "HostAction",
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
