"""What the wording of a record decides of its evidence, whoever and whenever it is about."""

from collections.abc import Sequence
from threading import Lock
from typing import Any, TypeVar

from control_plane.ingest.booked import Backing
from control_plane.ingest.event_time import utc_day
from control_plane.ingest.identity import digest63, event_half, sender_fields
from control_plane.ingest.news_of_records import is_conforming, news_of
from control_plane.ingest.records import (
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    PromptDisruption,
    PromptEnd,
    PromptEvent,
    PromptPart,
    PromptStart,
    SessionOpened,
    Transition,
)
from control_plane.ingest.run_effects import AT_START, RunEffect, WordingEffect, run_effect
from control_plane.ingest.violations import broken_by
from control_plane.ingest.wordings import Worded, Wording
from control_plane.stores import evidence_events as events
from control_plane.stores.evidence_parts import OUTCOME_PLACES
from control_plane.stores.prompt_events import Like, PromptKey
from control_plane.stores.seen import Seen
from reducer import contract
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
# A host's wordings under a dozen versions and waves; an event takes some 300 bytes.
_REMEMBERED_EVENTS = 65_536
# Of many records no two runs are alike.
_LONGEST_KEPT_RUN = 16

K = TypeVar("K")
V = TypeVar("V")


def part_of(record: LogRecord) -> str:
    """Return what tells a record apart from its prompt's others of the same name."""
    match record:
        case Transition():
            return record.told_apart_by if record.sequence is None else str(record.sequence)
        case PromptPart():
            return f"{record.part.packed()[0]} {record.told_apart_by}"
        case SessionOpened():
            return str(record.time_ns)
        case PromptDisruption():
            return str(record.kind)
        case LoopDetected():
            return f"{record.loop_type} {record.time_ns}"
        case _:
            return ""


def volume_identity(record: LogRecord, *, guard: str, mode: Mode | None) -> int:
    """Return the identity of a record that is counted and of no owner.

    What it says, when, and which process said it: JavaScript's clocks tell milliseconds apart, in
    which several processes may say the same.
    """
    return digest63(
        "volume",
        *sender_fields(record.origin),
        guard,
        mode or "",
        NAMES[type(record)],
        record.prompt_id if isinstance(record, PromptEvent) else "",
        part_of(record),
        str(record.time_ns),
    )


class EffectBound:
    """Bounds what all effects of a web worker keep together, whoever's they are.

    A sender words its records and names its versions itself: a bound for each of the tables would
    bound nothing. `most` counts effects and their events.
    """

    def __init__(self, most: int = _REMEMBERED_EVENTS) -> None:
        self._most = most
        self._kept = 0
        self._filled: list[dict[Any, Any]] = []
        self._lock = Lock()

    def keep(self, table: dict[K, V], key: K, effect: V, *, size: int) -> None:
        """Keep an effect; where that would be too much, all of the others are forgotten."""
        with self._lock:
            if self._kept + size > self._most:
                for each in self._filled:
                    each.clear()
                self._filled.clear()
                self._kept = 0
            self._kept += size
            if not table:
                self._filled.append(table)
            table[key] = effect


OF_WORKER = EffectBound()


class WordingEffects(dict[Wording, WordingEffect]):
    """What wordings decide under the same guards, cells and generations, whichever owner's.

    Shared by threads: two that miss both work out the same. `runs` has what wordings decide
    together.
    """

    def __init__(
        self, environment: str, backings: Sequence[Backing], bound: EffectBound = OF_WORKER
    ) -> None:
        super().__init__()
        self._environment = environment
        self._backings = backings
        self._bound = bound
        self.runs: dict[tuple[Wording, ...], RunEffect] = {}

    def __missing__(self, wording: Wording) -> WordingEffect:
        record = wording.record
        about = [
            each
            for each in self._backings
            if not isinstance(record, Transition) or each.assigned.guard == record.guard
        ]
        place = AT_START if isinstance(record, PromptStart) else None
        if isinstance(record, PromptEnd):
            place = OUTCOME_PLACES[record.outcome]
        events: tuple[tuple[Like, int], ...] = ()
        if about and not broken_by(record, about[0].assigned):
            events = tuple((_like(record, each), self._half(record, each)) for each in about)
        effect = WordingEffect(place, events)
        self._bound.keep(self, wording, effect, size=1 + len(events))
        return effect

    def of_run(self, wordings: tuple[Wording, ...]) -> RunEffect:
        """Return what wordings decide together; prompts of one kind have the same."""
        return self.runs.get(wordings) or self._of_run(wordings)

    def _of_run(self, wordings: tuple[Wording, ...]) -> RunEffect:
        effect = run_effect([self[wording] for wording in wordings])
        if len(wordings) <= _LONGEST_KEPT_RUN:
            size = 1 + len(wordings) + len(effect.likes)
            self._bound.keep(self.runs, wordings, effect, size=size)
        return effect

    def _half(self, record: Worded, backing: Backing) -> int:
        guard = backing.assigned.guard
        return event_half(self._environment, guard, NAMES[type(record)], part_of(record))


def _like(record: Worded, backing: Backing) -> Like:
    return events.PromptEvent(
        Seen(0, 0),
        PromptKey("", "", 0),
        utc_day(0),
        (backing.cell,),
        is_conforming(record),
        news_of(record, 0),
        (),
        backing.assigned.generation,
    ).like()
