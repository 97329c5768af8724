"""guardwave's own telemetry dialect: from neutral OTLP values to the domain's records."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from control_plane.ingest import contract
from control_plane.ingest.event_time import Clock, accepted_time, sender_clock
from control_plane.ingest.events import EVENTS, Reading
from control_plane.ingest.exposure import sift
from control_plane.ingest.origin import read_origin
from control_plane.ingest.otlp import LogItem, ResourceLogs, ResourceMetrics
from control_plane.ingest.points import Arrival, take_point
from control_plane.ingest.records import Exposed, LogRecord, MetricRecord, Origin
from control_plane.ingest.refused import exposed_by_event, exposed_by_point
from control_plane.ingest.rejections import IgnoreReason, Refusal, Rejected

SCOPES = frozenset({contract.SCOPE})

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decoded(Generic[R]):
    """What one body holds: records for the store, and every item that is none, with its reason.

    `exposed` are those of the rejected items that carried content. `dropped_attributes` counts
    attributes of accepted records that the contract does not know.
    """

    records: tuple[R, ...]
    rejected: tuple[Rejected, ...]
    exposed: tuple[Exposed, ...]
    ignored_by_reason: Mapping[IgnoreReason, int]
    dropped_attributes: int


class _Tally(Generic[R]):
    """Collects the fate of each item of one body."""

    def __init__(self) -> None:
        self.records: list[R] = []
        self.rejected: list[Rejected] = []
        self.exposed: list[Exposed] = []
        self.ignored: Counter[IgnoreReason] = Counter()
        self.dropped = 0

    def ignore(self, reason: IgnoreReason, count: int = 1) -> None:
        if count:
            self.ignored[reason] += count

    def refuse(self, refusal: Refusal, exposed: Exposed | None) -> None:
        self.rejected.append(refusal.rejected)
        if exposed is not None:
            self.exposed.append(exposed)

    def decoded(self) -> Decoded[R]:
        return Decoded(
            tuple(self.records),
            tuple(self.rejected),
            tuple(self.exposed),
            MappingProxyType(dict(self.ignored)),
            self.dropped,
        )


def read_logs(
    batches: Iterable[ResourceLogs],
    *,
    environment: str,
    now_ns: int,
    clock: Clock = sender_clock,
) -> Decoded[LogRecord]:
    """Read the events of scope `agent.guard`; every other scope is counted and ignored.

    `environment` is the credential's. `now_ns` is the environment's time; `clock` maps a sender's
    nanoseconds to it, before the accept window is applied. Assignment ids are not verified here.
    """
    tally: _Tally[LogRecord] = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            if scope.name != contract.SCOPE:
                tally.ignore(IgnoreReason.OTHER_SCOPE, len(scope.items))
                continue
            origin = read_origin(batch.attributes, scope.version, environment=environment)
            for item in scope.items:
                if isinstance(origin, Rejected):
                    tally.rejected.append(origin)
                elif isinstance(item, Rejected):
                    tally.rejected.append(item)
                else:
                    _take_event(item, origin, tally, now_ns=now_ns, clock=clock)
    return tally.decoded()


def _take_event(
    item: LogItem, origin: Origin, tally: _Tally[LogRecord], *, now_ns: int, clock: Clock
) -> None:
    # older SDKs have no field for the name and send it as an attribute
    name = item.event_name or item.attributes.get(contract.EVENT_NAME)
    event = EVENTS.get(name) if isinstance(name, str) else None
    if event is None:
        tally.ignore(IgnoreReason.UNKNOWN_EVENT)
        return
    try:
        happened = item.time_ns or item.observed_time_ns
        time_ns = accepted_time(happened, now_ns=now_ns, clock=clock)
        known, dropped, deny_listed = sift(item.attributes, event.allowed)
        record = event.build(Reading(origin, time_ns, known, deny_listed, item.has_body))
    except Refusal as refusal:
        tally.refuse(refusal, exposed_by_event(item, origin, event))
        return
    if record is None:
        tally.ignore(IgnoreReason.OTHER_FLAG)
        return
    tally.dropped += dropped
    tally.records.append(record)


def read_metrics(
    batches: Iterable[ResourceMetrics],
    *,
    environment: str,
    now_ns: int,
    clock: Clock = sender_clock,
) -> Decoded[MetricRecord]:
    """Read the delta points of scope `agent.guard`; environment, times and clock as for logs."""
    tally: _Tally[MetricRecord] = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            if scope.name != contract.SCOPE:
                tally.ignore(IgnoreReason.OTHER_SCOPE, len(scope.points))
                continue
            tally.ignore(IgnoreReason.NO_DATA, scope.without_data)
            origin = read_origin(batch.attributes, scope.version, environment=environment)
            if isinstance(origin, Rejected):
                tally.rejected.extend([origin] * len(scope.points))
                continue
            is_early = scope.version == contract.EARLY_SCOPE_VERSION
            arrival = Arrival(origin, now_ns, clock, is_early)
            for point in scope.points:
                if isinstance(point, Rejected):
                    tally.rejected.append(point)
                    continue
                try:
                    taken = take_point(point, arrival)
                except Refusal as refusal:
                    tally.refuse(refusal, exposed_by_point(point, origin))
                    continue
                if isinstance(taken, IgnoreReason):
                    tally.ignore(taken)
                else:
                    tally.dropped += taken.dropped
                    tally.records.append(taken.record)
    return tally.decoded()
