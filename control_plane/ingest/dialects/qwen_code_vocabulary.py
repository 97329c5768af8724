"""The qwen-code vocabulary: the names and closed sets that version 0.24.4 sends.

Every other attribute is dropped at the door: records carry arguments, error texts and paths.
"""

from collections.abc import Mapping

from guardwave.reducer import contract
from guardwave.reducer.vocabulary import LoopType, Outcome

SCOPE = "qwen-code"
GUARD = "repeated_tool_failure"

EVENT_NAME = "event.name"
EVENT_TIME = "event.timestamp"
SESSION_ID = "session.id"
PROMPT_ID = "prompt_id"
INPUT_TOKENS = "input_token_count"
OUTPUT_TOKENS = "output_token_count"
RESPONSE_ID = "response_id"
SUBAGENT = "subagent_name"
CALL_ID = "call_id"
EXECUTION_STATUS = "execution_status"
TURNS = "turnCount"
LOOP_TYPE = "loop_type"
ORDINAL = "candidate_ordinal"
ERROR_TYPE = "execution_error_type"

SPAN = "qwen-code.interaction"
SPAN_PROMPT_ID = "qwen-code.prompt_id"
SPAN_STATUS = "qwen-code.turn_status"
SPAN_DURATION_MS = "interaction.duration_ms"

GUARD_COUNTER = "qwen-code.repeated_tool_failure_guard.count"
EXECUTION_COUNTER = "qwen-code.tool.execution.count"

# The client's own names, on a guard's record and on its counter, for words of the contract.
GUARD_WORDS: Mapping[str, str] = {
    "route": contract.ROUTE,
    "mode": contract.MODE,
    "phase_before": contract.PHASE_FROM,
    "phase_after": contract.PHASE_TO,
    "decision": contract.DECISION,
    "reset_reason": contract.RESET_REASON,
    "failure_count_bucket": contract.FAILURE_BUCKET,
    "batch_count_bucket": contract.BATCH_BUCKET,
    "tool_type": contract.TOOL_TYPE,
    "terminal_status": contract.TERMINAL_STATUS,
    EXECUTION_STATUS: contract.EXECUTION_STATUS,
}
# On a record only: on a point each of them is a violation.
RECORD_WORDS: Mapping[str, str] = {
    PROMPT_ID: contract.PROMPT_ID,
    ORDINAL: contract.ORDINAL,
    ERROR_TYPE: contract.ERROR_TYPE,
}

# Why a turn was ended: the client's word, and ours.
LOOP_TYPES: Mapping[str, LoopType] = {
    "repeated_tool_execution_failure": LoopType.REPEATED_TOOL_EXECUTION_FAILURE,
    "global_tool_call_duplicate": LoopType.GLOBAL_TOOL_CALL_DUPLICATE,
    "invalid_tool_params_stagnation": LoopType.INVALID_TOOL_PARAMS,
}
# A turn that ran into a bound, rather than into a guard.
LIMITS = frozenset({LoopType.INVALID_TOOL_PARAMS, LoopType.TOTAL_TOOL_CALLS})

# The outcome of a turn by its span; for an error a loop record, if there is one, says more.
TURN_OUTCOMES: Mapping[str, Outcome] = {
    "ok": Outcome.COMPLETED,
    "cancelled": Outcome.CANCELLED,
    "error": Outcome.FAILED,
}


def loop_outcome(loop: LoopType | None) -> Outcome:
    """Return the outcome of a turn that a loop ended; None is a loop of an unknown kind."""
    if loop is None:
        return Outcome.FAILED
    return Outcome.LIMIT if loop in LIMITS else Outcome.GUARD_STOPPED
