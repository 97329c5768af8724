"""Reject reasons: why intake rejects or ignores an item, each word with a remedy.

They stand below intake, so that the answer to a sender and the health of an environment agree.
"""

from enum import StrEnum

from guardwave.reducer.contract import TOKEN_LIMIT


class RejectReason(StrEnum):
    """Why a record or a metric point counts for nothing; `remedy` is what its sender can do."""

    ENVIRONMENT_MISSING = "environment_missing"
    ENVIRONMENT_CONFLICT = "environment_conflict"
    VERSION_MISSING = "version_missing"
    ENVIRONMENT_MISMATCH = "environment_mismatch"
    CONTRACT_UNKNOWN = "contract_unknown"
    NO_TIME = "no_time"
    LATE = "late"
    FUTURE = "future"
    BAD_ATTRIBUTE = "bad_attribute"
    BAD_VALUE = "bad_value"
    BAD_INTERVAL = "bad_interval"
    BAD_HISTOGRAM = "bad_histogram"
    TOO_MANY_ATTRIBUTES = "too_many_attributes"
    UNREADABLE = "unreadable"
    WRONG_INSTRUMENT = "wrong_instrument"
    WRONG_UNIT = "wrong_unit"
    UNSPECIFIED_TEMPORALITY = "unspecified_temporality"
    NOT_MONOTONIC = "not_monotonic"
    FORGED_ASSIGNMENT = "forged_assignment"
    STREAM_LIMIT = "stream_limit"
    STREAM_FORGOTTEN = "stream_forgotten"

    @property
    def remedy(self) -> str:
        """The change by which the next item is accepted."""
        return _REMEDIES[self]

    @property
    def is_quarantine(self) -> bool:
        """Whether the item counts as quarantined: its Resource names no environment or version."""
        return self in _QUARANTINE


_QUARANTINE = frozenset(
    {
        RejectReason.ENVIRONMENT_MISSING,
        RejectReason.ENVIRONMENT_CONFLICT,
        RejectReason.VERSION_MISSING,
    }
)

_REMEDIES = {
    RejectReason.ENVIRONMENT_MISSING: "set the resource attribute deployment.environment.name",
    RejectReason.ENVIRONMENT_CONFLICT: (
        "set deployment.environment.name alone, or deployment.environment to the same value"
    ),
    RejectReason.VERSION_MISSING: "set the resource attribute service.version",
    RejectReason.ENVIRONMENT_MISMATCH: (
        "send with a token of that environment, or correct deployment.environment.name"
    ),
    RejectReason.CONTRACT_UNKNOWN: 'create the logger or meter "agent.guard" with version "1"',
    RejectReason.NO_TIME: "set the record's timestamp",
    RejectReason.LATE: "send within 48 hours of the event, and check the sender's clock",
    RejectReason.FUTURE: "check the sender's clock",
    RejectReason.BAD_ATTRIBUTE: "send the attribute as the telemetry contract describes it",
    RejectReason.BAD_VALUE: f"send a whole number from 0 to {TOKEN_LIMIT}",
    RejectReason.BAD_INTERVAL: "set the start to the time of the point before, by the same clock",
    RejectReason.BAD_HISTOGRAM: (
        "let an OpenTelemetry SDK make the histogram, of durations that are finite and not negative"
    ),
    RejectReason.TOO_MANY_ATTRIBUTES: "send at most 64 attributes",
    RejectReason.UNREADABLE: "encode it as OTLP describes",
    RejectReason.WRONG_INSTRUMENT: "use the instrument that the telemetry contract names",
    RejectReason.WRONG_UNIT: (
        "measure in the unit that the telemetry contract names, and give it to the instrument"
    ),
    RejectReason.UNSPECIFIED_TEMPORALITY: "set the aggregation temporality to delta",
    RejectReason.NOT_MONOTONIC: "use a Counter",
    RejectReason.FORGED_ASSIGNMENT: "send the assignment id as the assignments answer gave it",
    RejectReason.STREAM_LIMIT: (
        "send deltas, which need no stream, or give some of the hosts a token of their own"
    ),
    RejectReason.STREAM_FORGOTTEN: "send points in order, and restart the process less often",
}


class IgnoreReason(StrEnum):
    """Why an item does not concern guardwave; it is counted and not reported to its sender."""

    OTHER_SCOPE = "other_scope"
    UNKNOWN_EVENT = "unknown_event"
    UNKNOWN_METRIC = "unknown_metric"
    OTHER_FLAG = "other_flag"
    NO_DATA = "no_data"
