"""Template effects: the evidence that a record template decides, for any owner and time."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, TypeVar

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.contract import utc_day
from guardwave.control_plane.ingest.evidence.delta import VerifiedAssignment
from guardwave.control_plane.ingest.evidence.prompt_deltas import (
    end_delta_numbers,
    is_conforming,
    prompt_delta,
)
from guardwave.control_plane.ingest.evidence.violations import broken_invariants
from guardwave.control_plane.ingest.model.identity import (
    digest63,
    partial_event_digest,
    sender_fields,
)
from guardwave.control_plane.ingest.model.record_templates import (
    NO_NUMBERS,
    EndNumbers,
    RecordTemplate,
    TemplatedRecord,
)
from guardwave.control_plane.ingest.model.records import (
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
from guardwave.control_plane.stores.evidence.delta import request as events
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    VALUES_PER_EVENT,
    EventValue,
    Numbers,
    PartialDigests,
    PromptKey,
    SharedAttributes,
)
from guardwave.control_plane.stores.evidence.delta.prompt_parts import OUTCOME_PLACES
from guardwave.reducer import contract
from guardwave.reducer.vocabulary import Mode

AT_START = 0
DAY_SECONDS = 86_400
_HOURS: Sequence[Numbers] = [(hour,) for hour in range(24)]

# Takes the times of a batch and the numbers of its ends by position. Returns the values of its
# events; and its day, with whether a prompt starts or ends on it.
BatchValues: TypeAlias = Callable[
    [Sequence[int], Mapping[int, EndNumbers]], tuple[list[EventValue], tuple[int, bool]]
]


class TemplateEffect(NamedTuple):
    """Evidence that a template decides under the guards of one owner.

    `place` is the outcome's place in an owner-day for an end, AT_START for a start, and None for
    other records. `events` has shared attributes and the partial digest for each guard that the
    record is about; it is empty where each record has to be built by itself.
    """

    place: int | None
    events: tuple[tuple[SharedAttributes, int], ...]


class BatchEffect(NamedTuple):
    """Evidence that the templates of a batch decide, in their order, under one owner's guards.

    `values_of` computes the values of its events. `singles` are the positions of records that have
    to be built by themselves.
    """

    shared: tuple[SharedAttributes, ...]
    partial_digests: PartialDigests
    values_of: BatchValues
    singles: Sequence[int]


def batch_effect(effects: Sequence[TemplateEffect]) -> BatchEffect:
    """Return the combined effect of templates, in their order."""
    events: list[tuple[SharedAttributes, int]] = []
    record_of_event: list[int] = []
    starts: list[int] = []
    ends: list[tuple[int, int, list[int]]] = []
    singles: list[int] = []
    for at, (place, added) in enumerate(effects):
        offsets = [VALUES_PER_EVENT * (len(events) + number) for number in range(len(added))]
        if not added:
            singles.append(at)
        elif place == AT_START:
            starts += offsets
        elif place is not None:
            ends.append((at, place, offsets))
        events += added
        record_of_event += [at] * len(added)
    is_one_to_one = record_of_event == list(range(len(effects)))
    return BatchEffect(
        tuple([shared for shared, _ in events]),
        PartialDigests([partial_digest for _, partial_digest in events]),
        _values_of(len(events), None if is_one_to_one else record_of_event, starts, ends),
        singles,
    )


def _values_of(
    count: int,
    record_of_event: Sequence[int] | None,
    starts: Sequence[int],
    ends: Sequence[tuple[int, int, Sequence[int]]],
) -> BatchValues:
    """Return the function that computes the values of a batch's events.

    `record_of_event` has the record of each event, None where each record has exactly one.
    `starts` are the offsets of the values of starts. `ends` have the position of an end, its place
    as in `TemplateEffect`, and the offsets of its events' values.
    """
    is_of_prompt = bool(starts or ends)
    # An event's values are second, day and numbers: a start has its own hour, an end its own day.
    hour_offsets = [offset + 2 for offset in starts]
    end_slices = [
        (at, place, [slice(offset + 1, offset + 3) for offset in offsets])
        for at, place, offsets in ends
    ]

    def values_of(
        times_ns: Sequence[int], numbers: Mapping[int, EndNumbers]
    ) -> tuple[list[EventValue], tuple[int, bool]]:
        seconds = [time_ns // NANOSECONDS for time_ns in times_ns]
        day, of_day = divmod(seconds[0], DAY_SECONDS)
        values: list[EventValue] = [0, day, False] * count
        values[::VALUES_PER_EVENT] = (
            seconds if record_of_event is None else [seconds[at] for at in record_of_event]
        )
        for hour_offset in hour_offsets:
            values[hour_offset] = _HOURS[of_day // 3600]
        for at, place, slices in end_slices:
            day_and_numbers = end_delta_numbers(place, times_ns[at], numbers.get(at, NO_NUMBERS))
            for day_slice in slices:
                values[day_slice] = day_and_numbers
        return values, (day, is_of_prompt)

    return values_of


EVENT_NAMES: dict[type[LogRecord], str] = {
    PromptStart: contract.PROMPT_START,
    PromptEnd: contract.PROMPT_END,
    PromptDisruption: contract.DISRUPTION,
    Transition: contract.TRANSITION,
    PromptPart: "agent.guard.prompt.part",
    SessionOpened: "agent.guard.session.opened",
    LoopDetected: contract.LOOP_DETECTED,
    FlagEvaluation: contract.FLAG_EVALUATION,
}
PROMPT_BOUNDS = (PromptStart, PromptEnd)
# A host's templates under a dozen versions and waves; an event takes some 300 bytes.
_REMEMBERED_EVENTS = 65_536
# Batches of many records seldom repeat.
_LONGEST_KEPT_BATCH = 16

K = TypeVar("K")
V = TypeVar("V")


def part_of(record: LogRecord) -> str:
    """Return what distinguishes a record from its prompt's others of the same name."""
    match record:
        case Transition():
            return record.discriminator if record.sequence is None else str(record.sequence)
        case PromptPart():
            return f"{record.part.packed()[0]} {record.discriminator}"
        case SessionOpened():
            return str(record.time_ns)
        case PromptDisruption():
            return str(record.kind)
        case LoopDetected():
            return f"{record.loop_type} {record.time_ns}"
        case _:
            return ""


def volume_identity(record: LogRecord, *, guard: str, mode: Mode | None) -> int:
    """Return the identity of a record that counts for no owner.

    Its content, its time and its process: JavaScript's clocks resolve milliseconds, in which
    several processes may send the same.
    """
    return digest63(
        "volume",
        *sender_fields(record.origin),
        guard,
        mode or "",
        EVENT_NAMES[type(record)],
        record.prompt_id if isinstance(record, PromptEvent) else "",
        part_of(record),
        str(record.time_ns),
    )


class EffectBound:
    """A bound for all effects that a web worker keeps together.

    Senders choose the templates and versions themselves, and so the number of tables: a bound for
    each table would bound nothing. `most` counts effects and their events.
    """

    def __init__(self, most: int = _REMEMBERED_EVENTS) -> None:
        self._most = most
        self._kept = 0
        self._filled: list[dict[Any, Any]] = []
        self._lock = Lock()

    def keep(self, table: dict[K, V], key: K, effect: V, *, size: int) -> None:
        """Keep an effect; if that exceeds the bound, forget all others first."""
        with self._lock:
            if self._kept + size > self._most:
                for filled in self._filled:
                    filled.clear()
                self._filled.clear()
                self._kept = 0
            self._kept += size
            if not table:
                self._filled.append(table)
            table[key] = effect


WORKER_BOUND = EffectBound()


class TemplateEffects(dict[RecordTemplate, TemplateEffect]):
    """Effects of templates under one set of guards, strata and generations, for any owner.

    Shared by threads: two that miss compute the same. `batches` has the effects of the templates
    of a batch together.
    """

    def __init__(
        self,
        environment: str,
        assignments: Sequence[VerifiedAssignment],
        bound: EffectBound = WORKER_BOUND,
    ) -> None:
        super().__init__()
        self._environment = environment
        self._assignments = assignments
        self._bound = bound
        self.batches: dict[tuple[RecordTemplate, ...], BatchEffect] = {}

    def __missing__(self, template: RecordTemplate) -> TemplateEffect:
        record = template.record
        about = [
            verified
            for verified in self._assignments
            if not isinstance(record, Transition) or verified.assignment.guard == record.guard
        ]
        place = AT_START if isinstance(record, PromptStart) else None
        if isinstance(record, PromptEnd):
            place = OUTCOME_PLACES[record.outcome]
        events: tuple[tuple[SharedAttributes, int], ...] = ()
        if about and not broken_invariants(record, about[0].assignment):
            events = tuple(
                (_shared_attributes(record, verified), self._partial_digest(record, verified))
                for verified in about
            )
        effect = TemplateEffect(place, events)
        self._bound.keep(self, template, effect, size=1 + len(events))
        return effect

    def of_batch(self, templates: tuple[RecordTemplate, ...]) -> BatchEffect:
        """Return the combined effect of templates; prompts of one kind have the same."""
        return self.batches.get(templates) or self._find_of_batch(templates)

    def _find_of_batch(self, templates: tuple[RecordTemplate, ...]) -> BatchEffect:
        effect = batch_effect([self[template] for template in templates])
        if len(templates) <= _LONGEST_KEPT_BATCH:
            size = 1 + len(templates) + len(effect.shared)
            self._bound.keep(self.batches, templates, effect, size=size)
        return effect

    def _partial_digest(self, record: TemplatedRecord, verified: VerifiedAssignment) -> int:
        guard = verified.assignment.guard
        return partial_event_digest(
            self._environment, guard, EVENT_NAMES[type(record)], part_of(record)
        )


def _shared_attributes(record: TemplatedRecord, verified: VerifiedAssignment) -> SharedAttributes:
    return events.PromptEvent(
        DedupeKey(0, 0),
        PromptKey("", "", 0),
        utc_day(0),
        (verified.stratum,),
        is_conforming(record),
        prompt_delta(record, 0),
        (),
        verified.assignment.generation,
    ).shared_attributes()
