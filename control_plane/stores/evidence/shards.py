"""Shards: all evidence of an owner is in one, so that one call may change it."""

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from redis import Redis

from guardwave.control_plane.stores.evidence.delta.points import PointEvent, PointOwner
from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptEvents
from guardwave.control_plane.stores.evidence.delta.request import (
    Event,
    EvidenceBatch,
    PromptEvent,
    RejectedEvent,
    VolumeEvent,
)
from guardwave.control_plane.stores.server import is_cluster

OWNER_BUCKETS = 256
# Fixed for good: with another number, stored evidence would not be found.
SHARDS_OF_A_CLUSTER = 16
# Also holds what is not evidence of one owner: facts, owner activity, rejected items.
FIRST_SHARD = 0


def shard_count(redis: Redis) -> int:
    """Return the number of shards of an environment's evidence: 1 on a single server."""
    return SHARDS_OF_A_CLUSTER if is_cluster(redis) else 1


def shard_of_owner(owner_bucket: int, count: int) -> int:
    """Return the shard of an owner by its bucket, which is the first byte of its pseudonym."""
    return owner_bucket * count // OWNER_BUCKETS


def buckets_of(shard: int, count: int) -> range:
    """Return the owner buckets that a shard holds."""
    width = OWNER_BUCKETS // count
    return range(shard * width, (shard + 1) * width)


def split(batch: EvidenceBatch, count: int) -> Iterator[tuple[int, EvidenceBatch]]:
    """Yield each shard's part of a batch, the first shard last.

    The first shard also gets everything that is not an event. When an earlier write fails, the
    whole request is sent again, so this part is counted once.
    """
    if count == 1:
        yield FIRST_SHARD, batch
        return
    parts: defaultdict[int, list[Event]] = defaultdict(list)
    for event in batch.events:
        parts[_shard_of(event, count)].append(event)
    first = parts.pop(FIRST_SHARD, [])
    for shard, events in sorted(parts.items()):
        yield (
            shard,
            replace(
                batch,
                events=tuple(events),
                activity=frozenset(),
                health={},
                sources={},
                rejected=(),
            ),
        )
    yield FIRST_SHARD, replace(batch, events=tuple(first))


def _shard_of(event: Event, count: int) -> int:
    match event:
        case PromptEvent() | PromptEvents():
            return shard_of_owner(event.prompt.owner_bucket, count)
        case PointEvent(owner=PointOwner(owner_bucket=bucket)):
            return shard_of_owner(bucket, count)
        case PointEvent():
            # The points of a stream go to the shard that holds its state.
            return zlib.crc32(event.stream.suffix.encode()) % count
        case VolumeEvent() | RejectedEvent():
            return event.dedupe_key.digest % count
        case _:
            # A new kind of event needs a shard: that of the state which it changes.
            assert_never(event)
