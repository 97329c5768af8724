"""Guards: the four guards that an agent host embeds, with the types and values that it needs.

`pipeline` runs all four together. Each guard alone is a module with its own events: its `reduce`
takes a state and an event, and returns the next state and a decision.
"""

from guardwave.reducer import pipeline
from guardwave.reducer.guards import (
    duplicate_call_id,
    identical_call,
    repeated_failure,
    side_effect,
)
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.modes import ParsedMode, parse_mode
from guardwave.reducer.guards.tool_choice import Transport, request_of
from guardwave.reducer.vocabulary import (
    Decision,
    DisruptionKind,
    ExecutionStatus,
    Invariant,
    LoopType,
    Mode,
    Outcome,
    Route,
    TerminalStatus,
    ToolType,
)

__all__ = [
    "Decision",
    "DisruptionKind",
    "ExecutionStatus",
    "Invariant",
    "LoopType",
    "Mode",
    "Outcome",
    "ParsedMode",
    "Route",
    "TerminalStatus",
    "ToolCall",
    "ToolType",
    "Transport",
    "duplicate_call_id",
    "identical_call",
    "parse_mode",
    "pipeline",
    "repeated_failure",
    "request_of",
    "side_effect",
]
