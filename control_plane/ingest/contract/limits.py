"""Limits of contract 1: the versions, older names, closed sets, units and times accepted."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache

from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import (
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

CONTRACT = 1
# The version of hosts from before the contract was settled; read as contract 1.
EARLY_SCOPE_VERSION = "0.1.0"
SCOPE_VERSIONS: Mapping[str, int] = {"1": CONTRACT, EARLY_SCOPE_VERSION: CONTRACT}

SERVICE_NAME = "service.name"
SERVICE_NAMESPACE = "service.namespace"
SERVICE_VERSION = "service.version"
INSTANCE_ID = "service.instance.id"
ENVIRONMENT = "deployment.environment.name"
OLDER_ENVIRONMENT = "deployment.environment"
# OpenTelemetry SDKs name a nameless service so.
UNNAMED_SERVICE = "unknown_service"

# Commas separate attributes in OTEL_RESOURCE_ATTRIBUTES, so ids are joined by this.
ASSIGNMENT_JOINT = "~"
EVENT_NAME = "event.name"
# An SDK replaces all attributes by this one once an instrument has too many sets of them
# (OpenTelemetry metrics SDK, cardinality limits).
OVERFLOW = "otel.metric.overflow"
COMPLETED = "agent.guard.prompt.completed"
OLDER_INPUT_TOKENS = "agent.guard.usage.input_tokens"
OLDER_OUTPUT_TOKENS = "agent.guard.usage.output_tokens"

DECISIONS = {word.value: word for word in Decision}
DISRUPTION_KINDS = {word.value: word for word in DisruptionKind}
EXECUTION_STATUSES = {word.value: word for word in ExecutionStatus}
INVARIANTS = {word.value: word for word in Invariant}
LOOP_TYPES = {word.value: word for word in LoopType}
MODES = {word.value: word for word in Mode}
# A prompt without a reported end is lost: guardwave decides that, and no host may report it.
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
ENDED_STAGE = "end"
STAGES = {word: word for word in ("start", ENDED_STAGE)}
EXECUTED = {word.value: word for word in (ExecutionStatus.SUCCESS, ExecutionStatus.ERROR)}

GUARD_NAME = re.compile(r"[a-z0-9_]{1,48}")
ERROR_TYPE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ASSIGNMENT_IDS = 16
# The longest that the server issues has 124.
ASSIGNMENT_ID_CHARACTERS = 128


SECOND_NS = 1_000_000_000
OLDEST_NS = 48 * 3600 * SECOND_NS
NEWEST_NS = 5 * 60 * SECOND_NS

Words = Mapping[str, str]

# A counter without a unit, or of unit 1, counts the same things. A duration without a unit may be
# seconds or anything else.
PLAIN_COUNTS = frozenset({"", "1"})
UNITS: Mapping[str, str] = {
    contract.TRANSITIONS_METRIC: "{transition}",
    contract.EXECUTIONS_METRIC: "{call}",
    contract.PROMPTS_METRIC: "{prompt}",
    contract.TOKENS_METRIC: "{token}",
    contract.TURNS_METRIC: "{turn}",
    contract.DISRUPTIONS_METRIC: "{prompt}",
    contract.VIOLATIONS_METRIC: "{violation}",
    contract.DURATION_METRIC: "s",
}

COUNTERS: Mapping[str, Mapping[str, Words]] = {
    contract.TRANSITIONS_METRIC: {
        contract.ROUTE: ROUTES,
        contract.PHASE_FROM: PHASES,
        contract.PHASE_TO: PHASES,
        contract.DECISION: DECISIONS,
        contract.RESET_REASON: RESET_REASONS,
        contract.FAILURE_BUCKET: FAILURE_BUCKETS,
        contract.BATCH_BUCKET: BATCH_BUCKETS,
        contract.TOOL_TYPE: TOOL_TYPES,
        contract.TERMINAL_STATUS: TERMINAL_STATUSES,
        contract.EXECUTION_STATUS: EXECUTION_STATUSES,
    },
    contract.EXECUTIONS_METRIC: {contract.EXECUTION_STATUS: EXECUTED},
    contract.PROMPTS_METRIC: {contract.STAGE: STAGES, contract.OUTCOME: OUTCOMES},
    contract.TOKENS_METRIC: {},
    contract.TURNS_METRIC: {},
    contract.DISRUPTIONS_METRIC: {contract.DISRUPTION_KIND: DISRUPTION_KINDS},
    contract.VIOLATIONS_METRIC: {contract.INVARIANT: INVARIANTS},
}
# The labels that a point must have. An outcome is needed only at the end of a prompt.
ESSENTIAL: Mapping[str, tuple[str, ...]] = {
    contract.TRANSITIONS_METRIC: (contract.DECISION,),
    contract.EXECUTIONS_METRIC: (contract.EXECUTION_STATUS,),
    contract.PROMPTS_METRIC: (contract.STAGE,),
    contract.TOKENS_METRIC: (),
    contract.TURNS_METRIC: (),
    contract.DISRUPTIONS_METRIC: (contract.DISRUPTION_KIND,),
    contract.VIOLATIONS_METRIC: (contract.INVARIANT,),
}


Clock = Callable[[int], int]

HOUR_NS = 3600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
_FIRST_DAY = date(1970, 1, 1).toordinal()


def sender_clock(time_ns: int) -> int:
    """Return the time unchanged: outside the demo, sender and environment share UTC."""
    return time_ns


def accepted_time(time_ns: int, *, now_ns: int, clock: Clock) -> int:
    """Return the time on the environment's clock, or reject the item as late or future.

    The window is 48 hours before `now_ns` to 5 minutes after it, both included; `now_ns` is on
    the environment's clock already. A time of 0 is unset.
    """
    if not time_ns:
        raise ItemRejected(RejectReason.NO_TIME, "neither time nor observed time is set")
    mapped = clock(time_ns)
    if mapped < now_ns - OLDEST_NS:
        hours = (now_ns - mapped) / (3600 * SECOND_NS)
        raise ItemRejected(RejectReason.LATE, f"the time is {hours:.1f} hours ago")
    if mapped > now_ns + NEWEST_NS:
        ahead = (mapped - now_ns) / SECOND_NS
        raise ItemRejected(RejectReason.FUTURE, f"the time is {ahead:.0f} seconds ahead")
    return mapped


def utc_day(time_ns: int) -> date:
    """Return the UTC day of nanoseconds since 1970."""
    return _day(time_ns // DAY_NS)


@lru_cache(maxsize=64)
def _day(number: int) -> date:
    return date.fromordinal(_FIRST_DAY + number)


def utc_hour(time_ns: int) -> int:
    """Return the hour, 0 to 23, of its UTC day of nanoseconds since 1970."""
    return time_ns % DAY_NS // HOUR_NS
