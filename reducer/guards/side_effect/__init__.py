"""The side-effect duplicate guard: what has an effect is done twice only if a person says so.

`SideEffectDuplicate.start` makes a state, `reduce` takes one event; all time comes with the events.
"""

from reducer.guards.side_effect.events import (
    Decided,
    Event,
    FirstUseToKeep,
    PromptStarted,
    Proposed,
    RequestEnded,
    Settled,
    SideEffectStep,
    ThreadEnded,
    Verdict,
)
from reducer.guards.side_effect.ladder import (
    DEFAULT_LADDER,
    UNDECLARED,
    Action,
    ApprovalScope,
    Idempotency,
    IdempotencyWindow,
    Ladder,
    Scope,
    ToolDeclaration,
)
from reducer.guards.side_effect.reduction import (
    reduce,
)
from reducer.guards.side_effect.repeat import (
    DuplicateError,
    FirstUse,
    Incident,
    Layer,
    Question,
    Repeat,
)
from reducer.guards.side_effect.semantic import (
    Candidate,
    CandidateFinder,
    find_candidate,
)
from reducer.guards.side_effect.snapshot import (
    dump,
    restore,
)
from reducer.guards.side_effect.state import (
    GUARD,
    SCHEMA,
    CallStatus,
    SideEffectDuplicate,
)
from reducer.guards.side_effect.xid import (
    FirstUseStore,
    XidDeclaration,
    first_use,
    xid_of,
)

__all__ = [
    "DEFAULT_LADDER",
    "GUARD",
    "SCHEMA",
    "UNDECLARED",
    "Action",
    "ApprovalScope",
    "CallStatus",
    "Candidate",
    "CandidateFinder",
    "Decided",
    "DuplicateError",
    "Event",
    "FirstUse",
    "FirstUseStore",
    "FirstUseToKeep",
    "Idempotency",
    "IdempotencyWindow",
    "Incident",
    "Ladder",
    "Layer",
    "PromptStarted",
    "Proposed",
    "Question",
    "Repeat",
    "RequestEnded",
    "Scope",
    "Settled",
    "SideEffectDuplicate",
    "SideEffectStep",
    "ThreadEnded",
    "ToolDeclaration",
    "Verdict",
    "XidDeclaration",
    "dump",
    "find_candidate",
    "first_use",
    "reduce",
    "restore",
    "xid_of",
]
