"""Shards: laws of how a batch is split."""

from collections import defaultdict
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.points import PointEvent, PointOwner, Stream
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    PromptEvents,
    PromptKey,
    StartDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    OwnerActivity,
    PromptEvent,
    RejectedEvent,
    RejectedItems,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.shards import (
    FIRST_SHARD,
    OWNER_BUCKETS,
    SHARDS_OF_A_CLUSTER,
    buckets_of,
    shard_of_owner,
    split,
)
from guardwave.reducer.vocabulary import Cohort, Mode

DAY = date(2027, 1, 15)
STRATUM = Stratum("repeated_tool_failure", "1.0.0", 1, Cohort.ENFORCED, Mode.ENFORCE)

seens = st.builds(DedupeKey, st.integers(0, 2**63 - 1), st.just(1_800_000_000))
buckets = st.integers(0, OWNER_BUCKETS - 1)
prompts = st.builds(PromptKey, st.just("aaaaaaaaaaaaaaaa"), st.text("0123456789abcdef"), buckets)
owners = st.builds(
    PointOwner, st.just("aaaaaaaaaaaaaaaa"), buckets, st.just(STRATUM), st.just((1,))
)
streams = st.builds(
    Stream, st.text("0123456789abcdef", min_size=1), st.booleans(), st.just(1), st.just(2)
)
events = st.one_of(
    st.builds(
        PromptEvent,
        seens,
        prompts,
        st.just(DAY),
        st.just((STRATUM,)),
        st.just(True),
        st.just(StartDelta(8)),
    ),
    prompts.map(lambda prompt: PromptEvents.of(prompt, ())),
    st.builds(VolumeEvent, seens, st.just(DAY), st.just(STRATUM), st.just("n")),
    st.builds(
        PointEvent,
        *(seens, st.just(DAY), st.just(8), st.just(STRATUM), st.just("n"), streams, st.just(1)),
        owner=st.none() | owners,
    ),
    st.builds(RejectedEvent, seens),
)
batches = st.builds(
    EvidenceBatch,
    st.lists(events, max_size=30).map(tuple),
    st.just(frozenset({OwnerActivity("a", "1.0.0", "token", DAY, DAY, is_of_prompt=True)})),
    st.just({"refused": 2}),
    st.just(7),
    sources=st.just({"1.0.0": {"weak_identity": 2}}),
    rejected=st.just((RejectedItems("1.0.0", "refused:late", (1, 2)),)),
)


@settings(max_examples=30)
@given(batches)
def test_a_single_server_gets_a_batch_as_it_is(batch):
    assert list(split(batch, 1)) == [(FIRST_SHARD, batch)]


@settings(max_examples=30)
@given(batches)
def test_each_event_goes_to_one_shard_and_all_else_to_the_first_which_comes_last(batch):
    parts = list(split(batch, SHARDS_OF_A_CLUSTER))
    sent = [event for _, part in parts for event in part.events]
    assert sorted(map(id, sent)) == sorted(map(id, batch.events))
    shards = [shard for shard, _ in parts]
    assert len(set(shards)) == len(shards)
    assert shards[-1] == FIRST_SHARD
    assert parts[-1][1].activity == batch.activity
    for _, part in parts[:-1]:
        assert part.events
        assert not part.activity
        assert not {**part.health, **part.sources}
        assert not part.rejected


@settings(max_examples=30)
@given(batches)
def test_events_that_share_state_stay_together(batch):
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
                    places["event", event.dedupe_key.digest].add(shard)
    assert all(len(shards) == 1 for shards in places.values())


@pytest.mark.parametrize("count", [1, SHARDS_OF_A_CLUSTER])
def test_the_buckets_of_the_shards_are_all_buckets_each_once(count):
    held = [bucket for shard in range(count) for bucket in buckets_of(shard, count)]
    assert held == list(range(OWNER_BUCKETS))
    for shard in range(count):
        assert {shard_of_owner(bucket, count) for bucket in buckets_of(shard, count)} == {shard}
