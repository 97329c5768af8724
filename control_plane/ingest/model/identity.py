"""Identities: 63-bit digests that find an item again after a retry or in another batch."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

from guardwave.control_plane.ingest.model.otlp_values import (
    Attributes,
    KeyValues,
    LogItem,
    OtherPoint,
    Point,
    Span,
    Value,
)
from guardwave.control_plane.ingest.model.records import Origin
from guardwave.reducer.rollout.fields import length_prefixed

# An owner's prompts come many at a time.
_prefixed = lru_cache(maxsize=16_384)(length_prefixed)
_PARTS = Struct(">8sQ").unpack


def digest63(*fields: str) -> int:
    """Return a signed 63-bit digest: the upper 63 bits of a 64-bit BLAKE2b over the fields.

    Two's complement, so that a store's integer sets hold it in 8 bytes; from -2**62 to 2**62 - 1.
    """
    digest = blake2b(length_prefixed(*fields), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) >> 1


def event_identity(
    environment: str,
    guard: str,
    pseudonym: str,
    *,
    event_name: str,
    prompt_id: str,
    part: str = "",
) -> int:
    """Return the identity of a log event: what a retry, or a new batch, cannot change.

    `part` is the sequence of a transition and the kind of a disruption; starts and ends have
    none. The guard is part of it: one prompt under two guards counts once for each.

    It is the exclusive or of two partial digests, one of the prompt and one of the event: two
    identities are equal by chance as seldom as two digests, and one hash of a prompt serves all
    of its events.
    """
    _, partial_digest = prompt_digest(pseudonym, prompt_id)
    return partial_digest ^ partial_event_digest(environment, guard, event_name, part)


def prompt_digest(pseudonym: str, prompt_id: str) -> tuple[str, int]:
    """Return the name of a prompt in the store, and its part of its events' identities."""
    text = prompt_id.encode()
    prefix = _prefixed("prompt", pseudonym)
    digest = blake2b(prefix + len(text).to_bytes(4) + text, digest_size=16).digest()
    suffix, partial_digest = _PARTS(digest)
    return suffix.hex(), partial_digest >> 1


def partial_event_digest(environment: str, guard: str, event_name: str, part: str) -> int:
    """Return the part of an identity that the same event of every prompt shares."""
    fields = length_prefixed("event", environment, guard, event_name, part)
    return int.from_bytes(blake2b(fields, digest_size=8).digest(), "big") >> 1


def point_identity(stream: int, *, interval: tuple[int, int], value: float) -> int:
    """Return the identity of a point: its stream, its interval and its value.

    `interval` is start and end in the sender's own nanoseconds.
    """
    start_ns, time_ns = interval
    return digest63("point", str(stream), str(start_ns), str(time_ns), canonical(value))


def stream_identity(
    origin: Origin, *, metric: tuple[str, str, str, str], attributes: Attributes
) -> int:
    """Return the identity of a stream of points: its sender, metric and attributes.

    `metric` is name, instrument, unit and temporality. Every attribute counts, also those that
    the contract drops (OpenTelemetry metrics data model, timeseries model).
    """
    fields = [
        "stream",
        origin.environment,
        origin.service_namespace,
        origin.service_name,
        origin.instance_id,
        *metric,
    ]
    for key in sorted(attributes):
        fields.append(key)
        fields.append(canonical(attributes[key]))
    return digest63(*fields)


def sender_fields(origin: Origin) -> tuple[str, ...]:
    """Return the fields that identify an origin's process, in the order of the digests."""
    return (
        origin.environment,
        origin.service_namespace,
        origin.service_name,
        origin.service_version,
        origin.instance_id,
    )


def origin_identity(origin: Origin) -> int:
    """Return a digest of the process and of the assignment ids on its Resource."""
    return digest63("origin", *sender_fields(origin), *origin.assignment_ids)


def item_identity(item: LogItem | Point | Span, source: int) -> int | None:
    """Return a digest of the whole item; None for one without a time.

    `source` is the digest of its sender. Where an item has two times, the sender's own counts: a
    Collector may set the other.
    """
    match item:
        case OtherPoint():
            return None
        case LogItem():
            time_ns = item.time_ns or item.observed_time_ns
            item = item._replace(observed_time_ns=0 if item.time_ns else time_ns)
        case Span():
            time_ns = item.start_ns
        case _:
            time_ns = item.time_ns
    if not time_ns:
        return None
    named = [
        text for key in sorted(item.attributes) for text in (key, canonical(item.attributes[key]))
    ]
    others = [canonical(value) for value in item if not isinstance(value, Mapping)]
    return digest63("item", type(item).__name__, str(source), *others, *named)


@lru_cache(maxsize=16_384)
def instance_digest(instance_id: str) -> str:
    """Return the name that pages show for a process: the 64-bit BLAKE2b of its id, hexadecimal.

    Whoever has the id finds the process by it; the id itself, a host's own text, is not stored.
    """
    return blake2b(instance_id.encode(), digest_size=8).hexdigest()


def resource_digest(attributes: Attributes) -> str:
    """Return a stand-in for a missing instance id: a digest over the whole Resource."""
    fields: list[str] = []
    for key in sorted(attributes):
        fields += (key, canonical(attributes[key]))
    return blake2b(length_prefixed(*fields), digest_size=8).hexdigest()


def canonical(value: Value) -> str:
    """Write a value so that equal ones give equal text, whatever encoding they came in.

    JavaScript sends 12.0 as an integer and Python as a double: both are the number 12.
    """
    match value:
        case None:
            return "unset"
        case str():
            return "s" + value
        case bool():
            return "true" if value else "false"
        case int():
            return f"n{value}"
        case float():
            return f"n{int(value)}" if value.is_integer() else f"n{value!r}"
        case bytes():
            return "x" + value.hex()
        case tuple():
            return f"l{[canonical(item) for item in value]!r}"
        case KeyValues(items):
            return f"m{[(key, canonical(item)) for key, item in items]!r}"
