"""Outcomes: the class of one settled call, the classified batch, and the proof of a whole batch."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import NamedTuple

from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.vocabulary import ExecutionStatus, ResetReason, TerminalStatus, ToolType

# A longer one is a text, not a name: as a key it would keep data, without a bound.
MOST_NAME = 256
_UNKNOWN_ERROR_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class Observation:
    """The end of one admitted call, without arguments, results or error texts.

    `tool` is the resolved name, not the display name. `execution_status` and `error_type` are
    frozen when the execution settles, whatever happens to the call afterwards. `terminal_status`
    is the status reported to the model. None and words outside the closed sets are legal: the
    outcome table has classes for them. `is_provider_duplicate` marks a call that was answered
    without running (`duplicate_call_id`).

    Raises:
        ValueError: a field is of a wrong type; it names the field, never the value.
    """

    call_id: str | None
    tool: str | None
    _: KW_ONLY
    tool_type: str | None = None
    terminal_status: str | None = None
    execution_status: str | None = None
    error_type: str | None = None
    is_provider_duplicate: bool = False

    def __post_init__(self) -> None:
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} is of type {type(value).__name__}; pass a text or None")
        if not isinstance(self.is_provider_duplicate, bool):
            kind = type(self.is_provider_duplicate).__name__
            raise ValueError(f"is_provider_duplicate is of type {kind}; pass True or False")


_TEXTS = ("call_id", "tool", "tool_type", "terminal_status", "execution_status", "error_type")


class CallOutcome(StrEnum):
    """The class of a settled call, as in `docs/guards`."""

    SUCCESS = "success"
    FAILURE = "failure"
    CONTRACT_VIOLATION = "contract_violation"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    NOT_STARTED = "not_started"
    POST_EXECUTION_FAILURE = "post_execution_failure"


class FailureKey(NamedTuple):
    """The key of equal failures: the tool and the frozen error type, never the arguments."""

    tool: str
    error_type: str


class CountedFailure(NamedTuple):
    """A failure that may count. `tool_type` is None if the host sent no known type."""

    key: FailureKey
    tool_type: ToolType | None


class ClassifiedBatch(NamedTuple):
    """A batch after classification.

    `reason` is the highest reason to reset that a call gave. `is_disabling` means that a call gave
    a reason to stop enforcing for the prompt, even if another reason is reported. `failures` leaves
    out the tools that also succeeded in the batch; `succeeded` names those tools.
    """

    reason: ResetReason | None
    is_disabling: bool
    failures: tuple[CountedFailure, ...]
    succeeded: frozenset[str]


def classify(call: Observation) -> CallOutcome:
    """Return the class of one call by its two statuses (`docs/guards`).

    A success needs the tool's name. A failure also needs an error type other than `unknown` (in
    any case). Without them nobody knows what failed, and the class is `unknown`.
    """
    outcome = _TABLE.get((call.terminal_status, call.execution_status))
    if outcome is None:
        is_cancelled = call.terminal_status == TerminalStatus.CANCELLED
        return CallOutcome.CANCELLED if is_cancelled else CallOutcome.UNKNOWN
    if outcome in _NAMED and not _is_name(call.tool):
        return CallOutcome.UNKNOWN
    if outcome is CallOutcome.FAILURE and not _is_error_class(call.error_type):
        return CallOutcome.UNKNOWN
    return outcome


def classify_batch(observations: Iterable[Observation]) -> ClassifiedBatch:
    """Classify the calls of a batch, without provider duplicates (`docs/guards`)."""
    outcomes: set[CallOutcome] = set()
    failures: list[CountedFailure] = []
    succeeded: set[str] = set()
    for call in observations:
        if call.is_provider_duplicate:
            continue
        outcome = classify(call)
        outcomes.add(outcome)
        if outcome is CallOutcome.SUCCESS:
            assert call.tool is not None
            succeeded.add(call.tool)
        elif outcome is CallOutcome.FAILURE:
            assert call.tool is not None
            assert call.error_type is not None
            key = FailureKey(call.tool, call.error_type)
            failures.append(CountedFailure(key, _TOOL_TYPES.get(call.tool_type)))
    return ClassifiedBatch(
        next((reason for outcome, reason in _REASONS.items() if outcome in outcomes), None),
        not _DISABLING.isdisjoint(outcomes),
        tuple(failure for failure in failures if failure.key.tool not in succeeded),
        frozenset(succeeded),
    )


def _is_name(text: str | None) -> bool:
    return text is not None and bool(text.strip()) and len(text) <= MOST_NAME


def _is_error_class(text: str | None) -> bool:
    return text is not None and _is_name(text) and text.strip().lower() != _UNKNOWN_ERROR_TYPE


# Pairs that are not in the table are unknown, except that a cancelled call stays cancelled.
_TABLE: Mapping[tuple[str | None, str | None], CallOutcome] = {
    (TerminalStatus.SUCCESS, ExecutionStatus.SUCCESS): CallOutcome.SUCCESS,
    (TerminalStatus.SUCCESS, ExecutionStatus.NOT_STARTED): CallOutcome.SUCCESS,
    (TerminalStatus.SUCCESS, ExecutionStatus.ERROR): CallOutcome.CONTRACT_VIOLATION,
    (TerminalStatus.SUCCESS, ExecutionStatus.CANCELLED): CallOutcome.CONTRACT_VIOLATION,
    (TerminalStatus.ERROR, ExecutionStatus.SUCCESS): CallOutcome.POST_EXECUTION_FAILURE,
    (TerminalStatus.ERROR, ExecutionStatus.NOT_STARTED): CallOutcome.NOT_STARTED,
    (TerminalStatus.ERROR, ExecutionStatus.ERROR): CallOutcome.FAILURE,
    (TerminalStatus.ERROR, ExecutionStatus.CANCELLED): CallOutcome.CANCELLED,
}
_NAMED = frozenset({CallOutcome.SUCCESS, CallOutcome.FAILURE})
_DISABLING = frozenset({CallOutcome.CONTRACT_VIOLATION, CallOutcome.UNKNOWN})
# In order of precedence, highest first (`docs/guards`).
_REASONS: Mapping[CallOutcome, ResetReason] = {
    CallOutcome.CONTRACT_VIOLATION: ResetReason.CONTRACT_VIOLATION,
    CallOutcome.CANCELLED: ResetReason.CANCELLED,
    CallOutcome.UNKNOWN: ResetReason.UNKNOWN,
    CallOutcome.NOT_STARTED: ResetReason.NOT_STARTED,
    CallOutcome.POST_EXECUTION_FAILURE: ResetReason.POST_EXECUTION_FAILURE,
}
_TOOL_TYPES: Mapping[str | None, ToolType] = {word.value: word for word in ToolType}


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """All calls of one model response (or of several handled as one), after the last one settled.

    `is_complete` means that every admitted call provably settled (`settle`). `is_input_reliable`
    means that the host could read all input that came while the tools ran. `has_external_input`
    and `has_queued_prompt` mean that a person spoke, or a prompt was queued, in that time. The
    first two have no default, so that no host takes an unknown for a proof.

    Raises:
        ValueError: a field is of a wrong type; it names the field.
    """

    observations: tuple[Observation, ...]
    _: KW_ONLY
    is_complete: bool
    is_input_reliable: bool
    has_external_input: bool = False
    has_queued_prompt: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.observations, tuple):
            raise argument_error(
                "observations",
                self.observations,
                "pass a tuple of Observation (guardwave.guards.repeated_failure)",
            )
        for observation in self.observations:
            if not isinstance(observation, Observation):
                raise argument_error(
                    "one of observations",
                    observation,
                    "pass an Observation (guardwave.guards.repeated_failure)",
                )
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise argument_error(name, getattr(self, name), "pass True or False")


_FLAGS = ("is_complete", "is_input_reliable", "has_external_input", "has_queued_prompt")


class Receipt(NamedTuple):
    """The proof that one admitted call settled; `ordinal` is its place among them, from 1."""

    ordinal: int
    observation: Observation


def settle(
    admitted: Collection[str],
    receipts: Iterable[Receipt],
    *,
    is_input_reliable: bool,
    has_external_input: bool = False,
    has_queued_prompt: bool = False,
) -> SettledBatch:
    """Return the batch of the admitted call ids, complete if the receipts prove it.

    They prove it if each distinct admitted id has a receipt and the ordinals run from 1 without a
    gap (`docs/guards`). The first receipt of a call counts; a late second terminal frame is
    ignored. A receipt for a call that was not admitted leaves the batch incomplete. A skipped
    sibling needs a receipt too; its status makes it no failure.

    Raises:
        ValueError: an id, a receipt, an ordinal or an observation is of a wrong type, or
            `admitted` is a single id.
    """
    expected = _distinct_ids(admitted)
    if not isinstance(receipts, Iterable):
        raise argument_error("receipts", receipts, _RECEIPTS)
    first: dict[str | None, Receipt] = {}
    for receipt in receipts:
        first.setdefault(_check_receipt(receipt).observation.call_id, receipt)
    ordinals = sorted(receipt.ordinal for receipt in first.values())
    return SettledBatch(
        tuple(receipt.observation for receipt in first.values()),
        is_complete=first.keys() == expected and ordinals == list(range(1, len(expected) + 1)),
        is_input_reliable=is_input_reliable,
        has_external_input=has_external_input,
        has_queued_prompt=has_queued_prompt,
    )


def _distinct_ids(admitted: Collection[str]) -> frozenset[str]:
    if isinstance(admitted, str):
        raise ValueError("admitted is a text; pass the collection of admitted call ids")
    if not isinstance(admitted, Iterable):
        raise argument_error("admitted", admitted, "pass the collection of admitted call ids")
    for call_id in admitted:
        if not isinstance(call_id, str):
            raise argument_error(
                "one of admitted",
                call_id,
                "pass the ids as texts, such as CallDisposition.key (guardwave.guards.pipeline)",
            )
    return frozenset(admitted)


def _check_receipt(receipt: Receipt) -> Receipt:
    if not isinstance(receipt, Receipt):
        raise argument_error("one of receipts", receipt, _RECEIPTS)
    # The exact type: True would pass for ordinal 1.
    if type(receipt.ordinal) is not int:
        raise argument_error(
            "ordinal", receipt.ordinal, "pass the call's place in the batch, from 1"
        )
    if not isinstance(receipt.observation, Observation):
        raise argument_error(
            "observation",
            receipt.observation,
            "pass an Observation (guardwave.guards.repeated_failure)",
        )
    return receipt


_RECEIPTS = "pass a Receipt(ordinal, observation) (guardwave.guards.repeated_failure) for each call"
