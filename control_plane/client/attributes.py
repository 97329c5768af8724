"""How a decision and a prompt's end are written as attributes and labels of the contract.

Types are looked at when a record is built: a host's code may pass anything, and a text where a word
or number belongs could hold what must not leave the host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from control_plane.client.words import (
    Unfit,
    count_of,
    flag_of,
    identifier_of,
    is_count,
    is_number,
    word_of,
)
from reducer import contract
from reducer.guards.transition import BatchBucket, FailureBucket, Transition
from reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    GuardPhase,
    Mode,
    Outcome,
    ResetReason,
    Route,
    TerminalStatus,
    ToolType,
)

# Label, field of a transition, and the words it may hold.
_Labelled: TypeAlias = tuple[tuple[str, str, type[StrEnum]], ...]
_REQUIRED: _Labelled = (
    (contract.ROUTE, "route", Route),
    (contract.MODE, "mode", Mode),
    (contract.PHASE_FROM, "phase_from", GuardPhase),
    (contract.PHASE_TO, "phase_to", GuardPhase),
    (contract.DECISION, "decision", Decision),
)
_OPTIONAL: _Labelled = (
    (contract.RESET_REASON, "reset_reason", ResetReason),
    (contract.FAILURE_BUCKET, "failure_count", FailureBucket),
    (contract.BATCH_BUCKET, "batch_count", BatchBucket),
    (contract.TOOL_TYPE, "tool_type", ToolType),
    (contract.TERMINAL_STATUS, "terminal_status", TerminalStatus),
    (contract.EXECUTION_STATUS, "execution_status", ExecutionStatus),
)


@dataclass(frozen=True, slots=True)
class PromptEnd:
    """How a prompt ended. None means unknown, and is left out.

    `duration_seconds` runs from the prompt's start to its end; `turns` are requests to a model;
    `calls_after_would_stop` are the tool calls that ran after a guard's first `would_stop`. A
    number beyond the contract's limits (a day, 2^31 - 1, 2^53 - 1 tokens) counts as unknown. The
    outcome may be given as its plain word.
    """

    outcome: Outcome
    duration_seconds: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls_after_would_stop: int | None = None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together, None unless both are known."""
        spent = count_of(self.input_tokens, contract.TOKEN_LIMIT)
        made = count_of(self.output_tokens, contract.TOKEN_LIMIT)
        return None if spent is None or made is None else spent + made

    @property
    def known_turns(self) -> int | None:
        """The turns, None where they are no count."""
        return count_of(self.turns, contract.COUNT_LIMIT)

    @property
    def known_duration_seconds(self) -> float | None:
        """The duration, None where it is no time a prompt can take (a clock that was set back)."""
        taken = self.duration_seconds
        if not is_number(taken) or not 0 <= taken <= contract.DURATION_LIMIT_SECONDS:
            return None
        return float(taken)


def wrong_numbers(end: PromptEnd) -> tuple[Unfit, ...]:
    """Return a refusal for each field that holds something else than a number; it is unknown."""
    counts = ("turns", "tool_calls", "input_tokens", "output_tokens", "calls_after_would_stop")
    wrong = [
        Unfit(f"PromptEnd.{name}", found, "a whole number, or None where it is not known")
        for name in counts
        if (found := getattr(end, name)) is not None and not is_count(found)
    ]
    taken = end.duration_seconds
    if taken is not None and not is_number(taken):
        seconds = Unfit("PromptEnd.duration_seconds", taken, "seconds, or None if not known")
        wrong.append(seconds)
    return tuple(wrong)


def of_end(end: PromptEnd) -> dict[str, str | int | float]:
    """Return what `prompt.end` says beside the ids and the number of transitions.

    Raises:
        Unfit: the outcome is none.
    """
    most = contract.COUNT_LIMIT
    numbers: dict[str, int | float | None] = {
        contract.DURATION: end.known_duration_seconds,
        contract.TURNS: end.known_turns,
        contract.TOOL_CALLS: count_of(end.tool_calls, most),
        contract.INPUT_TOKENS: count_of(end.input_tokens, contract.TOKEN_LIMIT),
        contract.OUTPUT_TOKENS: count_of(end.output_tokens, contract.TOKEN_LIMIT),
        contract.CALLS_AFTER_WOULD_STOP: count_of(end.calls_after_would_stop, most),
    }
    known = {key: value for key, value in numbers.items() if value is not None}
    outcome = word_of(end.outcome, Outcome, "PromptEnd.outcome")
    return {contract.OUTCOME: outcome.value, **known}


def labels_of(transition: Transition) -> dict[str, str]:
    """Return the labels of `agent.guard.transitions`: closed words only.

    No prompt, ordinal or error type: a metric attribute must never tell prompts apart.

    Raises:
        Unfit: a field holds something that is none of its words.
    """
    labels = {contract.GUARD: transition.guard}
    for key, name, words in _REQUIRED:
        labels[key] = word_of(getattr(transition, name), words, f"Transition.{name}").value
    for key, name, words in _OPTIONAL:
        word = getattr(transition, name)
        if word is not None:
            labels[key] = word_of(word, words, f"Transition.{name}").value
    return labels


def of_transition(
    transition: Transition,
    labels: Mapping[str, str],
    *,
    sequence: int,
    is_history_preserved: bool | None,
) -> dict[str, str | int | bool]:
    """Return what the event says beside the ids: its `labels`, as `labels_of` gives them, and more.

    The history is spoken of with a stop only.

    Raises:
        Unfit: a field of the transition, or what is said of the history, is of another type.
    """
    ordinal = count_of(transition.candidate_ordinal, contract.COUNT_LIMIT)
    if ordinal is None:
        field = "Transition.candidate_ordinal"
        raise Unfit(field, transition.candidate_ordinal, "a whole number from 0")
    attributes: dict[str, str | int | bool] = {
        **labels,
        contract.SEQUENCE: sequence,
        contract.ORDINAL: ordinal,
    }
    if transition.is_batch_complete is not None:
        attributes[contract.BATCH_COMPLETE] = flag_of(
            transition.is_batch_complete, "Transition.is_batch_complete"
        )
    if transition.error_type is not None:
        attributes[contract.ERROR_TYPE] = identifier_of(
            transition.error_type, "Transition.error_type"
        )
    is_stop = labels[contract.DECISION] == Decision.STOPPED.value
    if is_stop and is_history_preserved is not None:
        attributes[contract.HISTORY_PRESERVED] = flag_of(
            is_history_preserved, "is_history_preserved"
        )
    return attributes
