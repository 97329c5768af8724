"""Intake of one request's records: violations first, then evidence, then the answer."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from control_plane.access import Identity
from control_plane.clock import NANOSECONDS
from control_plane.commands.rollback import latch
from control_plane.context import Context
from control_plane.errors import NotFound, StoreUnavailable
from control_plane.ingest.booked import Booked
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.exposed_items import exposed_by_record
from control_plane.ingest.forms import Forms, Known
from control_plane.ingest.otlp import ResourceLogs, ResourceMetrics, ResourceSpans
from control_plane.ingest.portions import Addition, Portion, portions
from control_plane.ingest.reading import Decoded, Receiving, read_logs, read_metrics, read_spans
from control_plane.ingest.records import Exposed, Record
from control_plane.ingest.refused_identities import record_identity, refused_items
from control_plane.ingest.rejections import Refusal, Rejected, RejectReason, reject
from control_plane.stores.evidence import Written
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.evidence_points import (
    MOST_STREAMS_OF_7_DAYS,
    MOST_STREAMS_OF_48_HOURS,
)
from control_plane.stores.intake_health import WEAK_IDENTITY
from control_plane.stores.refused_items import RefusedItems

# Exporters wait 10 s for an answer, and what is done for one that is gone is done in vain.
WRITE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request: how many items were accepted, and each that was rejected."""

    accepted: int
    rejected: tuple[Rejected, ...]


class Intake:
    """The way of telemetry into one control plane, shared by the threads of a web worker."""

    def __init__(self, context: Context, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._context = context
        self._write_seconds = write_seconds
        self._bookkeepers: dict[tuple[str, str], Bookkeeper] = {}
        self._forms = Forms()

    def known(self) -> Known:
        """Return what log records said before, for the decoder of protobuf bodies."""
        clock = self._context.clock
        return Known(self._forms, clock.now_ns(), clock.moment_ns)

    def receive_logs(
        self, batches: Iterable[ResourceLogs], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the events of one request body.

        Raises:
            StoreUnavailable: the store is away, or too busy to take all of it in time; the request
                may be sent again as it is.
        """
        return self._take(read_logs(batches, self._receiving(sender)), sender, body)

    def receive_metrics(
        self, batches: Iterable[ResourceMetrics], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the points of one request body; errors as for logs."""
        return self._take(read_metrics(batches, self._receiving(sender)), sender, body)

    def receive_spans(
        self, batches: Iterable[ResourceSpans], *, sender: Identity, body: bytes
    ) -> Receipt:
        """Take in the spans of one request body; errors as for logs."""
        return self._take(read_spans(batches, self._receiving(sender)), sender, body)

    def _receiving(self, sender: Identity) -> Receiving:
        clock = self._context.clock
        return Receiving(_environment_of(sender), clock.now_ns(), clock.moment_ns, self._forms)

    def _take(self, decoded: Decoded, sender: Identity, body: bytes) -> Receipt:
        environment = _environment_of(sender)
        bookkeeper = self._bookkeeper(sender)
        rebooked = [bookkeeper.book_runs(each) for each in decoded.repeated]
        left = [record for each in rebooked for record in each.left]
        booked, refused = _book(bookkeeper, (*left, *decoded.records))
        accepted = len(booked) + sum([each.size for each in decoded.repeated]) - len(left)
        rejected = (*decoded.rejected, *(each.rejected for each in refused))
        exposed = [*decoded.exposed, *(each.exposed for each in refused if each.exposed)]
        told = [*booked, *(bookkeeper.expose(each) for each in exposed)]
        violations = [violation for each in told for violation in each.violations]
        weak = _weakly_identified(decoded)
        health = _health(decoded, weak)
        if violations and sender.is_trusted:
            # Before the evidence and before the answer: a crash in between makes the sender
            # repeat the request, and the violation is found again.
            latch(self._context, environment, violations)
        elif violations:
            told = [each.of_untrusted() for each in told]
        if accepted or told or health or rejected:
            now_second = self._context.clock.now_ns() // NANOSECONDS
            whole = EvidenceBatch(
                events=(),
                health=health,
                last_record_second=now_second if accepted else 0,
                now_second=now_second,
                producer=sender.token_id,
                is_trusted=sender.is_trusted,
                sources={version: {WEAK_IDENTITY: many} for version, many in weak.items()},
                refused=self._refused_items(rejected, body),
            )
            added: list[Addition] = [
                ((events,), sightings) for each in rebooked for events, sightings in each.prompts
            ]
            added += [(each.events, each.sightings) for each in told]
            lost = _lost(self._write(environment, whole, list(portions(added))))
            accepted, rejected = accepted - len(lost), (*rejected, *lost)
        return Receipt(accepted, rejected)

    def _write(self, environment: str, whole: EvidenceBatch, parts: Sequence[Portion]) -> Written:
        """Write a request in portions, what is counted of all of it with the last.

        A request that was cut off is healed by its repetition: what was written counts once.
        """
        deadline, written = time.monotonic() + self._write_seconds, Written(0, 0)
        *first, (events, sightings) = parts
        for at, part in enumerate(first, 1):
            written += self._context.evidence.write(
                environment,
                replace(
                    whole,
                    events=part.events,
                    sightings=part.sightings,
                    health={},
                    sources={},
                    refused=(),
                ),
            )
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"the store is busy: {at} of {len(parts)} parts of the request were written in "
                    f"{self._write_seconds:g} s; send it again, what was written counts once"
                )
        last = replace(whole, events=events, sightings=sightings)
        return written + self._context.evidence.write(environment, last)

    def _refused_items(
        self, rejected: tuple[Rejected, ...], body: bytes
    ) -> tuple[RefusedItems, ...]:
        if not rejected:
            return ()
        return refused_items(rejected, body=body, today=self._context.clock.now().date())

    def _bookkeeper(self, sender: Identity) -> Bookkeeper:
        environment = _environment_of(sender)
        key = (environment, sender.token_id)
        found = self._bookkeepers.get(key)
        if found is None:
            held = self._context.environments.load(environment)
            if held is None:
                raise NotFound(
                    f"environment {environment!r} does not exist yet; an admin creates it with "
                    f"PUT /api/v1/environments/{environment}"
                )
            found = Bookkeeper(environment, bytes.fromhex(held.tag_key), sender.token_id)
            self._bookkeepers[key] = found
        return found


@dataclass(frozen=True, slots=True)
class _Refused:
    """A record that booking refused, and the content that it carried."""

    rejected: Rejected
    exposed: Exposed | None


def _book(bookkeeper: Bookkeeper, records: Iterable[Record]) -> tuple[list[Booked], list[_Refused]]:
    booked: list[Booked] = []
    refused: list[_Refused] = []
    for record in records:
        try:
            booked.append(bookkeeper.book(record))
        except Refusal as refusal:
            refused.append(_refused(record, refusal))
    return booked, refused


def _refused(record: Record, refusal: Refusal) -> _Refused:
    version, content = record.origin.service_version, record_identity(record)
    rejected = replace(refusal.rejected, version=version, content=content)
    return _Refused(rejected, exposed_by_record(record))


def _lost(written: Written) -> tuple[Rejected, ...]:
    """Return the points that the store could not count, as what was rejected."""
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


def _weakly_identified(decoded: Decoded) -> Counter[str]:
    """Count by version the records, repeated ones too, whose Resource names no instance."""
    weak: Counter[str] = Counter()
    for record in decoded.records:
        if record.origin.has_weak_identity:
            weak[record.origin.service_version] += 1
    for runs in decoded.repeated:
        if runs.origin.has_weak_identity:
            weak[runs.origin.service_version] += runs.size
    return weak


def _health(decoded: Decoded, weak: Counter[str]) -> Counter[str]:
    """Count what is nobody's business, and what names no process; reasons are closed sets."""
    health: Counter[str] = Counter()
    for reason, count in decoded.ignored_by_reason.items():
        health[f"ignored:{reason}"] += count
    if decoded.dropped_attributes:
        health["dropped_attributes"] += decoded.dropped_attributes
    if weak:
        health[WEAK_IDENTITY] += weak.total()
    return health
