"""Ladder: the host's settings for repeats, and the declarations of its tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

Word = TypeVar("Word", bound=StrEnum)


class Action(StrEnum):
    """The rung for a repeat; `suspend` asks a person."""

    OFF = "off"
    WARN = "warn"
    REFLECT = "reflect"
    BLOCK = "block"
    SUSPEND = "suspend"


class Scope(StrEnum):
    """The reach of the search for repeats: one request with its sub-agents, or a whole thread."""

    REQUEST = "request"
    THREAD = "thread"


class ApprovalScope(StrEnum):
    """The reach of an approval: the call until it succeeds, or one attempt with any result."""

    CALL = "call"
    ATTEMPT = "attempt"


class Idempotency(StrEnum):
    """The key of a tool's own idempotency."""

    CALL = "call"
    ARGS = "args"


class IdempotencyWindow(StrEnum):
    """The reach of a tool's own idempotency."""

    RUN = "run"
    THREAD = "thread"
    CROSS_RUN = "cross-run"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The settings of the guard. Without a `ttl_ms` a first run never expires (`docs/guards`)."""

    action: Action = Action.SUSPEND
    scope: Scope = Scope.REQUEST
    ttl_ms: int | None = None
    approvals: ApprovalScope = ApprovalScope.CALL

    def __post_init__(self) -> None:
        ttl_ms = self.ttl_ms
        if ttl_ms is not None and (type(ttl_ms) is not int or ttl_ms < 0):
            raise ValueError(
                f"ttl_ms is {ttl_ms!r}; give whole milliseconds from 0, or none to never expire"
            )

    @classmethod
    def parse(cls, setting: str | Mapping[str, object]) -> "Ladder":
        """Return the settings of a word or of `{action, scope, ttl_ms, approvals}`.

        Raises:
            ValueError: a word or key is unknown; it names the field, the value and the choices.
        """
        if isinstance(setting, str):
            return cls(action=_word("action", setting, Action))
        unknown = sorted(str(key) for key in setting if key not in _KEYS)
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no setting of the ladder; use {', '.join(_KEYS)}")
        ttl_ms = setting.get("ttl_ms")
        return cls(
            action=_word("action", setting.get("action", Action.SUSPEND), Action),
            scope=_word("scope", setting.get("scope", Scope.REQUEST), Scope),
            ttl_ms=ttl_ms,  # type: ignore[arg-type]  # __post_init__ checks it
            approvals=_word("approvals", setting.get("approvals", "call"), ApprovalScope),
        )

    def is_expired(self, at_ms: int, now_ms: int) -> bool:
        """Whether a run at `at_ms` is longer ago than the ttl."""
        return self.ttl_ms is not None and now_ms - at_ms > self.ttl_ms


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool's declaration about its repeats; None where it declares nothing.

    The tool's own key outranks everything, `side_effect` outranks `idempotent`, and a tool that
    declares nothing has a side effect.
    """

    side_effect: bool | None = None
    idempotent: bool | None = None
    idempotency: Idempotency = Idempotency.CALL
    idempotency_key_fields: tuple[str, ...] = ()
    idempotency_window: IdempotencyWindow = IdempotencyWindow.RUN

    @property
    def is_keyed(self) -> bool:
        """Whether the tool's own key handles repeats, so that the guard leaves it alone."""
        return (
            bool(self.idempotency_key_fields)
            or self.idempotency is Idempotency.ARGS
            or self.idempotency_window is not IdempotencyWindow.RUN
        )

    @property
    def has_side_effect(self) -> bool:
        """Whether running the tool twice has an effect twice."""
        if self.side_effect is not None:
            return self.side_effect
        return self.idempotent is not True

    @property
    def is_silent(self) -> bool:
        """Whether the tool counts as one with a side effect only because it declares nothing."""
        return self.side_effect is None and self.idempotent is None


DEFAULT_LADDER = Ladder()
UNDECLARED = ToolDeclaration()
_KEYS = ("action", "scope", "ttl_ms", "approvals")


def _word(field: str, found: object, words: type[Word]) -> Word:
    for word in words:
        if word == found:
            return word
    raise ValueError(f"{field} is {found!r}; it is one of {', '.join(words)}")
