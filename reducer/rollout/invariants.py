"""Immediate invariants: one function for each, over one transition."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from guardwave.reducer import contract
from guardwave.reducer.vocabulary import (
    Decision,
    ExecutionStatus,
    Invariant,
    Mode,
    ResetReason,
    TerminalStatus,
)

LONGEST_STRING_BYTES = 128
NEVER_ON_A_METRIC = frozenset(
    {
        contract.PROMPT_ID,
        contract.ORDINAL,
        contract.ERROR_TYPE,
    }
)

_DENIED_WORDS = frozenset(
    {
        *("argument", "arguments", "args", "result", "results", "errortext", "errormessage"),
        *("stack", "stacktrace", "traceback", "path", "paths", "filepath", "privatekey"),
        *("server", "servers", "user", "users", "username", "enduser"),
    }
)
_DENIED_PAIRS = frozenset(
    {("error", "text"), ("error", "message"), ("exception", "message"), ("private", "key")}
)
# Pairs of words that hold a denied word but name neither a person nor a machine.
_HARMLESS_PAIRS = frozenset({("user", "agent")})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class TransitionFacts:
    """The facts of one transition record that the invariants need.

    `assigned_mode` is the mode inside its verified assignment id, None without one. A status or
    completeness that the host did not report is None, which is never a violation by itself.
    """

    decision: Decision
    mode: Mode
    assigned_mode: Mode | None = None
    reset_reason: ResetReason | None = None
    terminal_status: str | None = None
    execution_status: str | None = None
    batch_complete: bool | None = None
    deny_listed: tuple[str, ...] = ()
    has_body: bool = False

    @property
    def counts(self) -> bool:
        """Whether the decision counted the batch as a failure."""
        return self.decision is not Decision.RESET


def contract_violation(facts: TransitionFacts) -> bool:
    """Whether the host reports a broken contract, or statuses that exclude each other.

    A call that ended well cannot have an execution that failed or was cancelled.
    """
    impossible = facts.terminal_status == TerminalStatus.SUCCESS and facts.execution_status in {
        ExecutionStatus.ERROR,
        ExecutionStatus.CANCELLED,
    }
    return facts.reset_reason is ResetReason.CONTRACT_VIOLATION or impossible


def cancelled_counted(facts: TransitionFacts) -> bool:
    """Whether a cancelled call was counted as a failure."""
    return facts.counts and facts.terminal_status == TerminalStatus.CANCELLED


def ineligible_counted(facts: TransitionFacts) -> bool:
    """Whether a call was counted although its reported execution did not fail."""
    return facts.counts and facts.execution_status not in {None, ExecutionStatus.ERROR}


def incomplete_batch_decision(facts: TransitionFacts) -> bool:
    """Whether the guard decided on a batch that was not complete."""
    return facts.counts and facts.batch_complete is False


def mode_mismatch(facts: TransitionFacts) -> bool:
    """Whether the guard ran in a higher mode than its owner was assigned."""
    return facts.assigned_mode is not None and facts.mode.rank > facts.assigned_mode.rank


def sensitive_field(facts: TransitionFacts) -> bool:
    """Whether the record carries content: a body, or a field that must never be sent."""
    return facts.has_body or bool(facts.deny_listed)


_IMMEDIATE: tuple[tuple[Invariant, Callable[[TransitionFacts], bool]], ...] = (
    (Invariant.CONTRACT_VIOLATION, contract_violation),
    (Invariant.CANCELLED_COUNTED, cancelled_counted),
    (Invariant.INELIGIBLE_COUNTED, ineligible_counted),
    (Invariant.INCOMPLETE_BATCH_DECISION, incomplete_batch_decision),
    (Invariant.MODE_MISMATCH, mode_mismatch),
    (Invariant.SENSITIVE_FIELD, sensitive_field),
)

# These depend on how a guard counts; the others hold for every guard.
ONLY_IF_DECLARED = frozenset(
    {
        Invariant.CANCELLED_COUNTED,
        Invariant.INELIGIBLE_COUNTED,
        Invariant.INCOMPLETE_BATCH_DECISION,
    }
)


def immediate_violations(
    facts: TransitionFacts, *, declares: frozenset[Invariant]
) -> tuple[Invariant, ...]:
    """Return every immediate invariant that the record breaks.

    `declares` are the invariants of the guard's catalogue entry, on top of those of all guards.
    """
    return tuple(
        invariant
        for invariant, is_broken in _IMMEDIATE
        if (invariant not in ONLY_IF_DECLARED or invariant in declares) and is_broken(facts)
    )


def is_deny_listed(key: str) -> bool:
    """Whether an attribute key names content, a person or a machine.

    It denies arguments, results, error text, stack, path, server, user and private key in any case
    and with any separators, and keys that are too long for a name. Ask only about keys that are in
    no contract.
    """
    return is_overlong(key) or _has_denied_word(key)


# The cache holds only short keys, because senders choose them.
@lru_cache(maxsize=4096)
def _has_denied_word(key: str) -> bool:
    words = _WORD.findall(_CAMEL.sub("_", key).lower())
    return any(
        pair in _DENIED_PAIRS or (pair[0] in _DENIED_WORDS and pair not in _HARMLESS_PAIRS)
        for pair in zip_longest(words, words[1:], fillvalue="")
    )


def is_overlong(text: str) -> bool:
    """Whether a string is too long to be a name or a word: over 128 bytes of UTF-8."""
    return len(text) > LONGEST_STRING_BYTES or (
        4 * len(text) > LONGEST_STRING_BYTES and len(text.encode()) > LONGEST_STRING_BYTES
    )
