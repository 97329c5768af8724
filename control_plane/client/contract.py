"""Contract 1 of guard telemetry as a host writes it; a test holds it equal to what intake reads."""

from collections.abc import Mapping

from reducer.vocabulary import LoopType

SCOPE = "agent.guard"
SCOPE_VERSION = "1"

TRANSITION = "agent.guard.transition"
PROMPT_START = "agent.guard.prompt.start"
PROMPT_END = "agent.guard.prompt.end"
DISRUPTION = "agent.guard.prompt.disruption"
LOOP_DETECTED = "agent.guard.loop_detected"
FLAG_EVALUATION = "feature_flag.evaluation"

ASSIGNMENT_ID = "agent.guard.assignment.id"
GUARD = "agent.guard.name"
PROMPT_ID = "agent.guard.prompt.id"
SEQUENCE = "agent.guard.sequence"
ORDINAL = "agent.guard.candidate.ordinal"
ROUTE = "agent.guard.route"
MODE = "agent.guard.mode"
PHASE_FROM = "agent.guard.phase.from"
PHASE_TO = "agent.guard.phase.to"
DECISION = "agent.guard.decision"
RESET_REASON = "agent.guard.reset.reason"
FAILURE_BUCKET = "agent.guard.failure_count.bucket"
BATCH_BUCKET = "agent.guard.batch_count.bucket"
BATCH_COMPLETE = "agent.guard.batch.complete"
TOOL_TYPE = "agent.guard.tool.type"
TERMINAL_STATUS = "agent.guard.terminal.status"
EXECUTION_STATUS = "agent.guard.execution.status"
ERROR_TYPE = "agent.guard.error.type"
HISTORY_PRESERVED = "agent.guard.history.preserved"
OUTCOME = "agent.guard.prompt.outcome"
DURATION = "agent.guard.prompt.duration"
TURNS = "agent.guard.prompt.turns"
TOOL_CALLS = "agent.guard.prompt.tool_calls"
TRANSITIONS = "agent.guard.prompt.transitions"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CALLS_AFTER_WOULD_STOP = "agent.guard.calls_after_would_stop"
DISRUPTION_KIND = "agent.guard.disruption.kind"
DISRUPTION_OFFSET = "agent.guard.disruption.offset"
LOOP_TYPE = "agent.guard.loop.type"
STAGE = "agent.guard.prompt.stage"
INVARIANT = "agent.guard.invariant"
FLAG_KEY = "feature_flag.key"
FLAG_VARIANT = "feature_flag.result.variant"
FLAG_VERSION = "feature_flag.version"
FLAG_CONTEXT_ID = "feature_flag.context.id"
FLAG_PREFIX = "agent.guard."

TRANSITIONS_METRIC = "agent.guard.transitions"
EXECUTIONS_METRIC = "agent.guard.tool.executions"
PROMPTS_METRIC = "agent.guard.prompts"
TOKENS_METRIC = "agent.guard.tokens"
TURNS_METRIC = "agent.guard.turns"
DISRUPTIONS_METRIC = "agent.guard.disruptions"
VIOLATIONS_METRIC = "agent.guard.violations"
DURATION_METRIC = "agent.guard.prompt.duration"

COUNT_LIMIT = 2**31 - 1
TOKEN_LIMIT = 2**53 - 1
DURATION_LIMIT_SECONDS = 86_400.0
DISRUPTION_LIMIT_SECONDS = 600.0
PROMPT_ID_BYTES = 128

# The guard that a stop belongs to; the two others are protections without a rollout.
GUARD_OF_LOOP: Mapping[LoopType, str] = {
    LoopType.REPEATED_TOOL_EXECUTION_FAILURE: "repeated_tool_failure",
    LoopType.GLOBAL_TOOL_CALL_DUPLICATE: "duplicate_call_id",
    LoopType.IDENTICAL_TOOL_CALL: "identical_call",
    LoopType.SIDE_EFFECT_DUPLICATE: "side_effect_duplicate",
}
