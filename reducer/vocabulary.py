"""Vocabulary: the closed sets of words that all layers share."""

from enum import StrEnum


class Mode(StrEnum):
    """What a guard may do, in rising order. A rollout's phase uses the same words."""

    OFF = "off"
    SHADOW = "shadow"
    WARN = "warn"
    ENFORCE = "enforce"

    @property
    def rank(self) -> int:
        """Place on the ladder, 0 (off) to 3 (enforce)."""
        return _MODE_RANK[self]

    def at_most(self, ceiling: "Mode") -> "Mode":
        """Return the lower of this mode and `ceiling`."""
        return self if self.rank <= ceiling.rank else ceiling


_MODE_RANK = {mode: rank for rank, mode in enumerate(Mode)}


class Cohort(StrEnum):
    """A named group of version-pinned owners that get the same mode."""

    EVERYONE = "everyone"
    WARNED = "warned"
    HOLDBACK = "holdback"
    ENFORCED = "enforced"
    CONTROL = "control"
    OUTSIDE = "outside"
    INELIGIBLE = "ineligible"


class GuardPhase(StrEnum):
    """The phase of one guard within one prompt."""

    IDLE = "idle"
    TRACKING = "tracking"
    WARNED = "warned"
    LATCHED = "latched"


class Decision(StrEnum):
    """The decision of a guard about one settled batch."""

    RESET = "reset"
    TRACKED = "tracked"
    WOULD_WARN = "would_warn"
    WARNED = "warned"
    WOULD_STOP = "would_stop"
    STOPPED = "stopped"
    WOULD_SUSPEND = "would_suspend"
    SUSPENDED = "suspended"


class ResetReason(StrEnum):
    """The reason why a guard dropped its streak."""

    SUCCESS = "success"
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"
    POST_EXECUTION_FAILURE = "post_execution_failure"
    UNKNOWN = "unknown"
    MIXED = "mixed"
    INCOMPLETE = "incomplete"
    EXTERNAL_INPUT = "external_input"
    QUEUED_PROMPT = "queued_prompt"
    UNRELIABLE_INPUT = "unreliable_input"
    CONTRACT_VIOLATION = "contract_violation"


class Outcome(StrEnum):
    """The way a prompt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    GUARD_STOPPED = "guard_stopped"
    LIMIT = "limit"
    LOST = "lost"


class Route(StrEnum):
    """The origin of a prompt. Only the foreground may get more than shadow."""

    INTERACTIVE_FOREGROUND = "interactive_foreground"
    CRON = "cron"
    NOTIFICATION = "notification"
    BACKGROUND = "background"
    CHANNEL = "channel"

    @classmethod
    def parse(cls, word: str) -> "Route | None":
        """Return the route, accepting the older spellings; None for an unknown word."""
        if word in _FOREGROUND_SPELLINGS:
            return cls.INTERACTIVE_FOREGROUND
        return cls._value2member_map_.get(word)  # type: ignore[return-value]  # typeshed: Enum


_FOREGROUND_SPELLINGS = frozenset({"interactive", "acp_foreground"})


class TerminalStatus(StrEnum):
    """The end of a tool call, as the host reported it to the model."""

    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class ExecutionStatus(StrEnum):
    """The end of a tool's execution, frozen when it settled."""

    SUCCESS = "success"
    ERROR = "error"
    NOT_STARTED = "not_started"
    CANCELLED = "cancelled"


class ToolType(StrEnum):
    """The origin of a tool: built into the host, or from an MCP server."""

    NATIVE = "native"
    MCP = "mcp"


class DisruptionKind(StrEnum):
    """A sign, after a prompt's end, that its user was not served."""

    DISCONNECT = "disconnect"
    RETRY = "retry"


class LoopType(StrEnum):
    """The protection that ended a turn; the first that stops it reports it, once."""

    REPEATED_TOOL_EXECUTION_FAILURE = "repeated_tool_execution_failure"
    GLOBAL_TOOL_CALL_DUPLICATE = "global_tool_call_duplicate"
    INVALID_TOOL_PARAMS = "invalid_tool_params"
    IDENTICAL_TOOL_CALL = "identical_tool_call"
    SIDE_EFFECT_DUPLICATE = "side_effect_duplicate"
    TOTAL_TOOL_CALLS = "total_tool_calls"


class Invariant(StrEnum):
    """What must hold with zero violations."""

    CONTRACT_VIOLATION = "contract_violation"
    CANCELLED_COUNTED = "cancelled_counted"
    INELIGIBLE_COUNTED = "ineligible_counted"
    INCOMPLETE_BATCH_DECISION = "incomplete_batch_decision"
    MODE_MISMATCH = "mode_mismatch"
    SENSITIVE_FIELD = "sensitive_field"
    STOP_WITHOUT_WARN = "stop_without_warn"
    TREATMENT_SWITCHED = "treatment_switched"
    ENFORCED_ON_UNRELIABLE_INPUT = "enforced_on_unreliable_input"
    EXISTING_GUARD_CHANGED = "existing_guard_changed"


class Verdict(StrEnum):
    """What a check or a gate concluded, from best to worst."""

    WITHIN = "within"
    UNPROVEN = "unproven"
    NO_DATA = "no_data"
    BEYOND = "beyond"
    INVALID = "invalid"

    @property
    def rank(self) -> int:
        """Severity, 0 (within) to 4 (invalid)."""
        return _VERDICT_RANK[self]


_VERDICT_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


class Reason(StrEnum):
    """Why an owner gets the mode it gets, most important first."""

    ROLLOUT_LATCHED = "rollout_latched"
    SNAPSHOT_STALE = "snapshot_stale"
    ENVIRONMENT_ATTRIBUTE_MISSING = "environment_attribute_missing"
    ROUTE_EXCLUDED = "route_excluded"
    UNKNOWN_OWNER = "unknown_owner"
    OWNERSHIP_UNKNOWN = "ownership_unknown"
    PRODUCER_UNTRUSTED = "producer_untrusted"
    VERSION_UNKNOWN = "version_unknown"
    VERSION_NOT_PINNED = "version_not_pinned"
    MIXED_VERSIONS = "mixed_versions"
    NOT_IN_ROSTER = "not_in_roster"


class Gate(StrEnum):
    """The gates of the ladder: what must be shown before a step up."""

    SHADOW = "shadow"
    WARN = "warn"
    ENFORCE = "enforce"


class Metric(StrEnum):
    """The quantities that a gate compares between two cohorts, by owner."""

    COMPLETION = "completion"
    DISRUPTION = "disruption"
    CANCELLATION = "cancellation"
    TOKENS = "tokens"
    TURNS = "turns"
    LATENCY_P95 = "latency_p95"

    @property
    def is_ratio(self) -> bool:
        """Whether the margin is a ratio (treated / reference) and not a difference."""
        return self in {Metric.TOKENS, Metric.TURNS, Metric.LATENCY_P95}

    @property
    def is_higher_better(self) -> bool:
        """Whether a larger value is better, which holds only for completion."""
        return self is Metric.COMPLETION


class Role(StrEnum):
    """What a credential may do."""

    INGEST = "ingest"
    RUNTIME = "runtime"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
