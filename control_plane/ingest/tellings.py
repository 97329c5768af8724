"""What the wording of a record decides of its evidence, whoever and whenever it is about."""

from functools import lru_cache

from control_plane.ingest.identity import joined_identity
from control_plane.ingest.prompt_news import is_conforming, news_of
from control_plane.ingest.records import (
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    PromptDisruption,
    PromptEnd,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
    Wording,
)
from control_plane.ingest.violations import broken_by
from control_plane.stores.evidence_events import PromptNews, Started
from reducer.rollout.assignment import Assignment
from reducer.rollout.fields import length_prefixed
from reducer.vocabulary import Mode

NAMES: dict[type[LogRecord], str] = {
    PromptStart: "agent.guard.prompt.start",
    PromptEnd: "agent.guard.prompt.end",
    PromptDisruption: "agent.guard.prompt.disruption",
    Transition: "agent.guard.transition",
    PromptPart: "agent.guard.prompt.part",
    SessionOpened: "agent.guard.session.opened",
    LoopDetected: "agent.guard.loop_detected",
    FlagEvaluation: "feature_flag.evaluation",
}
BOUNDS = (PromptStart, PromptEnd)
_REMEMBERED = 4096


def part_of(record: LogRecord) -> str:
    """Return what tells a record apart from its prompt's others of the same name."""
    match record:
        case Transition():
            return record.told_apart_by if record.sequence is None else str(record.sequence)
        case PromptPart():
            return f"{record.part.told()[0]} {record.told_apart_by}"
        case SessionOpened():
            return str(record.time_ns)
        case PromptDisruption():
            return str(record.kind)
        case LoopDetected():
            return f"{record.loop_type} {record.time_ns}"
        case _:
            return ""


class Telling:
    """What one wording decides. `news` is None where the hour of the prompt is part of it."""

    __slots__ = (
        "_breaks",
        "_name",
        "_part",
        "_record",
        "about",
        "is_bound",
        "is_conforming",
        "news",
    )

    def __init__(self, wording: Wording) -> None:
        record = wording.record
        self._record = record
        self._name = length_prefixed(NAMES[type(record)])
        self._part = length_prefixed(part_of(record))
        self._breaks: dict[Mode, bool] = {}
        self.about = record.guard if isinstance(record, Transition) else None
        self.is_bound = isinstance(record, BOUNDS)
        self.is_conforming = is_conforming(record)
        self.news: PromptNews | None = (
            None if isinstance(record, PromptStart) else news_of(record, record.time_ns)
        )

    def breaks(self, assigned: Assignment) -> bool:
        """Whether the record breaks an invariant under an assignment; only its mode matters."""
        found = self._breaks.get(assigned.mode)
        if found is None:
            found = bool(broken_by(self._record, assigned))
            self._breaks[assigned.mode] = found
        return found

    def identity(self, owner: bytes, prompt_id: bytes) -> int:
        """Return the identity of the record of a prompt, as `event_identity` gives it."""
        return joined_identity(owner, self._name, prompt_id, self._part)


@lru_cache(_REMEMBERED)
def telling_of(wording: Wording) -> Telling:
    """Return what a wording decides, worked out when it is first asked for."""
    return Telling(wording)


@lru_cache(_REMEMBERED)
def prefixed(prompt_id: str) -> bytes:
    """Return a prompt id as a field of its events' identities: a prompt has several events."""
    return length_prefixed(prompt_id)


@lru_cache(24)
def started(hour: int) -> Started:
    """Return the news of a start in this hour."""
    return Started(hour)
