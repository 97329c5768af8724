"""Evidence builder: the evidence delta of each accepted record, leak or batch of records."""

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.ingest.contract import DAY_NS, utc_day
from guardwave.control_plane.ingest.evidence.delta import (
    REMEMBERED,
    UNNAMED_GUARD,
    EvidenceDelta,
    VerifiedAssignment,
    known_guard,
    owner_bucket,
    with_counters,
)
from guardwave.control_plane.ingest.evidence.points import count_point
from guardwave.control_plane.ingest.evidence.prompt_deltas import (
    PromptRecord,
    began_ns,
    is_conforming,
    prompt_delta,
)
from guardwave.control_plane.ingest.evidence.repeated_records import (
    RepeatedRecordsBuilder,
    RepeatedRecordsDelta,
)
from guardwave.control_plane.ingest.evidence.template_effects import (
    EVENT_NAMES,
    PROMPT_BOUNDS,
    part_of,
    volume_identity,
)
from guardwave.control_plane.ingest.evidence.verified_assignments import (
    AssignedRecord,
    VerifiedAssignments,
)
from guardwave.control_plane.ingest.evidence.violations import (
    broken_invariants,
    verified_violations,
    with_violations,
)
from guardwave.control_plane.ingest.model.identity import event_identity, prompt_digest
from guardwave.control_plane.ingest.model.record_templates import RepeatedRecords
from guardwave.control_plane.ingest.model.records import (
    ContentLeak,
    CounterPoint,
    DurationPoint,
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    PromptPart,
    Record,
    SessionOpened,
    Transition,
)
from guardwave.control_plane.stores.evidence.delta import request as events
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import LoopDelta, PromptKey
from guardwave.control_plane.stores.evidence.delta.prompt_parts import (
    SUMMED_PARTS,
    FinishPart,
    SpanPart,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    UNVERIFIED_VIOLATION,
    OwnerActivity,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.catalogue import GUARD_OF_LOOP
from guardwave.reducer.rollout.assignment import Assignment

ACTIVITY_KEPT = timedelta(days=16)


class EvidenceBuilder:
    """Turns records of one environment and producer into evidence."""

    def __init__(self, environment: str, tag_key: bytes, producer: str) -> None:
        self._environment = environment
        self._producer = producer
        self._assignments = VerifiedAssignments(environment, tag_key)
        self._prompt = lru_cache(REMEMBERED)(_prompt)
        self._activity = lru_cache(REMEMBERED)(self._owner_activity)
        self._repeated_records = RepeatedRecordsBuilder(
            environment,
            verify_ids=self._assignments.of_ids,
            owner_activity=self._activity,
            bucket_of=owner_bucket,
            remembered=REMEMBERED,
        )

    def build(self, record: Record) -> EvidenceDelta:
        """Return the evidence of a record.

        Raises:
            ItemRejected: an assignment id is forged, or the ids are of several owners.
        """
        match record:
            case CounterPoint() | DurationPoint():
                return self._build_point(record)
            case FlagEvaluation():
                return self._build_evaluation(record)
            case LoopDetected():
                return self._build_loop(record)
            case PromptPart() | SessionOpened():
                return self._build_part(record)
            case _:
                return self._build_event(record)

    def build_repeated(self, repeated: RepeatedRecords) -> RepeatedRecordsDelta:
        """Return the evidence of record batches; it names the records that `build` has to take."""
        return self._repeated_records.build(repeated)

    def build_leak(self, leak: ContentLeak) -> EvidenceDelta:
        """Return the violation that a rejected item with content adds; it adds no evidence."""
        event = events.RejectedEvent(DedupeKey(leak.identity, leak.time_ns // NANOSECONDS))
        assignment = self._assignments.for_guard(leak.assignment_ids, leak.guard)
        if assignment is None:
            return EvidenceDelta((with_counters(event, UNVERIFIED_VIOLATION, leak.broken),))
        found = verified_violations(leak.broken, assignment, identity=leak.identity)
        return EvidenceDelta((event,), None, found)

    def _build_event(self, record: PromptRecord) -> EvidenceDelta:
        assignments = self._assignments.of_record(record)
        if not assignments:
            guard = record.guard if isinstance(record, Transition) else UNNAMED_GUARD
            return EvidenceDelta((self._unverified(record, guard=guard),))
        assignment = assignments[0].assignment
        added = tuple([self._prompt_event(record, verified) for verified in assignments])
        activity = self._activity(
            assignment.pseudonym,
            record.origin.service_version,
            (record.time_ns // DAY_NS, isinstance(record, PROMPT_BOUNDS)),
        )
        broken = broken_invariants(record, assignment)
        if not broken:
            return EvidenceDelta(added, activity)
        found = verified_violations(broken, assignment, identity=added[0].dedupe_key.digest)
        return EvidenceDelta(added, activity, found)

    def _build_part(self, record: PromptPart | SessionOpened) -> EvidenceDelta:
        """Return the evidence of a prompt's part; a part that is summed counts for one guard."""
        assignments = self._assignments.of_record(record)
        if not assignments:
            return EvidenceDelta((self._unverified(record, guard=UNNAMED_GUARD),))
        pseudonym = assignments[0].assignment.pseudonym
        if isinstance(record, SessionOpened):
            record = replace(record, prompt_id=_session(record.prompt_id))
        elif isinstance(record.part, FinishPart | SpanPart) and record.session_id:
            session = self._prompt(pseudonym, _session(record.session_id)).suffix
            record = replace(record, part=replace(record.part, session=session))
        elif isinstance(record.part, SUMMED_PARTS):
            assignments = (min(assignments, key=lambda verified: verified.assignment.guard),)
        return EvidenceDelta(
            tuple([self._prompt_event(record, verified) for verified in assignments])
        )

    def _build_loop(self, record: LoopDetected) -> EvidenceDelta:
        """A loop is volume; for every other guard of its ids it is also evidence of the prompt."""
        assignments = self._assignments.of_record(record)
        guard = record.guard or UNNAMED_GUARD
        stopper = record.guard or GUARD_OF_LOOP.get(record.loop_type)
        if not assignments:
            return EvidenceDelta((self._unverified(record, guard=guard),))
        assignment = assignments[0].assignment
        identity = self._identity(record, assignment)
        broken = broken_invariants(record, assignment)
        found = verified_violations(broken, assignment, identity=identity)
        loops = [
            self._loop_event(record, verified)
            for verified in assignments
            if verified.assignment.guard != stopper
        ]
        return EvidenceDelta((self._volume(record, guard=guard), *loops), None, found)

    def _build_evaluation(self, record: FlagEvaluation) -> EvidenceDelta:
        """An evaluation is volume; its violations count under the ids of its Resource."""
        # only to reject a forged id
        self._assignments.of_resource(record.origin)
        volume = self._volume(record, guard=record.guard)
        broken = broken_invariants(record, None)
        ids = record.origin.assignment_ids
        assignment = self._assignments.for_guard(ids, record.guard) if broken else None
        if assignment is None:
            return EvidenceDelta((with_counters(volume, UNVERIFIED_VIOLATION, broken),))
        found = verified_violations(broken, assignment, identity=volume.dedupe_key.digest)
        return EvidenceDelta((volume,), None, found)

    def _loop_event(self, record: LoopDetected, verified: VerifiedAssignment) -> events.PromptEvent:
        assignment, stratum = verified
        return events.PromptEvent(
            dedupe_key=DedupeKey(self._identity(record, assignment), record.time_ns // NANOSECONDS),
            prompt=self._prompt(assignment.pseudonym, record.prompt_id),
            day=utc_day(record.time_ns),
            strata=(stratum,),
            is_conforming=None,
            delta=LoopDelta(),
            generation=assignment.generation,
        )

    def _prompt_event(
        self, record: PromptRecord, verified: VerifiedAssignment
    ) -> events.PromptEvent:
        assignment, stratum = verified
        began = began_ns(record)
        return events.PromptEvent(
            dedupe_key=DedupeKey(self._identity(record, assignment), record.time_ns // NANOSECONDS),
            prompt=self._prompt(assignment.pseudonym, record.prompt_id),
            day=utc_day(began),
            strata=(stratum,),
            is_conforming=is_conforming(record),
            delta=prompt_delta(record, began),
            generation=assignment.generation,
        )

    def _identity(self, record: AssignedRecord, assignment: Assignment) -> int:
        return event_identity(
            self._environment,
            assignment.guard,
            assignment.pseudonym,
            event_name=EVENT_NAMES[type(record)],
            prompt_id=record.prompt_id,
            part=part_of(record),
        )

    def _owner_activity(
        self, pseudonym: str, version: str, active_on: tuple[int, bool]
    ) -> OwnerActivity:
        day_number, is_of_prompt = active_on
        day = utc_day(day_number * DAY_NS)
        return OwnerActivity(
            pseudonym=pseudonym,
            version=version,
            producer=self._producer,
            day=day,
            oldest_kept=day - ACTIVITY_KEPT,
            is_of_prompt=is_of_prompt,
        )

    def _unverified(self, record: AssignedRecord, *, guard: str) -> events.VolumeEvent:
        """Return the volume of a record without a verified id, with its violations as counters."""
        volume = self._volume(record, guard=guard)
        return with_counters(volume, UNVERIFIED_VIOLATION, broken_invariants(record, None))

    def _volume(self, record: LogRecord, *, guard: str) -> events.VolumeEvent:
        counter = name = EVENT_NAMES[type(record)]
        mode = record.mode if isinstance(record, Transition | FlagEvaluation) else None
        if isinstance(record, Transition):
            counter = f"{name}{{decision={record.decision}}}"
        elif isinstance(record, PromptPart):
            counter = f"{name}{{part={record.part.packed()[0]}}}"
        return events.VolumeEvent(
            dedupe_key=DedupeKey(
                volume_identity(record, guard=guard, mode=mode), record.time_ns // NANOSECONDS
            ),
            day=utc_day(record.time_ns),
            stratum=Stratum(known_guard(guard), record.origin.service_version, mode=mode),
            counter=counter,
            is_conforming=is_conforming(record) if isinstance(record, PromptRecord) else None,
        )

    def _build_point(self, point: CounterPoint | DurationPoint) -> EvidenceDelta:
        event, owner = count_point(point, self._assignments.of_resource(point.origin))
        activity = None
        if owner is not None:
            activity = self._activity(
                owner.pseudonym,
                point.origin.service_version,
                (point.time_ns // DAY_NS, events.STARTED_PLACE in owner.places),
            )
        assignment = self._assignments.for_guard(point.origin.assignment_ids, point.guard)
        return with_violations(EvidenceDelta((event,), activity), point, assignment)


def _session(session_id: str) -> str:
    """Return the prompt id that stands for a session."""
    return f"session {session_id}"


def _prompt(pseudonym: str, prompt_id: str) -> PromptKey:
    suffix = prompt_digest(pseudonym, prompt_id)[0]
    return PromptKey(pseudonym, suffix, owner_bucket(pseudonym))
