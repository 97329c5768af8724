"""From accepted records to evidence: cells found, events made, violations named."""

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from control_plane.clock import NANOSECONDS
from control_plane.ingest.booked import (
    REMEMBERED,
    UNNAMED_GUARD,
    Backing,
    Booked,
    counting,
    known_guard,
    owner_bucket,
)
from control_plane.ingest.event_time import DAY_NS, utc_day
from control_plane.ingest.identity import event_identity, prompt_digest
from control_plane.ingest.news_of_records import PromptRecord, began_ns, is_conforming, news_of
from control_plane.ingest.point_evidence import counted_point
from control_plane.ingest.point_violations import with_violations
from control_plane.ingest.records import (
    CounterPoint,
    DurationPoint,
    Exposed,
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    PromptPart,
    Record,
    SessionOpened,
    Transition,
)
from control_plane.ingest.repetitions import Rebooked, Repetitions
from control_plane.ingest.violations import broken_by, vouched
from control_plane.ingest.vouching import VouchedRecord, Vouching
from control_plane.ingest.wording_effects import BOUNDS, NAMES, part_of, volume_identity
from control_plane.ingest.wordings import Repeated
from control_plane.stores import evidence_events as events
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import UNVOUCHED_VIOLATION, Sighting
from control_plane.stores.evidence_parts import ADDED_UP, Closed, Finished
from control_plane.stores.prompt_events import PromptKey
from control_plane.stores.prompt_news import Looped
from control_plane.stores.seen import Seen
from reducer.catalogue import GUARD_OF_LOOP
from reducer.rollout.assignment import Assignment

SIGHTINGS_KEPT = timedelta(days=16)


class Bookkeeper:
    """Turns records of one environment and producer into evidence."""

    def __init__(self, environment: str, tag_key: bytes, producer: str) -> None:
        self._environment = environment
        self._producer = producer
        self._vouching = Vouching(environment, tag_key)
        self._prompt = lru_cache(REMEMBERED)(_prompt)
        self._sighting = lru_cache(REMEMBERED)(self._sighted)
        self._repetitions = Repetitions(
            environment,
            vouch=self._vouching.of_ids,
            sighting=self._sighting,
            bucket_of=owner_bucket,
            remembered=REMEMBERED,
        )

    def book(self, record: Record) -> Booked:
        """Return what the record adds.

        Raises:
            Refusal: an assignment id is forged, or the ids are of several owners.
        """
        match record:
            case CounterPoint() | DurationPoint():
                return self._book_point(record)
            case FlagEvaluation():
                return self._book_evaluation(record)
            case LoopDetected():
                return self._book_loop(record)
            case PromptPart() | SessionOpened():
                return self._book_part(record)
            case _:
                return self._book_event(record)

    def book_runs(self, repeated: Repeated) -> Rebooked:
        """Return what the records of runs add; those that are left are to be booked alone."""
        return self._repetitions.book(repeated)

    def expose(self, item: Exposed) -> Booked:
        """Return what a refused item with content adds: a violation, and no evidence."""
        event = events.RefusedEvent(Seen(item.identity, item.time_ns // NANOSECONDS))
        assigned = self._vouching.behind(item.assignment_ids, item.guard)
        if assigned is None:
            return Booked((counting(event, UNVOUCHED_VIOLATION, item.broken),))
        return Booked((event,), None, vouched(item.broken, assigned, identity=item.identity))

    def _book_event(self, record: PromptRecord) -> Booked:
        backing = self._vouching.of_record(record)
        if not backing:
            guard = record.guard if isinstance(record, Transition) else UNNAMED_GUARD
            return Booked((self._unvouched(record, guard=guard),))
        assigned = backing[0].assigned
        booked = tuple([self._prompt_event(record, each) for each in backing])
        sighting = self._sighting(
            assigned.pseudonym,
            record.origin.service_version,
            (record.time_ns // DAY_NS, isinstance(record, BOUNDS)),
        )
        broken = broken_by(record, assigned)
        if not broken:
            return Booked(booked, sighting)
        found = vouched(broken, assigned, identity=booked[0].seen.digest)
        return Booked(booked, sighting, found)

    def _book_part(self, record: PromptPart | SessionOpened) -> Booked:
        """Return what a part of a prompt adds; what adds up counts once, whatever the guards."""
        backing = self._vouching.of_record(record)
        if not backing:
            return Booked((self._unvouched(record, guard=UNNAMED_GUARD),))
        pseudonym = backing[0].assigned.pseudonym
        if isinstance(record, SessionOpened):
            record = replace(record, prompt_id=_session(record.prompt_id))
        elif isinstance(record.part, Finished | Closed) and record.session_id:
            session = self._prompt(pseudonym, _session(record.session_id)).suffix
            record = replace(record, part=replace(record.part, session=session))
        elif isinstance(record.part, ADDED_UP):
            backing = (min(backing, key=lambda each: each.assigned.guard),)
        return Booked(tuple([self._prompt_event(record, each) for each in backing]))

    def _book_loop(self, record: LoopDetected) -> Booked:
        """A loop is volume; to every other guard of its ids it is evidence of the prompt, too."""
        backing = self._vouching.of_record(record)
        guard = record.guard or UNNAMED_GUARD
        stopper = record.guard or GUARD_OF_LOOP.get(record.loop_type)
        if not backing:
            return Booked((self._unvouched(record, guard=guard),))
        assigned = backing[0].assigned
        found = vouched(
            broken_by(record, assigned), assigned, identity=self._identity(record, assigned)
        )
        looped = [self._looped(record, each) for each in backing if each.assigned.guard != stopper]
        return Booked((self._volume(record, guard=guard), *looped), None, found)

    def _book_evaluation(self, record: FlagEvaluation) -> Booked:
        """An evaluation is volume; ids of its Resource vouch for what it violates."""
        # what they vouch for is of no use here, but a forged one is refused
        self._vouching.of_resource(record.origin)
        volume = self._volume(record, guard=record.guard)
        broken = broken_by(record, None)
        assigned = (
            self._vouching.behind(record.origin.assignment_ids, record.guard) if broken else None
        )
        if assigned is None:
            return Booked((counting(volume, UNVOUCHED_VIOLATION, broken),))
        return Booked((volume,), None, vouched(broken, assigned, identity=volume.seen.digest))

    def _looped(self, record: LoopDetected, backing: Backing) -> events.PromptEvent:
        assigned, cell = backing
        return events.PromptEvent(
            seen=Seen(self._identity(record, assigned), record.time_ns // NANOSECONDS),
            prompt=self._prompt(assigned.pseudonym, record.prompt_id),
            day=utc_day(record.time_ns),
            cells=(cell,),
            is_conforming=None,
            news=Looped(),
            generation=assigned.generation,
        )

    def _prompt_event(self, record: PromptRecord, backing: Backing) -> events.PromptEvent:
        assigned, cell = backing
        began = began_ns(record)
        return events.PromptEvent(
            seen=Seen(self._identity(record, assigned), record.time_ns // NANOSECONDS),
            prompt=self._prompt(assigned.pseudonym, record.prompt_id),
            day=utc_day(began),
            cells=(cell,),
            is_conforming=is_conforming(record),
            news=news_of(record, began),
            generation=assigned.generation,
        )

    def _identity(self, record: VouchedRecord, assigned: Assignment) -> int:
        return event_identity(
            self._environment,
            assigned.guard,
            assigned.pseudonym,
            event_name=_name(record),
            prompt_id=record.prompt_id,
            part=part_of(record),
        )

    def _sighted(self, pseudonym: str, version: str, shown: tuple[int, bool]) -> Sighting:
        day_number, is_of_prompt = shown
        day = utc_day(day_number * DAY_NS)
        return Sighting(
            pseudonym=pseudonym,
            version=version,
            producer=self._producer,
            day=day,
            oldest_kept=day - SIGHTINGS_KEPT,
            is_of_prompt=is_of_prompt,
        )

    def _unvouched(self, record: VouchedRecord, *, guard: str) -> events.VolumeEvent:
        """Return a record that no id vouches for: volume, and its violations as counts."""
        volume = self._volume(record, guard=guard)
        return counting(volume, UNVOUCHED_VIOLATION, broken_by(record, None))

    def _volume(self, record: LogRecord, *, guard: str) -> events.VolumeEvent:
        name = _name(record)
        mode = record.mode if isinstance(record, Transition | FlagEvaluation) else None
        counter = name
        if isinstance(record, Transition):
            counter = f"{name}{{decision={record.decision}}}"
        elif isinstance(record, PromptPart):
            counter = f"{name}{{part={record.part.packed()[0]}}}"
        return events.VolumeEvent(
            seen=Seen(
                volume_identity(record, guard=guard, mode=mode), record.time_ns // NANOSECONDS
            ),
            day=utc_day(record.time_ns),
            cell=Cell(known_guard(guard), record.origin.service_version, mode=mode),
            counter=counter,
            is_conforming=is_conforming(record) if isinstance(record, PromptRecord) else None,
        )

    def _book_point(self, point: CounterPoint | DurationPoint) -> Booked:
        event, owner = counted_point(point, self._vouching.of_resource(point.origin))
        sighting = None
        if owner is not None:
            sighting = self._sighting(
                owner.pseudonym,
                point.origin.service_version,
                (point.time_ns // DAY_NS, events.STARTED_PLACE in owner.places),
            )
        assigned = self._vouching.behind(point.origin.assignment_ids, point.guard)
        return with_violations(Booked((event,), sighting), point, assigned)


def _session(session_id: str) -> str:
    """Return what stands for a session in the place of a prompt id."""
    return f"session {session_id}"


def _name(record: LogRecord) -> str:
    return NAMES[type(record)]


def _prompt(pseudonym: str, prompt_id: str) -> PromptKey:
    suffix = prompt_digest(pseudonym, prompt_id)[0]
    return PromptKey(pseudonym, suffix, owner_bucket(pseudonym))
