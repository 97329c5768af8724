"""Reading: from neutral OTLP values to the domain's records, by the dialect that knows them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from guardwave.control_plane.ingest.contract import Clock, read_origin, sender_clock
from guardwave.control_plane.ingest.decode.protobuf import log_item
from guardwave.control_plane.ingest.dialects import (
    DIALECTS,
    Accepted,
    Dialect,
    ItemContext,
    ReadResult,
)
from guardwave.control_plane.ingest.fast_path import LayoutCache
from guardwave.control_plane.ingest.model.identity import (
    digest63,
    instance_digest,
    item_identity,
    origin_identity,
    resource_digest,
)
from guardwave.control_plane.ingest.model.otlp_values import (
    Attributes,
    LogItem,
    Point,
    ResourceLogs,
    ResourceMetrics,
    ResourceSpans,
    Span,
)
from guardwave.control_plane.ingest.model.record_templates import RecordBatch, RepeatedRecords
from guardwave.control_plane.ingest.model.records import Record
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, ItemRejected, Rejection

Item = TypeVar("Item", bound=LogItem | Point | Span)
Read: TypeAlias = Callable[[Item, ItemContext], ReadResult]

_DROPPED = attrgetter("dropped")
_UNKNOWN = (IgnoreReason.UNKNOWN_EVENT, IgnoreReason.UNKNOWN_METRIC)


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """Content of one body: records for the store, and a rejection for every other item.

    `repeated` are records of known templates. `dropped_attributes` counts attributes of accepted
    records that their dialect does not know.
    """

    records: tuple[Record, ...]
    repeated: tuple[RepeatedRecords, ...]
    rejected: tuple[Rejection, ...]
    ignored_by_reason: Mapping[IgnoreReason, int]
    dropped_attributes: int


class RequestContext(NamedTuple):
    """Facts about a request that reading needs; `environment` is the credential's.

    `now_ns` is the environment's time. `clock` maps a sender's nanoseconds to it, before the
    accept window is applied. `layout_cache` takes the layouts of records that were read.
    """

    environment: str
    now_ns: int
    clock: Clock = sender_clock
    layout_cache: LayoutCache | None = None


class _Tally:
    """Collects the result of each item of one body."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.repeated: list[RepeatedRecords] = []
        self.rejected: list[Rejection] = []
        self.ignored: Counter[IgnoreReason] = Counter()
        self.dropped = 0

    def ignore(self, reason: IgnoreReason, count: int) -> None:
        if count:
            self.ignored[reason] += count

    def count(self, result: ReadResult) -> None:
        match result:
            case Accepted(records, dropped):
                self.records += records
                self.dropped += dropped
            case Rejection():
                self.rejected.append(result)
            case _:
                self.ignored[result] += 1

    def decoded(self) -> DecodedRequest:
        return DecodedRequest(
            tuple(self.records),
            tuple(self.repeated),
            tuple(self.rejected),
            MappingProxyType(dict(self.ignored)),
            self.dropped,
        )


class _DialectChain(Generic[Item]):
    """The dialects of one scope; an item goes to the first that knows it."""

    def __init__(
        self, reads: Sequence[Read[Item]], contexts: Sequence[ItemContext | Rejection]
    ) -> None:
        self._chain = list(zip(reads, contexts, strict=True))

    def count(self, items: Sequence[Item | Rejection], tally: _Tally) -> list[ReadResult]:
        if not self._chain:
            tally.ignore(IgnoreReason.OTHER_SCOPE, len(items))
            return []
        results: list[ReadResult] = []
        for item in items:
            result: ReadResult = IgnoreReason.UNKNOWN_EVENT
            for read, context in self._chain:
                result = _read_item(item, read, context)
                if not isinstance(result, IgnoreReason) or result not in _UNKNOWN:
                    break
            tally.count(result)
            results.append(result)
        return results


def read_logs(
    batches: Iterable[ResourceLogs], request: RequestContext, dialects: Sequence[Dialect] = DIALECTS
) -> DecodedRequest:
    """Read the log records of every scope that a dialect knows; the others are only counted."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            matching = [dialect for dialect in dialects if scope.name in dialect.scopes.logs]
            contexts = _contexts(matching, batch.attributes, scope.version, request)
            reads = [dialect.read_log for dialect in matching]
            dialect_chain = _DialectChain[LogItem](reads, contexts)
            if scope.record_batches and not _accept(scope.record_batches, contexts, tally):
                dialect_chain.count(tuple(map(log_item, scope.all_messages)), tally)
                continue
            results = dialect_chain.count(scope.items, tally)
            if request.layout_cache is not None:
                _add_layouts(request.layout_cache, scope.messages, results)
    return tally.decoded()


def _accept(
    record_batches: Sequence[RecordBatch],
    contexts: Sequence[ItemContext | Rejection],
    tally: _Tally,
) -> bool:
    """Accept batches for the first dialect of their scope; False when it rejects their Resource."""
    if not contexts or isinstance(contexts[0], Rejection):
        return False
    tally.repeated.append(RepeatedRecords(contexts[0].origin, record_batches))
    templates = [batch.templates for batch in record_batches]
    # Few templates are distinct and fewer drop anything: look at those before summing over records.
    if any(map(_DROPPED, set(chain.from_iterable(templates)))):
        tally.dropped += sum(map(_DROPPED, chain.from_iterable(templates)))
    return True


def _add_layouts(
    layout_cache: LayoutCache, messages: Sequence[bytes], results: Sequence[ReadResult]
) -> None:
    for message, result in zip(messages, results, strict=False):
        if isinstance(result, Accepted) and len(result.records) == 1:
            layout_cache.add(message, result.records[0], result.dropped)


def read_metrics(
    batches: Iterable[ResourceMetrics],
    request: RequestContext,
    dialects: Sequence[Dialect] = DIALECTS,
) -> DecodedRequest:
    """Read the points of every scope that a dialect knows."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            matching = [dialect for dialect in dialects if scope.name in dialect.scopes.points]
            if matching:
                tally.ignore(IgnoreReason.NO_DATA, scope.without_data)
            contexts = _contexts(matching, batch.attributes, scope.version, request)
            reads = [dialect.read_point for dialect in matching]
            _DialectChain[Point](reads, contexts).count(scope.points, tally)
    return tally.decoded()


def read_spans(
    batches: Iterable[ResourceSpans],
    request: RequestContext,
    dialects: Sequence[Dialect] = DIALECTS,
) -> DecodedRequest:
    """Read the spans of every scope that a dialect knows."""
    tally = _Tally()
    for batch in batches:
        for scope in batch.scopes:
            tally.ignore(IgnoreReason.OTHER_SCOPE, scope.skipped)
            matching = [dialect for dialect in dialects if scope.name in dialect.scopes.spans]
            contexts = _contexts(matching, batch.attributes, scope.version, request)
            reads = [dialect.read_span for dialect in matching]
            _DialectChain[Span](reads, contexts).count(scope.spans, tally)
    return tally.decoded()


def _contexts(
    dialects: Sequence[Dialect],
    resource: Attributes,
    scope_version: str,
    request: RequestContext,
) -> list[ItemContext | Rejection]:
    contexts: list[ItemContext | Rejection] = []
    for dialect in dialects:
        origin = read_origin(
            resource,
            scope_version,
            contract_version=dialect.contract_of(scope_version),
            environment=request.environment,
        )
        if isinstance(origin, Rejection):
            content = digest63("resource", resource_digest(resource))
            contexts.append(replace(origin, content=content))
        else:
            contexts.append(ItemContext(origin, scope_version, request.now_ns, request.clock))
    return contexts


def _read_item(
    item: Item | Rejection, read: Read[Item], context: ItemContext | Rejection
) -> ReadResult:
    if isinstance(context, Rejection):
        return _with_identity(context, item, context)
    if isinstance(item, Rejection):
        return _with_identity(item, item, context)
    try:
        result = read(item, context)
    except ItemRejected as error:
        return _with_identity(error.rejection, item, context)
    return _with_identity(result, item, context) if isinstance(result, Rejection) else result


def _with_identity(
    rejection: Rejection,
    item: LogItem | Point | Span | Rejection,
    context: ItemContext | Rejection,
) -> Rejection:
    """Return the rejection with its sender's version and the digests that identify it."""
    if isinstance(context, Rejection):
        version, instance = "", ""
        source = digest63("resource", str(context.content))
    else:
        origin = context.origin
        version, instance = origin.service_version, instance_digest(origin.instance_id)
        source = origin_identity(origin)
    content = None if isinstance(item, Rejection) else item_identity(item, source)
    return replace(rejection, version=version, content=content, instance=instance)
