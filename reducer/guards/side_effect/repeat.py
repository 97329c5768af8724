"""Repeats: a repeated call as incident, typed error and question to a person."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from guardwave.reducer.guards import messages
from guardwave.reducer.guards.side_effect.ladder import Action

SOURCE = "duplicate-guard"
CODE = "side_effect_duplicate"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The last millisecond of the year 9999, the last that datetime can hold.
_LAST_MS = 253_402_300_799_999


class Layer(StrEnum):
    """The layer that shows a repeat: equal arguments, declared identity, or likeness."""

    ARGUMENTS = "arguments"
    XID = "xid"
    SEMANTIC = "semantic"


class FirstUse(NamedTuple):
    """The run that a later call repeats: ids and a time, never arguments or a result.

    `at_ms` counts milliseconds since 1970-01-01 UTC. `channel` is the host's word for the origin of
    the request (an app, a bridge), or None.
    """

    call_id: str
    request: str
    at_ms: int
    channel: str | None = None


class Repeat(NamedTuple):
    """A call and the run it repeats. `digest` replaces its tool and arguments."""

    call_id: str
    tool: str
    digest: str | None
    first: FirstUse
    layer: Layer


@dataclass(frozen=True, slots=True)
class Incident:
    """The host's record of a repeat; `action` is the rung that applied."""

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
    """The question to a person before a repeat runs.

    The host shows the first call's result with it, which it keeps under `repeat.first.call_id`.
    """

    repeat: Repeat
    names_declaration: bool

    @property
    def text(self) -> str:
        """The question, with time and channel of the first run, and the hint on declarations."""
        likeness = self.repeat.layer is Layer.SEMANTIC
        question = messages.SIDE_EFFECT_LIKENESS if likeness else messages.SIDE_EFFECT_QUESTION
        parts = [question, _when(self.repeat.first)]
        if self.names_declaration:
            parts.append(messages.SIDE_EFFECT_DECLARATION)
        return " ".join(parts)


def _when(first: FirstUse) -> str:
    through = "" if first.channel is None else f" through {first.channel}"
    if not 0 <= first.at_ms <= _LAST_MS:
        return f"The first run was at {first.at_ms} ms{through}."
    at = _EPOCH + timedelta(milliseconds=first.at_ms)
    return f"The first run was at {at:%Y-%m-%d %H:%M:%S} UTC{through}."
