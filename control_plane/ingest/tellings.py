"""What the wording of a record decides of its evidence, whoever and whenever it is about."""

from functools import lru_cache

from control_plane.ingest.event_time import utc_day, utc_hour
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
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import PromptEvent, PromptKey, PromptNews, Seen, Started
from reducer import contract
from reducer.rollout.assignment import Assignment
from reducer.rollout.fields import length_prefixed
from reducer.vocabulary import Mode

NAMES: dict[type[LogRecord], str] = {
    PromptStart: contract.PROMPT_START,
    PromptEnd: contract.PROMPT_END,
    PromptDisruption: contract.DISRUPTION,
    Transition: contract.TRANSITION,
    PromptPart: "agent.guard.prompt.part",
    SessionOpened: "agent.guard.session.opened",
    LoopDetected: contract.LOOP_DETECTED,
    FlagEvaluation: contract.FLAG_EVALUATION,
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
        return joined_identity(owner + self._name + prompt_id + self._part)


class Likes:
    """What the events of one cell and generation are packed as, by what they tell.

    Shared by threads: two that miss both work out the same.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Telling, int], list[object]] = {}

    def of(self, telling: Telling, cell: Cell, generation: int, time_ns: int) -> list[object]:
        """Return an event as it is packed, of no prompt in particular."""
        hour = 0 if telling.news is not None else utc_hour(time_ns)
        like = self._known.get((telling, hour))
        if like is None:
            like = PromptEvent(
                Seen(0, 0),
                PromptKey("", "", 0),
                utc_day(time_ns),
                (cell,),
                telling.is_conforming,
                telling.news or Started(hour),
                (),
                generation,
            ).packed()
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[telling, hour] = like
        return like


@lru_cache(_REMEMBERED)
def telling_of(wording: Wording) -> Telling:
    """Return what a wording decides, worked out when it is first asked for."""
    return Telling(wording)
