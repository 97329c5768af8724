"""Intake of one request's records: violations first, then evidence, then the answer."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from control_plane.access import Identity
from control_plane.clock import NANOSECONDS
from control_plane.commands.rollback import latch
from control_plane.context import Context
from control_plane.errors import NotFound, StoreUnavailable
from control_plane.ingest.booked import Booked
from control_plane.ingest.evidence import Bookkeeper
from control_plane.ingest.identity import digest63
from control_plane.ingest.otlp import ResourceLogs, ResourceMetrics, ResourceSpans
from control_plane.ingest.portions import Portion, Told, portions
from control_plane.ingest.reading import Decoded, Receiving, read_logs, read_metrics, read_spans
from control_plane.ingest.records import Exposed, Record
from control_plane.ingest.refused import exposed_by_record
from control_plane.ingest.rejections import Refusal, Rejected
from control_plane.ingest.wordings import Wordings
from control_plane.stores.evidence_events import EvidenceBatch, QuarantinedEvent, Seen

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
        self._wordings = Wordings()

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
        return Receiving(_environment_of(sender), clock.now_ns(), clock.moment_ns, self._wordings)

    def _take(self, decoded: Decoded, sender: Identity, body: bytes) -> Receipt:
        environment = _environment_of(sender)
        bookkeeper = self._bookkeeper(sender)
        booked, refused = _book(bookkeeper, decoded.records)
        rejected = (*decoded.rejected, *(each.rejected for each in refused))
        exposed = [*decoded.exposed, *(each.exposed for each in refused if each.exposed)]
        told = [*booked, *(bookkeeper.expose(each) for each in exposed)]
        violations = [violation for each in told for violation in each.violations]
        health = _health(rejected, decoded)
        if violations and sender.is_trusted:
            # Before the evidence and before the answer: a crash in between makes the sender
            # repeat the request, and the violation is found again.
            latch(self._context, environment, violations)
        elif violations:
            told = [each.of_untrusted() for each in told]
        if told or health:
            now_second = self._context.clock.now_ns() // NANOSECONDS
            whole = EvidenceBatch(
                events=(),
                health=health,
                last_record_second=now_second if booked else 0,
                now_second=now_second,
                producer=sender.token_id,
                is_trusted=sender.is_trusted,
                sources=_refused_by_version(rejected),
            )
            added: list[Told] = [(each.events, each.sighting) for each in told]
            added += [((each,), None) for each in self._quarantined(rejected, body)]
            self._write(environment, whole, list(portions(added)))
        return Receipt(len(booked), rejected)

    def _write(self, environment: str, whole: EvidenceBatch, parts: Sequence[Portion]) -> None:
        """Write a request in portions, what is counted of all of it with the last.

        A request that was cut off is healed by its repetition: what was written counts once.
        """
        deadline = time.monotonic() + self._write_seconds
        for at, (events, sightings) in enumerate(parts, 1):
            part = replace(whole, events=events, sightings=sightings)
            if at == len(parts):
                self._context.evidence.write(environment, part)
                return
            self._context.evidence.write(environment, replace(part, health={}, sources={}))
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"the store is busy: {at} of {len(parts)} parts of the request were written in "
                    f"{self._write_seconds:g} s; send it again, what was written counts once"
                )

    def _quarantined(
        self, rejected: tuple[Rejected, ...], body: bytes
    ) -> Iterable[QuarantinedEvent]:
        """Count what has no environment or version as records of today that do not conform."""
        if not any(each.reason.is_quarantine for each in rejected):
            return
        now, body_digest = self._context.clock.now(), blake2b(body, digest_size=16).hexdigest()
        for at, each in enumerate(rejected):
            if each.reason.is_quarantine:
                digest = digest63("quarantined", body_digest, str(at))
                yield QuarantinedEvent(Seen(digest, int(now.timestamp())), now.date())

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
            rejected = replace(refusal.rejected, version=record.origin.service_version)
            refused.append(_Refused(rejected, exposed_by_record(record)))
    return booked, refused


def _environment_of(sender: Identity) -> str:
    assert sender.environment is not None  # an ingest token always has one
    return sender.environment


def _word(rejected: Rejected) -> str:
    return "quarantined" if rejected.reason.is_quarantine else "refused"


def _refused_by_version(rejected: Iterable[Rejected]) -> Mapping[str, Counter[str]]:
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in rejected:
        counted[each.version][f"{_word(each)}:{each.reason}"] += 1
    return counted


def _health(rejected: tuple[Rejected, ...], decoded: Decoded) -> Counter[str]:
    """Count by reason what was not taken in; the reasons are closed sets."""
    health: Counter[str] = Counter()
    for each in rejected:
        health[_word(each)] += 1
        health[f"{_word(each)}:{each.reason}"] += 1
    for reason, count in decoded.ignored_by_reason.items():
        health[f"ignored:{reason}"] += count
    if decoded.dropped_attributes:
        health["dropped_attributes"] += decoded.dropped_attributes
    return health
