"""What of a batch goes to which shard: laws of the split alone."""

from collections import defaultdict
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.stores.cells import Cell
from control_plane.stores.evidence_events import (
    EvidenceBatch,
    PromptEvent,
    RefusedEvent,
    Sighting,
    VolumeEvent,
)
from control_plane.stores.evidence_points import PointEvent, PointOwner, Stream
from control_plane.stores.prompt_events import PromptEvents, PromptKey
from control_plane.stores.prompt_news import Started
from control_plane.stores.refused_items import RefusedItems
from control_plane.stores.seen import Seen
from control_plane.stores.shards import (
    FIRST,
    OWNER_BUCKETS,
    SHARDS_OF_A_CLUSTER,
    buckets_of,
    shard_of_owner,
    split,
)
from reducer.vocabulary import Cohort, Mode

DAY = date(2027, 1, 15)
CELL = Cell("repeated_tool_failure", "1.0.0", 1, Cohort.ENFORCED, Mode.ENFORCE)

seens = st.builds(Seen, st.integers(0, 2**63 - 1), st.just(1_800_000_000))
buckets = st.integers(0, OWNER_BUCKETS - 1)
prompts = st.builds(PromptKey, st.just("aaaaaaaaaaaaaaaa"), st.text("0123456789abcdef"), buckets)
owners = st.builds(PointOwner, st.just("aaaaaaaaaaaaaaaa"), buckets, st.just(CELL), st.just((1,)))
streams = st.builds(
    Stream, st.text("0123456789abcdef", min_size=1), st.booleans(), st.just(1), st.just(2)
)
events = st.one_of(
    st.builds(
        PromptEvent,
        seens,
        prompts,
        st.just(DAY),
        st.just((CELL,)),
        st.just(True),
        st.just(Started(8)),
    ),
    prompts.map(lambda prompt: PromptEvents.of(prompt, ())),
    st.builds(VolumeEvent, seens, st.just(DAY), st.just(CELL), st.just("n")),
    st.builds(
        PointEvent,
        *(seens, st.just(DAY), st.just(8), st.just(CELL), st.just("n"), streams, st.just(1)),
        owner=st.none() | owners,
    ),
    st.builds(RefusedEvent, seens),
)
batches = st.builds(
    EvidenceBatch,
    st.lists(events, max_size=30).map(tuple),
    st.just(frozenset({Sighting("a", "1.0.0", "token", DAY, DAY, is_of_prompt=True)})),
    st.just({"refused": 2}),
    st.just(7),
    sources=st.just({"1.0.0": {"weak_identity": 2}}),
    refused=st.just((RefusedItems("1.0.0", "refused:late", (1, 2)),)),
)


@settings(max_examples=30)
@given(batches)
def test_a_single_server_gets_a_batch_as_it_is(batch):
    assert list(split(batch, 1)) == [(FIRST, batch)]


@settings(max_examples=30)
@given(batches)
def test_each_event_goes_to_one_shard_and_all_else_to_the_first_which_comes_last(batch):
    parts = list(split(batch, SHARDS_OF_A_CLUSTER))
    told = [event for _, part in parts for event in part.events]
    assert sorted(map(id, told)) == sorted(map(id, batch.events))
    shards = [shard for shard, _ in parts]
    assert len(set(shards)) == len(shards)
    assert shards[-1] == FIRST
    assert parts[-1][1].sightings == batch.sightings
    for _, part in parts[:-1]:
        assert part.events
        assert not part.sightings
        assert not {**part.health, **part.sources}
        assert not part.refused


@settings(max_examples=30)
@given(batches)
def test_what_is_known_together_stays_together(batch):
    places: defaultdict[object, set[int]] = defaultdict(set)
    for shard, part in split(batch, SHARDS_OF_A_CLUSTER):
        for event in part.events:
            match event:
                case PromptEvent() | PromptEvents():
                    places["owner", event.prompt.owner_bucket].add(shard)
                case PointEvent(owner=PointOwner(owner_bucket=bucket)):
                    places["owner", bucket].add(shard)
                case PointEvent():
                    places["stream", event.stream.suffix].add(shard)
                case _:
                    places["event", event.seen.digest].add(shard)
    assert all(len(shards) == 1 for shards in places.values())


@pytest.mark.parametrize("count", [1, SHARDS_OF_A_CLUSTER])
def test_the_buckets_of_the_shards_are_all_buckets_each_once(count):
    held = [bucket for shard in range(count) for bucket in buckets_of(shard, count)]
    assert held == list(range(OWNER_BUCKETS))
    for shard in range(count):
        assert {shard_of_owner(bucket, count) for bucket in buckets_of(shard, count)} == {shard}
