"""Intake of one request's records: violations first, then evidence, then the answer."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from guardwave.control_plane.commands.rollback import latch
from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.core.errors import NotFound, StoreUnavailable
from guardwave.control_plane.ingest.evidence import (
    EvidenceBuilder,
    EvidenceDelta,
    group_rejections,
    leak_of_record,
    record_identity,
)
from guardwave.control_plane.ingest.fast_path import LayoutCache, LayoutMatcher
from guardwave.control_plane.ingest.model.otlp_values import (
    ResourceLogs,
    ResourceMetrics,
    ResourceSpans,
)
from guardwave.control_plane.ingest.model.records import Record
from guardwave.control_plane.ingest.model.rejections import (
    ItemRejected,
    Rejection,
    RejectReason,
    reject,
)
from guardwave.control_plane.ingest.reading import (
    DecodedRequest,
    RequestContext,
    read_logs,
    read_metrics,
    read_spans,
)
from guardwave.control_plane.rollouts.access import Identity
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.delta.points import (
    MOST_STREAMS_OF_7_DAYS,
    MOST_STREAMS_OF_48_HOURS,
)
from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptEvents
from guardwave.control_plane.stores.evidence.delta.request import (
    Event,
    EvidenceBatch,
    OwnerActivity,
    RejectedItems,
)
from guardwave.control_plane.stores.evidence.intake_health import WEAK_IDENTITY
from guardwave.control_plane.stores.evidence.store import WriteResult

# 500 of the dearest events, of prompts that guards have stopped often already, take 100 ms.
WRITE_BATCH_EVENTS = 500

Addition: TypeAlias = tuple[Sequence[Event], Sequence[OwnerActivity]]


class WriteBatch(NamedTuple):
    """Events of one write, in the order in which they were built, and their owners' activity."""

    events: tuple[Event, ...]
    activity: frozenset[OwnerActivity]


def write_batches(
    additions: Iterable[Addition], *, most: int = WRITE_BATCH_EVENTS
) -> Iterator[WriteBatch]:
    """Yield the batch of each write; at least one, even of nothing.

    An addition stays together, so a batch holds fewer than `most` events and its last addition;
    only a prompt with more events is split. An owner's activity goes with the first of its
    events: the store never learns of it after the events themselves.
    """
    events: list[Event] = []
    # Mostly the same objects come again, and an id is cheaper than a hash.
    active: dict[int, OwnerActivity] = {}
    written: set[OwnerActivity] = set()
    count = 0
    for added, activity in _split(additions, most):
        if count >= most:
            owners = frozenset(active.values())
            yield WriteBatch(tuple(events), owners - written)
            written |= owners
            events, active, count = [], {}, 0
        events += added
        for owner_activity in activity:
            active[id(owner_activity)] = owner_activity
        for event in added:
            count += len(event.shared) if isinstance(event, PromptEvents) else 1
    yield WriteBatch(tuple(events), frozenset(active.values()) - written)


def _split(additions: Iterable[Addition], most: int) -> Iterator[Addition]:
    """Yield the additions, a prompt with too many events in pieces."""
    for added, activity in additions:
        event = added[0] if len(added) == 1 else None
        if isinstance(event, PromptEvents) and len(event.shared) > most:
            for piece in event.split(most):
                yield (piece,), activity
        else:
            yield added, activity


# Exporters wait 10 s for an answer; a write after that is in vain.
WRITE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """Result of a request: the number of accepted items, and the rejections."""

    accepted: int
    rejected: tuple[Rejection, ...]


class Intake:
    """The way of telemetry into one control plane, shared by the threads of a web worker."""

    def __init__(self, context: Context, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._context = context
        self._write_seconds = write_seconds
        self._builders: dict[tuple[str, str], EvidenceBuilder] = {}
        self._layout_cache = LayoutCache()

    def layouts(self) -> LayoutMatcher:
        """Return the layouts of earlier log records, for the decoder of protobuf bodies."""
        clock = self._context.clock
        return LayoutMatcher(self._layout_cache, clock.now_ns(), clock.moment_ns)

    def receive_logs(
        self, batches: Iterable[ResourceLogs], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the events of one request body.

        Raises:
            StoreUnavailable: the store is away, or too busy to take all of it in time; the request
                may be sent again as it is.
        """
        return self._receive(read_logs(batches, self._request_context(sender)), sender, body)

    def receive_metrics(
        self, batches: Iterable[ResourceMetrics], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the points of one request body; errors as for logs."""
        return self._receive(read_metrics(batches, self._request_context(sender)), sender, body)

    def receive_spans(
        self, batches: Iterable[ResourceSpans], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the spans of one request body; errors as for logs."""
        return self._receive(read_spans(batches, self._request_context(sender)), sender, body)

    def _request_context(self, sender: Identity) -> RequestContext:
        clock = self._context.clock
        return RequestContext(
            _environment_of(sender), clock.now_ns(), clock.moment_ns, self._layout_cache
        )

    def _receive(self, request: DecodedRequest, sender: Identity, body: bytes) -> Receipt:
        environment = _environment_of(sender)
        builder = self._builder(sender)
        repeated = [builder.build_repeated(records) for records in request.repeated]
        remaining = [record for built in repeated for record in built.remaining]
        deltas, unbuilt = _build(builder, (*remaining, *request.records))
        accepted = (
            len(deltas) + sum([records.size for records in request.repeated]) - len(remaining)
        )
        rejected = (*request.rejected, *unbuilt)
        deltas += [builder.build_leak(item.leak) for item in rejected if item.leak]
        violations = [violation for delta in deltas for violation in delta.violations]
        weak = _weakly_identified(request)
        health = _health(request, weak)
        if violations and sender.is_trusted:
            # Before the evidence and before the answer: a crash in between makes the sender
            # repeat the request, and the violation is found again.
            latch(self._context, environment, violations)
        elif violations:
            deltas = [delta.from_untrusted() for delta in deltas]
        if accepted or deltas or health or rejected:
            now_second = self._context.clock.now_ns() // NANOSECONDS
            whole = EvidenceBatch(
                events=(),
                health=health,
                last_record_second=now_second if accepted else 0,
                now_second=now_second,
                producer=sender.token_id,
                is_trusted=sender.is_trusted,
                sources={version: {WEAK_IDENTITY: many} for version, many in weak.items()},
                rejected=self._rejected_items(rejected, body),
            )
            additions: list[Addition] = [
                ((events,), activity) for built in repeated for events, activity in built.prompts
            ]
            additions += [(delta.events, delta.activity) for delta in deltas]
            uncounted = _uncounted(self._write(environment, whole, list(write_batches(additions))))
            accepted, rejected = accepted - len(uncounted), (*rejected, *uncounted)
        return Receipt(accepted, rejected)

    def _write(
        self, environment: str, whole: EvidenceBatch, batches: Sequence[WriteBatch]
    ) -> WriteResult:
        """Write a request in batches; its own counters go with the last.

        A request that was cut off is healed by its repetition: what was written counts once.
        """
        deadline, written = time.monotonic() + self._write_seconds, WriteResult(0, 0)
        *first, last = batches
        for at, batch in enumerate(first, 1):
            written += self._context.evidence.write(
                environment,
                replace(
                    whole,
                    events=batch.events,
                    activity=batch.activity,
                    health={},
                    sources={},
                    rejected=(),
                ),
            )
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"the store is busy: {at} of {len(batches)} parts of the request were written "
                    f"in {self._write_seconds:g} s; send it again, what was written counts once"
                )
        final = replace(whole, events=last.events, activity=last.activity)
        return written + self._context.evidence.write(environment, final)

    def _rejected_items(
        self, rejected: tuple[Rejection, ...], body: bytes
    ) -> tuple[RejectedItems, ...]:
        if not rejected:
            return ()
        return group_rejections(rejected, body=body, today=self._context.clock.now().date())

    def _builder(self, sender: Identity) -> EvidenceBuilder:
        environment = _environment_of(sender)
        key = (environment, sender.token_id)
        found = self._builders.get(key)
        if found is None:
            held = self._context.environments.load(environment)
            if held is None:
                raise NotFound(
                    f"environment {environment!r} does not exist yet; an admin creates it with "
                    f"PUT /api/v1/environments/{environment}"
                )
            found = EvidenceBuilder(environment, bytes.fromhex(held.tag_key), sender.token_id)
            self._builders[key] = found
        return found


def _build(
    builder: EvidenceBuilder, records: Iterable[Record]
) -> tuple[list[EvidenceDelta], list[Rejection]]:
    deltas: list[EvidenceDelta] = []
    rejected: list[Rejection] = []
    for record in records:
        try:
            deltas.append(builder.build(record))
        except ItemRejected as error:
            rejected.append(_with_identity(error.rejection, record))
    return deltas, rejected


def _with_identity(rejection: Rejection, record: Record) -> Rejection:
    return replace(
        rejection,
        version=record.origin.service_version,
        content=record_identity(record),
        leak=leak_of_record(record),
    )


def _uncounted(written: WriteResult) -> tuple[Rejection, ...]:
    """Return a rejection for each point that the store could not count."""
    beyond = reject(
        RejectReason.STREAM_LIMIT,
        f"a point is of a new stream, and its token has sent {MOST_STREAMS_OF_48_HOURS:,} within "
        f"48 hours, or {MOST_STREAMS_OF_7_DAYS:,} within 7 days",
    )
    forgotten = reject(
        RejectReason.STREAM_FORGOTTEN,
        "a point is of a start of its stream before those that are known",
    )
    return (beyond,) * written.over_limit + (forgotten,) * written.forgotten


def _environment_of(sender: Identity) -> str:
    assert sender.environment is not None  # an ingest token always has one
    return sender.environment


def _weakly_identified(request: DecodedRequest) -> Counter[str]:
    """Count by version the records, repeated ones too, whose Resource names no instance."""
    weak: Counter[str] = Counter()
    for record in request.records:
        if record.origin.has_weak_identity:
            weak[record.origin.service_version] += 1
    for repeated in request.repeated:
        if repeated.origin.has_weak_identity:
            weak[repeated.origin.service_version] += repeated.size
    return weak


def _health(request: DecodedRequest, weak: Counter[str]) -> Counter[str]:
    """Count ignored items, dropped attributes and weak identities; reasons are closed sets."""
    health: Counter[str] = Counter()
    for reason, count in request.ignored_by_reason.items():
        health[f"ignored:{reason}"] += count
    if request.dropped_attributes:
        health["dropped_attributes"] += request.dropped_attributes
    if weak:
        health[WEAK_IDENTITY] += weak.total()
    return health
