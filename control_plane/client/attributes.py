"""How a decision and a prompt's end are written as attributes and labels of the contract.

Types are looked at when a record is built: a host's code may pass anything, and a text where a word
or number belongs could hold what must not leave the host.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TypeGuard

from reducer import contract
from reducer.guards.transition import BatchBucket, FailureBucket, Transition, is_identifier
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


@dataclass(frozen=True, slots=True)
class PromptEnd:
    """How a prompt ended. None means unknown, and is left out.

    `duration_seconds` runs from the prompt's start to its end; `turns` are requests to a model;
    `calls_after_would_stop` are the tool calls that ran after a guard's first `would_stop`. A
    number beyond the contract's limits (a day, 2^31 - 1, 2^53 - 1 tokens) counts as unknown.
    """

    outcome: Outcome
    duration_seconds: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    calls_after_would_stop: int | None = None

    @property
    def wrong_numbers(self) -> int:
        """How many fields hold something that is no number; they count as unknown."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        del given["outcome"]
        taken = given.pop("duration_seconds")
        wrong = [each for each in given.values() if each is not None and type(each) is not int]
        return len(wrong) + (taken is not None and not _is_number(taken))

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together, None unless both are known."""
        spent = _count(self.input_tokens, contract.TOKEN_LIMIT)
        made = _count(self.output_tokens, contract.TOKEN_LIMIT)
        return None if spent is None or made is None else spent + made

    @property
    def known_turns(self) -> int | None:
        """The turns, None where they are no count."""
        return _count(self.turns, contract.COUNT_LIMIT)

    @property
    def known_duration_seconds(self) -> float | None:
        """The duration, None where it is no time a prompt can take (a clock that was set back)."""
        taken = self.duration_seconds
        if not _is_number(taken) or not 0 <= taken <= contract.DURATION_LIMIT_SECONDS:
            return None
        return float(taken)


def of_end(end: PromptEnd) -> dict[str, str | int | float]:
    """Return what `prompt.end` says beside the ids and the number of transitions.

    Raises:
        TypeError: the outcome is no `Outcome`.
    """
    most = contract.COUNT_LIMIT
    numbers: dict[str, int | float | None] = {
        contract.DURATION: end.known_duration_seconds,
        contract.TURNS: end.known_turns,
        contract.TOOL_CALLS: _count(end.tool_calls, most),
        contract.INPUT_TOKENS: _count(end.input_tokens, contract.TOKEN_LIMIT),
        contract.OUTPUT_TOKENS: _count(end.output_tokens, contract.TOKEN_LIMIT),
        contract.CALLS_AFTER_WOULD_STOP: _count(end.calls_after_would_stop, most),
    }
    known = {key: value for key, value in numbers.items() if value is not None}
    return {contract.OUTCOME: value_of(end.outcome, Outcome), **known}


def labels_of(transition: Transition) -> dict[str, str]:
    """Return the labels of `agent.guard.transitions`: closed words only.

    No prompt, ordinal or error type: a metric attribute must never tell prompts apart.

    Raises:
        TypeError: a field holds something that is none of its words.
    """
    labels = {
        contract.ROUTE: value_of(transition.route, Route),
        contract.MODE: value_of(transition.mode, Mode),
        contract.PHASE_FROM: value_of(transition.phase_from, GuardPhase),
        contract.PHASE_TO: value_of(transition.phase_to, GuardPhase),
        contract.DECISION: value_of(transition.decision, Decision),
        contract.GUARD: transition.guard,
    }
    optional: tuple[tuple[str, object, type[StrEnum]], ...] = (
        (contract.RESET_REASON, transition.reset_reason, ResetReason),
        (contract.FAILURE_BUCKET, transition.failure_count, FailureBucket),
        (contract.BATCH_BUCKET, transition.batch_count, BatchBucket),
        (contract.TOOL_TYPE, transition.tool_type, ToolType),
        (contract.TERMINAL_STATUS, transition.terminal_status, TerminalStatus),
        (contract.EXECUTION_STATUS, transition.execution_status, ExecutionStatus),
    )
    for key, word, words in optional:
        if word is not None:
            labels[key] = value_of(word, words)
    return labels


def of_transition(
    transition: Transition, *, sequence: int, is_history_preserved: bool | None
) -> dict[str, str | int | bool]:
    """Return what the event says beside the ids; the history is spoken of with a stop only.

    Raises:
        TypeError: a field of the transition, or what is said of the history, is of another type.
    """
    ordinal = _count(transition.candidate_ordinal, contract.COUNT_LIMIT)
    if ordinal is None:
        raise TypeError("candidate_ordinal is no count")
    attributes: dict[str, str | int | bool] = {
        **labels_of(transition),
        contract.SEQUENCE: sequence,
        contract.ORDINAL: ordinal,
    }
    if transition.is_batch_complete is not None:
        attributes[contract.BATCH_COMPLETE] = _flag(transition.is_batch_complete)
    if transition.error_type is not None:
        attributes[contract.ERROR_TYPE] = _identifier(transition.error_type)
    if is_history_preserved is not None and transition.decision is Decision.STOPPED:
        attributes[contract.HISTORY_PRESERVED] = _flag(is_history_preserved)
    return attributes


def value_of(word: object, words: type[StrEnum]) -> str:
    """Return a word of a closed set as text.

    Raises:
        TypeError: it is none of the set's members; a text that spells one is none.
    """
    if not isinstance(word, words):
        raise TypeError(f"a {type(word).__name__} is no {words.__name__}")
    return word.value


def _flag(found: object) -> bool:
    if not isinstance(found, bool):
        raise TypeError(f"a {type(found).__name__} is neither true nor false")
    return found


def _identifier(found: object) -> str:
    if not is_identifier(found):
        raise TypeError("error_type is no identifier")
    return str(found)


def _count(number: object, most: int) -> int | None:
    # True is an int to Python and no count.
    return number if type(number) is int and 0 <= number <= most else None


def _is_number(found: object) -> TypeGuard[float]:
    return type(found) in (int, float)
