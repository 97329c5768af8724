"""From neutral OTLP values to the domain's records, by whichever dialect knows them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from control_plane.ingest.dialects.dialect import Arrival, Dialect, Fate, Refused, Taken
from control_plane.ingest.dialects.registry import DIALECTS
from control_plane.ingest.event_time import Clock, sender_clock
from control_plane.ingest.forms import Forms
from control_plane.ingest.identity import (
    digest63,
    instance_digest,
    item_identity,
    origin_identity,
    resource_digest,
)
from control_plane.ingest.origin import read_origin
from control_plane.ingest.otlp import (
    Attributes,
    LogItem,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ResourceSpans,
    Span,
)
from control_plane.ingest.otlp_proto import log_item
from control_plane.ingest.records import Exposed, Record
from control_plane.ingest.rejections import IgnoreReason, Refusal, Rejected
from control_plane.ingest.wordings import Repeated, Run

Item = TypeVar("Item", bound=LogItem | Point | Span)
Read: TypeAlias = Callable[[Item, Arrival], Fate]

_DROPPED = attrgetter("dropped")
_UNKNOWN = (IgnoreReason.UNKNOWN_EVENT, IgnoreReason.UNKNOWN_METRIC)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one body holds: records for the store, and every item that is none, with its reason.

    `repeated` are records that say what earlier ones said. `exposed` are those of the rejected
    items that carried content. `dropped_attributes` counts attributes of accepted records that
    their dialect does not know.
    """

    records: tuple[Record, ...]
    repeated: tuple[Repeated, ...]
    rejected: tuple[Rejected, ...]
    exposed: tuple[Exposed, ...]
    ignored_by_reason: Mapping[IgnoreReason, int]
    dropped_attributes: int


class Receiving(NamedTuple):
    """What reading knows of the request; `environment` is the credential's.

    `now_ns` is the environment's time. `clock` maps a sender's nanoseconds to it, before the
    accept window is applied. `forms` learn from what was read.
    """

    environment: str
    now_ns: int
    clock: Clock = sender_clock
    forms: Forms | None = None


class _Tally:
    """Collects the fate of each item of one body."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.repeated: list[Repeated] = []
        self.rejected: list[Rejected] = []
        self.exposed: list[Exposed] = []
        self.ignored: Counter[IgnoreReason] = Counter()
        self.dropped = 0

    def ignore(self, reason: IgnoreReason, count: int) -> None:
        if count:
            self.ignored[reason] += count

    def count(self, fate: Fate) -> None:
        match fate:
            case Taken(records, dropped):
                self.records += records
                self.dropped += dropped
            case Refused(rejected, exposed):
                self.rejected.append(rejected)
                if exposed is not None:
                    self.exposed.append(exposed)
            case _:
                self.ignored[fate] += 1

    def decoded(self) -> Decoded:
        return Decoded(
            tuple(self.records),
            tuple(self.repeated),
            tuple(self.rejected),
            tuple(self.exposed),
            MappingProxyType(dict(self.ignored)),
            self.dropped,
        )


class _Asked(Generic[Item]):
    """The dialects of one scope, in the order in which they are asked about an item."""

    def __init__(self, reads: Sequence[Read[Item]], arrivals: Sequence[Arrival | Rejected]) -> None:
        self._asked = list(zip(reads, arrivals, strict=True))

    def count(self, items: Sequence[Item | Rejected], tally: _Tally) -> list[Fate]:
        if not self._asked:
            tally.ignore(IgnoreReason.OTHER_SCOPE, len(items))
            return []
        fates: list[Fate] = []
        for item in items:
            fate: Fate = IgnoreReason.UNKNOWN_EVENT
            for read, arrival in self._asked:
                fate = _fate(item, read, arrival)
                if not isinstance(fate, IgnoreReason) or fate not in _UNKNOWN:
                    break
            tally.count(fate)
            fates.append(fate)
        return fates


def read_logs(
    batches: Iterable[ResourceLogs], receiving: Receiving, dialects: Sequence[Dialect] = DIALECTS
) -> Decoded:
    """Read the log records of every scope that a dialect knows; the others are only counted."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            speaking = [each for each in dialects if scope.name in each.scopes.logs]
            arrivals = _arrivals(speaking, batch.attributes, scope.version, receiving)
            asked = _Asked[LogItem]([each.read_log for each in speaking], arrivals)
            if scope.runs and not _repeat(scope.runs, arrivals, tally):
                asked.count(tuple(map(log_item, scope.whole)), tally)
                continue
            fates = asked.count(scope.items, tally)
            if receiving.forms is not None:
                _learn(receiving.forms, scope.messages, fates)
    return tally.decoded()


def _repeat(runs: Sequence[Run], arrivals: Sequence[Arrival | Rejected], tally: _Tally) -> bool:
    """Take in runs, unless the first dialect of their scope, whose they are, refuses them all."""
    if not arrivals or isinstance(arrivals[0], Rejected):
        return False
    tally.repeated.append(Repeated(arrivals[0].origin, runs))
    wordings = [run.wordings for run in runs]
    # of most none drops any, and those that are told apart are few
    if any(map(_DROPPED, set(chain.from_iterable(wordings)))):
        tally.dropped += sum(map(_DROPPED, chain.from_iterable(wordings)))
    return True


def _learn(forms: Forms, messages: Sequence[bytes], fates: Sequence[Fate]) -> None:
    for message, fate in zip(messages, fates, strict=False):
        if isinstance(fate, Taken) and len(fate.records) == 1:
            forms.learn(message, fate.records[0], fate.dropped)


def read_metrics(
    batches: Iterable[ResourceMetrics],
    receiving: Receiving,
    dialects: Sequence[Dialect] = DIALECTS,
) -> Decoded:
    """Read the points of every scope that a dialect knows."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            speaking = [each for each in dialects if scope.name in each.scopes.points]
            if speaking:
                tally.ignore(IgnoreReason.NO_DATA, scope.without_data)
            arrivals = _arrivals(speaking, batch.attributes, scope.version, receiving)
            reads = [each.read_point for each in speaking]
            _Asked[Point](reads, arrivals).count(scope.points, tally)
    return tally.decoded()


def read_spans(
    batches: Iterable[ResourceSpans], receiving: Receiving, dialects: Sequence[Dialect] = DIALECTS
) -> Decoded:
    """Read the spans of every scope that a dialect knows."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            speaking = [each for each in dialects if scope.name in each.scopes.spans]
            arrivals = _arrivals(speaking, batch.attributes, scope.version, receiving)
            reads = [each.read_span for each in speaking]
            _Asked[Span](reads, arrivals).count(scope.spans, tally)
    return tally.decoded()


def _arrivals(
    dialects: Sequence[Dialect],
    resource: Attributes,
    scope_version: str,
    receiving: Receiving,
) -> list[Arrival | Rejected]:
    arrivals: list[Arrival | Rejected] = []
    for dialect in dialects:
        origin = read_origin(
            resource,
            scope_version,
            contract_version=dialect.contract_of(scope_version),
            environment=receiving.environment,
        )
        if isinstance(origin, Rejected):
            content = digest63("resource", resource_digest(resource))
            arrivals.append(replace(origin, content=content))
        else:
            arrivals.append(Arrival(origin, scope_version, receiving.now_ns, receiving.clock))
    return arrivals


def _fate(item: Item | Rejected, read: Read[Item], arrival: Arrival | Rejected) -> Fate:
    if isinstance(arrival, Rejected):
        return _told_apart(Refused(arrival), item, arrival)
    if isinstance(item, Rejected):
        return _told_apart(Refused(item), item, arrival)
    try:
        fate = read(item, arrival)
    except Refusal as refusal:
        return _told_apart(Refused(refusal.rejected), item, arrival)
    return _told_apart(fate, item, arrival) if isinstance(fate, Refused) else fate


def _told_apart(
    refused: Refused, item: LogItem | Point | Span | Rejected, arrival: Arrival | Rejected
) -> Refused:
    """Return the refusal with the version that the item came from, and what it is known by."""
    if isinstance(arrival, Rejected):
        version, instance = "", ""
        source = digest63("resource", str(arrival.content))
    else:
        origin = arrival.origin
        version, instance = origin.service_version, instance_digest(origin.instance_id)
        source = origin_identity(origin)
    content = None if isinstance(item, Rejected) else item_identity(item, source)
    rejected = replace(refused.rejected, version=version, content=content, instance=instance)
    return refused._replace(rejected=rejected)
