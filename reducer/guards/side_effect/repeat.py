"""What the guard says about a repeat: to the host, to the model, and to the person it asks."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from reducer.guards import texts
from reducer.guards.side_effect.ladder import Action

SOURCE = "duplicate-guard"
CODE = "side_effect_duplicate"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The last millisecond that a calendar of four-digit years can say.
_LAST_MS = 253_402_300_799_999


class Layer(StrEnum):
    """By what a repeat was known: equal arguments, declared identity, or likeness."""

    ARGUMENTS = "arguments"
    XID = "xid"
    SEMANTIC = "semantic"


class FirstUse(NamedTuple):
    """The run that a later call repeats: ids and a time, never arguments or a result.

    `at_ms` counts milliseconds since 1970-01-01 UTC. `channel` is the host's word for where the
    request came from (an app, a bridge); None when it gave none.
    """

    call_id: str
    request: str
    at_ms: int
    channel: str | None = None


class Repeat(NamedTuple):
    """A call and the run it repeats. `digest` stands for its tool and arguments."""

    call_id: str
    tool: str
    digest: str | None
    first: FirstUse
    layer: Layer


@dataclass(frozen=True, slots=True)
class Incident:
    """What the host writes down about a repeat; `action` is the rung that met it."""

    action: Action
    repeat: Repeat
    source: str = SOURCE


@dataclass(frozen=True, slots=True)
class DuplicateError:
    """The typed error of a call that was not run. It holds digests and ids, never arguments."""

    tool: str
    arguments_digest: str | None
    first_call_id: str
    call_id: str
    code: str = CODE

    @classmethod
    def of(cls, repeat: Repeat) -> "DuplicateError":
        """Return the error of a repeat."""
        return cls(repeat.tool, repeat.digest, repeat.first.call_id, repeat.call_id)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before a repeat runs.

    The host shows the first call's result beside it, which it keeps under `repeat.first.call_id`.
    """

    repeat: Repeat
    names_declaration: bool

    @property
    def text(self) -> str:
        """The question, when and through which channel the first run was, and how to declare."""
        likeness = self.repeat.layer is Layer.SEMANTIC
        asked = texts.SIDE_EFFECT_LIKENESS if likeness else texts.SIDE_EFFECT_QUESTION
        parts = [asked, _when(self.repeat.first)]
        if self.names_declaration:
            parts.append(texts.SIDE_EFFECT_DECLARATION)
        return " ".join(parts)


def _when(first: FirstUse) -> str:
    through = "" if first.channel is None else f" through {first.channel}"
    if not 0 <= first.at_ms <= _LAST_MS:
        return f"The first run was at {first.at_ms} ms{through}."
    at = _EPOCH + timedelta(milliseconds=first.at_ms)
    return f"The first run was at {at:%Y-%m-%d %H:%M:%S} UTC{through}."
