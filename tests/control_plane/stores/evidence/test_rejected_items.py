"""Rejected items: the store remembers a bounded number of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, RejectedItems
from guardwave.control_plane.stores.evidence.shards import split
from guardwave.reducer.rollout.state import EvidenceSource

HERE = "internal"
LATE = "refused:late"
MOST = 4096


def rejected(digests: Sequence[int], *, counter: str = LATE) -> EvidenceBatch:
    return EvidenceBatch(
        (), now_second=86_400, rejected=(RejectedItems("1.0.0", counter, digests),)
    )


def test_rejected_items_beyond_the_stores_memory_count_each_time(evidence, any_store):
    flood = [100 * number for number in range(1, MOST + 5)]
    evidence.write(HERE, rejected(flood))
    assert evidence.health(HERE)["refused"] == MOST + 4
    assert evidence.health(HERE)["overflow:refused"] == 4

    evidence.write(HERE, rejected(flood))
    counted = evidence.health(HERE)
    assert (counted["refused"], counted[LATE]) == (MOST + 8, MOST + 8)
    assert (counted["duplicate"], counted["overflow:refused"]) == (MOST, 8)

    (key,) = any_store.keys("rf:*")
    assert any_store.scard(key) == MOST
    assert 0 < any_store.ttl(key) <= 2 * 86_400


def test_other_rejected_items_are_remembered_beside_a_flood(evidence):
    evidence.write(HERE, rejected([100 * number for number in range(1, MOST + 5)]))
    for _ in range(2):
        evidence.write(HERE, rejected([7, -62, 2**62 - 1, -(2**62)], counter="refused:future"))
    assert evidence.health(HERE)["refused:future"] == 4


def test_an_item_that_a_body_holds_twice_counts_once(evidence):
    evidence.write(HERE, rejected([5, 5]))
    assert (evidence.health(HERE)["refused"], evidence.health(HERE)["duplicate"]) == (1, 1)


def test_what_is_quarantined_is_a_record_of_its_day_that_does_not_conform(evidence):
    day = date(1970, 1, 2)
    for digests in ([1, 2], [2, 3]):
        items = RejectedItems("", "quarantined:version_missing", digests, day)
        evidence.write(HERE, EvidenceBatch((), now_second=86_400, rejected=(items,)))
    evidence.seal(HERE, day, at=datetime(1970, 1, 3, tzinfo=UTC), longest_outage_seconds=0.0)
    for source in EvidenceSource:
        (sealed,) = evidence.sealed_days(HERE, [day], source)
        assert (sealed.records, sealed.conforming) == (3, 0)


def test_rejected_items_of_a_spread_environment_are_remembered_in_one_shard():
    batch = rejected(range(1000))
    for shard, part in split(replace(batch, health={"ignored:no_data": 1}), 16):
        assert (part.rejected == batch.rejected) is (shard == 0)
