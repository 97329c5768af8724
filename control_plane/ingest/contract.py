"""Contract 1 of guard telemetry: names, closed sets and limits, as data."""

import re
from collections.abc import Mapping

from reducer.vocabulary import (
    Decision,
    DisruptionKind,
    ExecutionStatus,
    GuardPhase,
    Invariant,
    LoopType,
    Mode,
    Outcome,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)

SCOPE = "agent.guard"
CONTRACT = 1
# What hosts sent before the contract was settled; read as contract 1.
EARLY_SCOPE_VERSION = "0.1.0"
SCOPE_VERSIONS: Mapping[str, int] = {"1": CONTRACT, EARLY_SCOPE_VERSION: CONTRACT}

SERVICE_NAME = "service.name"
SERVICE_NAMESPACE = "service.namespace"
SERVICE_VERSION = "service.version"
INSTANCE_ID = "service.instance.id"
ENVIRONMENT = "deployment.environment.name"
OLDER_ENVIRONMENT = "deployment.environment"
# What OpenTelemetry SDKs call a service that has no name.
UNNAMED_SERVICE = "unknown_service"

ASSIGNMENT_ID = "agent.guard.assignment.id"
# Commas separate attributes in OTEL_RESOURCE_ATTRIBUTES, so ids are joined by this.
ASSIGNMENT_JOINT = "~"
EVENT_NAME = "event.name"
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
COMPLETED = "agent.guard.prompt.completed"
DURATION = "agent.guard.prompt.duration"
TURNS = "agent.guard.prompt.turns"
TOOL_CALLS = "agent.guard.prompt.tool_calls"
TRANSITIONS = "agent.guard.prompt.transitions"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
OLDER_INPUT_TOKENS = "agent.guard.usage.input_tokens"
OLDER_OUTPUT_TOKENS = "agent.guard.usage.output_tokens"
CALLS_AFTER_WOULD_STOP = "agent.guard.calls_after_would_stop"
DISRUPTION_KIND = "agent.guard.disruption.kind"
DISRUPTION_OFFSET = "agent.guard.disruption.offset"
LOOP_TYPE = "agent.guard.loop.type"
STAGE = "agent.guard.prompt.stage"
INVARIANT = "agent.guard.invariant"
FLAG_KEY = "feature_flag.key"
FLAG_VARIANT = "feature_flag.result.variant"
FLAG_PREFIX = "agent.guard."

# Records of these say little that others did not say before: a host's whole vocabulary is small.
REPEATED_EVENTS = frozenset({"agent.guard.transition", "agent.guard.prompt.start"})

DECISIONS = {word.value: word for word in Decision}
DISRUPTION_KINDS = {word.value: word for word in DisruptionKind}
EXECUTION_STATUSES = {word.value: word for word in ExecutionStatus}
INVARIANTS = {word.value: word for word in Invariant}
LOOP_TYPES = {word.value: word for word in LoopType}
MODES = {word.value: word for word in Mode}
# What no end was reported for is lost: that is found out here, and no host may say it.
OUTCOMES = {word.value: word for word in Outcome if word is not Outcome.LOST}
PHASES = {word.value: word for word in GuardPhase}
RESET_REASONS = {word.value: word for word in ResetReason}
ROUTES = {word.value: word for word in Route} | dict.fromkeys(
    ("interactive", "acp_foreground"), Route.INTERACTIVE_FOREGROUND
)
TERMINAL_STATUSES = {word.value: word for word in TerminalStatus}
TOOL_TYPES = {word.value: word for word in ToolType}
FAILURE_BUCKETS = {word: word for word in ("0", "1-2", "3-4", "5-7", "8+")}
BATCH_BUCKETS = {word: word for word in ("0", "1", "2", "3+")}
STAGES = {word: word for word in ("start", "end")}
EXECUTED = {word.value: word for word in (ExecutionStatus.SUCCESS, ExecutionStatus.ERROR)}

GUARD_NAME = re.compile(r"[a-z0-9_]{1,48}")
ERROR_TYPE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PROMPT_ID_BYTES = 128
ASSIGNMENT_IDS = 16
# The longest that the server issues has 124.
ASSIGNMENT_ID_CHARACTERS = 128

COUNT_LIMIT = 2**31 - 1
# Beyond it a double cannot tell neighbours apart, and the store adds in doubles.
TOKEN_LIMIT = 2**53 - 1
# A prompt without an end for a day is lost, so none can have taken longer.
DURATION_LIMIT_SECONDS = 86_400.0
DISRUPTION_LIMIT_SECONDS = 600.0

SECOND_NS = 1_000_000_000
OLDEST_NS = 48 * 3600 * SECOND_NS
NEWEST_NS = 5 * 60 * SECOND_NS

Words = Mapping[str, str]

COUNTERS: Mapping[str, Mapping[str, Words]] = {
    "agent.guard.transitions": {
        ROUTE: ROUTES,
        PHASE_FROM: PHASES,
        PHASE_TO: PHASES,
        DECISION: DECISIONS,
        RESET_REASON: RESET_REASONS,
        FAILURE_BUCKET: FAILURE_BUCKETS,
        BATCH_BUCKET: BATCH_BUCKETS,
        TOOL_TYPE: TOOL_TYPES,
        TERMINAL_STATUS: TERMINAL_STATUSES,
        EXECUTION_STATUS: EXECUTION_STATUSES,
    },
    "agent.guard.tool.executions": {EXECUTION_STATUS: EXECUTED},
    "agent.guard.prompts": {STAGE: STAGES, OUTCOME: OUTCOMES},
    "agent.guard.tokens": {},
    "agent.guard.turns": {},
    "agent.guard.disruptions": {DISRUPTION_KIND: DISRUPTION_KINDS},
    "agent.guard.violations": {INVARIANT: INVARIANTS},
}
DURATION_METRIC = "agent.guard.prompt.duration"
