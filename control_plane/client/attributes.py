"""How a decision and a prompt's end are written as attributes and labels of the contract."""

import math
from dataclasses import dataclass

from control_plane.client import contract
from reducer.guards.transition import Transition
from reducer.vocabulary import Decision, Outcome


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
        if taken is None or not math.isfinite(taken):
            return None
        return float(taken) if 0 <= taken <= contract.DURATION_LIMIT_SECONDS else None


def of_end(end: PromptEnd) -> dict[str, str | int | float]:
    """Return what `prompt.end` says beside the ids and the number of transitions."""
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
    return {contract.OUTCOME: end.outcome.value, **known}


def labels_of(transition: Transition) -> dict[str, str]:
    """Return the labels of `agent.guard.transitions`: closed words only.

    No prompt, ordinal or error type: a metric attribute must never tell prompts apart.
    """
    return {
        key: word.value
        for key, word in (
            (contract.ROUTE, transition.route),
            (contract.MODE, transition.mode),
            (contract.PHASE_FROM, transition.phase_from),
            (contract.PHASE_TO, transition.phase_to),
            (contract.DECISION, transition.decision),
            (contract.RESET_REASON, transition.reset_reason),
            (contract.FAILURE_BUCKET, transition.failure_count),
            (contract.BATCH_BUCKET, transition.batch_count),
            (contract.TOOL_TYPE, transition.tool_type),
            (contract.TERMINAL_STATUS, transition.terminal_status),
            (contract.EXECUTION_STATUS, transition.execution_status),
        )
        if word is not None
    } | {contract.GUARD: transition.guard}


def of_transition(
    transition: Transition, *, sequence: int, is_history_preserved: bool | None
) -> dict[str, str | int | bool]:
    """Return what the event says beside the ids; the history is spoken of with a stop only."""
    attributes: dict[str, str | int | bool] = {
        **labels_of(transition),
        contract.SEQUENCE: sequence,
        contract.ORDINAL: transition.candidate_ordinal,
    }
    if transition.is_batch_complete is not None:
        attributes[contract.BATCH_COMPLETE] = transition.is_batch_complete
    if transition.error_type is not None:
        attributes[contract.ERROR_TYPE] = transition.error_type
    if is_history_preserved is not None and transition.decision is Decision.STOPPED:
        attributes[contract.HISTORY_PRESERVED] = is_history_preserved
    return attributes


def _count(number: int | None, most: int) -> int | None:
    return number if number is not None and 0 <= number <= most else None
