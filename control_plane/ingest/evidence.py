"""From accepted records to evidence: ids verified, cells found, violations named."""

import math
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import TypeAlias

from control_plane.clock import NANOSECONDS, from_ns
from control_plane.commands.rollback import FoundViolation
from control_plane.ingest.identity import digest63, event_identity
from control_plane.ingest.records import (
    CounterPoint,
    DurationPoint,
    FlagEvaluation,
    LogRecord,
    LoopDetected,
    MetricRecord,
    PromptDisruption,
    PromptEnd,
    PromptEvent,
    PromptStart,
    Transition,
)
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.stores import evidence_events as events
from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import Sighting
from reducer.catalogue import CATALOGUE
from reducer.rollout.assignment import Assignment, Forged, verify
from reducer.rollout.invariants import TransitionFacts, immediate_violations
from reducer.rollout.pseudonym import pack
from reducer.vocabulary import Decision, Invariant, ResetReason

# Base-2 exponential buckets of scale 7: 128 for each doubling, a ratio of 1.0054.
BUCKETS_PER_DOUBLING = 128
SHORTEST_SECONDS = 0.001
SIGHTINGS_KEPT = timedelta(days=16)
UNNAMED_GUARD = "unnamed"
VIOLATIONS = "agent.guard.violations"

PromptRecord: TypeAlias = PromptStart | PromptEnd | PromptDisruption | Transition
VouchedRecord: TypeAlias = PromptRecord | LoopDetected

_NAMES: dict[type[LogRecord], str] = {
    PromptStart: "agent.guard.prompt.start",
    PromptEnd: "agent.guard.prompt.end",
    PromptDisruption: "agent.guard.prompt.disruption",
    Transition: "agent.guard.transition",
    LoopDetected: "agent.guard.loop_detected",
    FlagEvaluation: "feature_flag.evaluation",
}
_STOPS = frozenset({Decision.STOPPED, Decision.SUSPENDED})
_WOULD_STOP = frozenset({Decision.WOULD_STOP, Decision.WOULD_SUSPEND})


@dataclass(frozen=True, slots=True)
class Vouched:
    """A record whose assignment ids are ours: one assignment for each guard it is about."""

    assignments: tuple[Assignment, ...]

    @property
    def pseudonym(self) -> str:
        """The owner of all of them."""
        return self.assignments[0].pseudonym


@dataclass(frozen=True, slots=True)
class Booked:
    """What one record adds: events, the owner's sighting, and the invariants it violates.

    A record about several guards adds one event for each, with an identity of its own.
    """

    events: tuple[events.Event, ...]
    sighting: Sighting | None = None
    violations: tuple[FoundViolation, ...] = ()


class Bookkeeper:
    """Turns records of one environment and producer into evidence."""

    def __init__(self, environment: str, tag_key: bytes, producer: str) -> None:
        self._environment = environment
        self._producer = producer
        self._verify = lru_cache(maxsize=4096)(lambda text: verify(tag_key, environment, text))

    def book(self, record: LogRecord | MetricRecord) -> Booked:
        """Return what the record adds.

        Raises:
            Refusal: an assignment id is forged, or the ids are of several owners.
        """
        match record:
            case CounterPoint() | DurationPoint():
                return self._book_point(record)
            case FlagEvaluation():
                return Booked((self._volume(record, guard=record.guard),))
            case LoopDetected():
                return self._book_loop(record)
            case _:
                return self._book_event(record)

    def _book_event(self, record: PromptRecord) -> Booked:
        vouched = self._vouch(record)
        guard = record.guard if isinstance(record, Transition) else None
        if vouched is None:
            return Booked((self._volume(record, guard=guard or UNNAMED_GUARD),))
        booked = tuple(self._prompt_event(record, each) for each in vouched.assignments)
        sighting = self._sighting(record, vouched.pseudonym)
        return Booked(booked, sighting, self._violations(record, vouched.assignments[0]))

    def _book_loop(self, record: LoopDetected) -> Booked:
        """A loop is volume; its id is only looked at for what a violation needs."""
        vouched = self._vouch(record)
        volume = self._volume(record, guard=record.guard or UNNAMED_GUARD)
        found = () if vouched is None else self._violations(record, vouched.assignments[0])
        return Booked((volume,), None, found)

    def _prompt_event(self, record: PromptRecord, assigned: Assignment) -> events.PromptEvent:
        cell = Cell(
            assigned.guard,
            record.origin.service_version,
            assigned.wave,
            assigned.cohort,
            assigned.mode,
        )
        return events.PromptEvent(
            seen=events.Seen(self._identity(record, assigned), record.time_ns // NANOSECONDS),
            prompt=self._prompt(assigned.pseudonym, record.prompt_id),
            day=_booked_day(record),
            cells=(cell,),
            is_conforming=_is_conforming(record),
            news=_news(record),
        )

    def _vouch(self, record: VouchedRecord) -> Vouched | None:
        """Return the assignments behind a record; None when nothing vouches for it."""
        found: list[Assignment] = []
        for text in record.assignment_ids:
            verified = self._verify(text)
            if isinstance(verified, Forged):
                raise Refusal(
                    RejectReason.FORGED_ASSIGNMENT,
                    f"agent.guard.assignment.id is not one this environment issued: "
                    f"{verified.reason}",
                )
            found.append(verified)
        if isinstance(record, Transition):
            found = [each for each in found if each.guard == record.guard]
        if not found:
            return None
        if len({each.pseudonym for each in found}) > 1:
            raise Refusal(
                RejectReason.BAD_ATTRIBUTE,
                "agent.guard.assignment.id names several owners; a prompt has one",
            )
        return Vouched(tuple({each.guard: each for each in found}.values()))

    def _identity(self, record: VouchedRecord, assigned: Assignment) -> int:
        match record:
            case Transition():
                part = str(record.sequence)
            case PromptDisruption():
                part = str(record.kind)
            case LoopDetected():
                part = f"{record.loop_type} {record.time_ns}"
            case _:
                part = ""
        return event_identity(
            self._environment,
            assigned.guard,
            assigned.pseudonym,
            event_name=_name(record),
            prompt_id=record.prompt_id,
            part=part,
        )

    def _prompt(self, pseudonym: str, prompt_id: str) -> events.PromptKey:
        digest = digest63("prompt", pseudonym, prompt_id)
        return events.PromptKey(pseudonym, f"{digest & (2**64 - 1):016x}", pack(pseudonym)[0])

    def _sighting(self, record: PromptRecord, pseudonym: str) -> Sighting:
        day = from_ns(record.time_ns).date()
        return Sighting(
            pseudonym=pseudonym,
            version=record.origin.service_version,
            producer=self._producer,
            day=day,
            oldest_kept=day - SIGHTINGS_KEPT,
            is_of_prompt=isinstance(record, PromptStart | PromptEnd),
        )

    def _violations(
        self, record: VouchedRecord, assigned: Assignment
    ) -> tuple[FoundViolation, ...]:
        digest = self._identity(record, assigned)
        if isinstance(record, Transition):
            found = immediate_violations(
                _facts(record, assigned), declares=_declared(assigned.guard)
            )
        elif record.has_body or record.deny_listed:
            found = (Invariant.SENSITIVE_FIELD,)
        else:
            found = ()
        return tuple(
            FoundViolation(
                identity=f"{digest}:{invariant}",
                invariant=invariant,
                guard=assigned.guard,
                mode=assigned.mode,
                generation=assigned.generation,
            )
            for invariant in found
        )

    def _volume(self, record: LogRecord, *, guard: str) -> events.VolumeEvent:
        name = _name(record)
        prompt = record.prompt_id if isinstance(record, PromptEvent) else ""
        part = str(record.sequence) if isinstance(record, Transition) else ""
        digest = digest63(
            "volume", self._environment, guard, name, prompt, part, str(record.time_ns)
        )
        counter = (
            f"{name}{{decision={record.decision}}}" if isinstance(record, Transition) else name
        )
        mode = record.mode if isinstance(record, Transition | FlagEvaluation) else None
        return events.VolumeEvent(
            seen=events.Seen(digest, record.time_ns // NANOSECONDS),
            day=from_ns(record.time_ns).date(),
            cell=Cell(guard, record.origin.service_version, mode=mode),
            counter=counter,
            is_conforming=_is_conforming(record) if isinstance(record, PromptRecord) else None,
        )

    def _book_point(self, point: CounterPoint | DurationPoint) -> Booked:
        labels = point.labels if isinstance(point, CounterPoint) else ()
        shown = ",".join(f"{key}={value}" for key, value in labels)
        event = events.VolumeEvent(
            seen=events.Seen(point.identity, point.time_ns // NANOSECONDS),
            # A point tells of the interval before its time: midnight belongs to the day before.
            day=from_ns(point.time_ns - 1).date(),
            cell=Cell(point.guard or UNNAMED_GUARD, point.origin.service_version, mode=point.mode),
            counter=f"{point.metric}{{{shown}}}" if shown else point.metric,
            by=point.value if isinstance(point, CounterPoint) else point.count,
        )
        return Booked((event,), None, self._point_violations(point))

    def _point_violations(self, point: CounterPoint | DurationPoint) -> tuple[FoundViolation, ...]:
        """A point is vouched for by the assignment ids of its Resource alone."""
        found = _shown_by(point)
        if not found:
            return ()
        verified = (self._verify(text) for text in point.origin.assignment_ids)
        vouched = [each for each in verified if isinstance(each, Assignment)]
        # The guard that the point is about, where the process has an id for it.
        vouched.sort(key=lambda each: each.guard != point.guard)
        return tuple(
            FoundViolation(
                identity=f"{point.identity}:{invariant}",
                invariant=invariant,
                guard=assigned.guard,
                mode=assigned.mode,
                generation=assigned.generation,
            )
            for assigned in vouched[:1]
            for invariant in found
        )


def duration_bucket(seconds: float | None) -> int | None:
    """Return the base-2 exponential bucket b at scale 7: (2^(b/128), 2^((b+1)/128)] seconds.

    The bucket rule is OpenTelemetry's (data model, ExponentialHistogram). A duration below a
    millisecond counts as one; None stays None.
    """
    if seconds is None:
        return None
    return math.ceil(math.log2(max(seconds, SHORTEST_SECONDS)) * BUCKETS_PER_DOUBLING) - 1


def _name(record: LogRecord) -> str:
    return _NAMES[type(record)]


def _booked_ns(record: PromptRecord) -> int:
    """Return when the prompt began, as far as this record tells."""
    if isinstance(record, PromptEnd):
        return record.time_ns - int((record.duration_seconds or 0) * NANOSECONDS)
    return record.time_ns


def _booked_day(record: PromptRecord) -> date:
    return from_ns(_booked_ns(record)).date()


def _news(record: PromptRecord) -> events.PromptNews:
    match record:
        case PromptStart():
            return events.Started(from_ns(record.time_ns).hour)
        case PromptEnd():
            return events.Ended(
                outcome=record.outcome,
                # Each was checked alone; the store's sums end at the same number.
                tokens=min((record.input_tokens or 0) + (record.output_tokens or 0), events.MOST),
                turns=record.turns or 0,
                duration_bucket=duration_bucket(record.duration_seconds),
                transitions=record.transitions,
                calls_after_would_stop=record.calls_after_would_stop or 0,
                hour=from_ns(_booked_ns(record)).hour,
            )
        case Transition():
            return events.Transitioned(
                sequence=record.sequence,
                is_would_stop=record.decision in _WOULD_STOP,
                is_stop=record.decision in _STOPS,
                is_unreliable_input=record.reset_reason is ResetReason.UNRELIABLE_INPUT,
            )
        case _:
            return events.Disrupted()


def _is_conforming(record: PromptRecord) -> bool:
    """Whether the record reports what the gate needs of its kind (the contract check)."""
    match record:
        case Transition():
            is_about_a_call = record.decision is not Decision.RESET
            return record.execution_status is not None or not is_about_a_call
        case PromptEnd():
            reported = (
                record.duration_seconds,
                record.turns,
                record.transitions,
                record.input_tokens,
                record.output_tokens,
            )
            return all(value is not None for value in reported)
        case _:
            return True


def _shown_by(point: CounterPoint | DurationPoint) -> tuple[Invariant, ...]:
    """Return the invariants that a point violates itself, and those that it reports by count."""
    shown = (Invariant.SENSITIVE_FIELD,) if point.deny_listed else ()
    if not isinstance(point, CounterPoint) or point.metric != VIOLATIONS or point.value == 0:
        return shown
    reported = (Invariant(word) for key, word in point.labels if key == "invariant")
    return tuple(dict.fromkeys((*shown, *reported)))


def _facts(record: Transition, assigned: Assignment) -> TransitionFacts:
    return TransitionFacts(
        decision=record.decision,
        mode=record.mode,
        assigned_mode=assigned.mode,
        reset_reason=record.reset_reason,
        terminal_status=record.terminal_status,
        execution_status=record.execution_status,
        batch_complete=record.batch_complete,
        deny_listed=record.deny_listed,
        has_body=record.has_body,
    )


def _declared(guard: str) -> frozenset[Invariant]:
    entry = CATALOGUE.get(guard)
    return frozenset() if entry is None else entry.declares
