"""Which shard holds what: all evidence of an owner is in one, so that one call may change it."""

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from redis import Redis

from control_plane.stores.clients import is_cluster
from control_plane.stores.evidence_events import (
    Event,
    EvidenceBatch,
    PromptEvent,
    RefusedEvent,
    VolumeEvent,
)
from control_plane.stores.evidence_points import PointEvent, PointOwner
from control_plane.stores.prompt_events import PromptEvents

OWNER_BUCKETS = 256
# For good: another number would look for evidence where it is not.
SHARDS_OF_A_CLUSTER = 16
# Holds what is not of one owner's evidence as well: facts, sightings, what was refused.
FIRST = 0


def shard_count(redis: Redis) -> int:
    """Return over how many shards an environment's evidence is spread: 1 on a single server."""
    return SHARDS_OF_A_CLUSTER if is_cluster(redis) else 1


def shard_of_owner(owner_bucket: int, count: int) -> int:
    """Return the shard of an owner by its bucket, which is the first byte of its pseudonym."""
    return owner_bucket * count // OWNER_BUCKETS


def buckets_of(shard: int, count: int) -> range:
    """Return the owner buckets that a shard holds."""
    width = OWNER_BUCKETS // count
    return range(shard * width, (shard + 1) * width)


def split(batch: EvidenceBatch, count: int) -> Iterator[tuple[int, EvidenceBatch]]:
    """Yield what each shard gets of a batch, the first shard last.

    What is not of an event goes with the first shard: where a write fails before, the whole request
    is sent again, and so it is counted once.
    """
    if count == 1:
        yield FIRST, batch
        return
    parts: defaultdict[int, list[Event]] = defaultdict(list)
    for event in batch.events:
        parts[_shard_of(event, count)].append(event)
    own = parts.pop(FIRST, [])
    for shard, events in sorted(parts.items()):
        yield (
            shard,
            replace(
                batch,
                events=tuple(events),
                sightings=frozenset(),
                health={},
                sources={},
                refused=(),
            ),
        )
    yield FIRST, replace(batch, events=tuple(own))


def _shard_of(event: Event, count: int) -> int:
    match event:
        case PromptEvent() | PromptEvents():
            return shard_of_owner(event.prompt.owner_bucket, count)
        case PointEvent(owner=PointOwner(owner_bucket=bucket)):
            return shard_of_owner(bucket, count)
        case PointEvent():
            # A stream's points meet where what is known of the stream is.
            return zlib.crc32(event.stream.suffix.encode()) % count
        case VolumeEvent() | RefusedEvent():
            return event.seen.digest % count
        case _:
            # Another kind of event has to say where what is known together with it lies.
            assert_never(event)
