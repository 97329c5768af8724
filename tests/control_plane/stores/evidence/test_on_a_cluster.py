"""A real Redis Cluster of three nodes: the evidence of one server, also when nodes are lost."""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import redis

from guardwave.control_plane.core.errors import StoreStartError, StoreUnavailable
from guardwave.control_plane.core.settings import Settings, StoreKind
from guardwave.control_plane.rollouts.context import open_store
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EndDelta,
    PromptDelta,
    PromptKey,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    OwnerActivity,
    PromptEvent,
    RejectedItems,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.intake_health import IntakeHealthStore
from guardwave.control_plane.stores.evidence.shards import SHARDS_OF_A_CLUSTER
from guardwave.control_plane.stores.evidence.store import EvidenceStore, WriteResult
from guardwave.control_plane.stores.evidence.suspects import SuspectStore
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.control_plane.stores.owners import OwnerStore
from guardwave.control_plane.stores.server.clients import primaries
from guardwave.control_plane.stores.server.function_library import libraries
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode, Outcome
from tests.support.lives import Life
from tests.support.stores.clusters import Cluster, cluster_in, sentinel_in, until
from tests.support.web_workers import PATIENCE_S

HERE = "internal"
DAY = date(2027, 1, 15)
SECOND = 1_800_000_000
NOW = datetime.fromtimestamp(SECOND, UTC)
STRATUM = Stratum("repeated_tool_failure", "1.0.0", 1, Cohort.ENFORCED, Mode.ENFORCE)
END = EndDelta(Outcome.COMPLETED, 10, 2, 5, transitions=0, calls_after_would_stop=0, hour=8)
OWNERS, WRITERS, BATCHES = 40, 3, 8

# All of them share one cluster, if the runner keeps groups together.
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        cluster_in(Path(directory)) as running,
    ):
        yield running


@pytest.fixture
def clustered(cluster) -> Iterator[redis.Redis]:
    """An empty cluster with the functions loaded."""
    until(cluster.is_well, why="the cluster is well")
    with open_store(cluster.settings) as client:
        client.flushall()
        yield client


def prompt_of(owner: int, number: int) -> PromptKey:
    """Return a prompt of one of the owners, which are spread over all shards."""
    return PromptKey(f"owner-{owner:010}", f"{owner * 1000 + number:016x}", owner * 256 // OWNERS)


def events_of(owner: int, number: int, *deltas: PromptDelta) -> Iterator[PromptEvent]:
    key = prompt_of(owner, number)
    for place, delta in enumerate(deltas):
        dedupe_key = DedupeKey(int(key.suffix, 16) * 8 + place, SECOND)
        yield PromptEvent(dedupe_key, key, DAY, (STRATUM,), True, delta)


def batch_of(number: int) -> EvidenceBatch:
    """Return the start and the end of a prompt of every owner, and events of no owner."""
    prompts = [
        event for owner in range(OWNERS) for event in events_of(owner, number, StartDelta(8), END)
    ]
    volume = VolumeEvent(DedupeKey(2**62 + number, SECOND), DAY, STRATUM, "n", by=2)
    activity = frozenset(
        OwnerActivity(prompt_of(owner, 0).pseudonym, "1.0.0", "token", DAY, DAY, is_of_prompt=True)
        for owner in range(OWNERS)
    )
    return EvidenceBatch(
        (*prompts, volume),
        activity,
        {"refused": 1},
        SECOND + number,
        SECOND + number,
        producer="token",
        is_trusted=True,
        sources={"1.0.0": {"weak_identity": 1}},
        rejected=(RejectedItems("1.0.0", "quarantined:version_missing", (-number, 7), DAY),),
    )


def everything_in(client: redis.Redis) -> dict[str, object]:
    """Return everything that the stores report about the environment."""
    evidence, health = EvidenceStore(client), IntakeHealthStore(client)
    return {
        "days": evidence.days(HERE),
        "sealed": evidence.sealed_days(HERE, [DAY]),
        "rows": evidence.owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY]),
        "one owner": [
            evidence.owner_rows(HERE, key.pseudonym, key.owner_bucket, [DAY])
            for key in (prompt_of(0, 0), prompt_of(OWNERS - 1, 0))
        ],
        "counters": evidence.counters(HERE, DAY),
        "health": evidence.health(HERE),
        "sources": health.sources(HERE),
        "treated": health.treated_records(HERE),
        "facts": OwnerStore(client).all_facts(HERE),
    }


def written_by(client: redis.Redis) -> dict[str, object]:
    evidence = EvidenceStore(client)
    for number in (0, 1, 2, 1):
        evidence.write(HERE, batch_of(number))
    assert evidence.seal(HERE, DAY, at=NOW, longest_outage_seconds=61.0)
    assert not evidence.seal(HERE, DAY, at=NOW, longest_outage_seconds=99.0)
    return everything_in(client)


def test_a_cluster_reports_the_same_as_one_server(store, clustered):
    assert written_by(clustered) == written_by(store)
    rows = EvidenceStore(clustered).owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
    assert [row.started for row in rows] == [3] * OWNERS


def test_a_cluster_of_the_oldest_redis_reports_the_same(store, oldest_redis):
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        cluster_in(Path(directory), program=oldest_redis) as cluster,
        open_store(cluster.settings) as client,
    ):
        assert written_by(client) == written_by(store)


def test_evidence_lies_in_sixteen_shards_on_all_nodes(clustered):
    EvidenceStore(clustered).write(HERE, batch_of(0))
    shards = [EvidenceKeys(HERE, shard).days for shard in range(SHARDS_OF_A_CLUSTER)]
    assert all(clustered.exists(key) for key in shards)
    assert all(node.dbsize() > 0 for node in primaries(clustered))


def test_every_node_has_the_functions_and_gets_them_again_when_they_are_lost(clustered):
    names = {library.name for library in libraries()}
    for node in primaries(clustered):
        assert len(node.function_list()) == len(names)
        node.function_flush()
    assert EvidenceStore(clustered).write(HERE, batch_of(0)).new == 2 * OWNERS + 1
    assert all(len(node.function_list()) == len(names) for node in primaries(clustered))


def test_delayed_invariants_and_lost_prompts_are_found_in_every_shard(clustered):
    stop = TransitionDelta(1, is_would_stop=False, is_stop=True, is_unreliable_input=False)
    events = [
        event for owner in range(OWNERS) for event in events_of(owner, 0, StartDelta(8), stop)
    ]
    batch = EvidenceBatch(tuple(events), now_second=SECOND, producer="token", is_trusted=True)
    evidence, suspects = EvidenceStore(clustered), SuspectStore(clustered)
    evidence.write(HERE, batch)
    overdue = suspects.overdue(HERE, NOW + timedelta(seconds=121))
    assert Counter(suspected.invariant for suspected in overdue) == {
        Invariant.STOP_WITHOUT_WARN: OWNERS
    }
    assert all(suspects.decide(HERE, suspected) for suspected in overdue)
    assert suspects.overdue(HERE, NOW + timedelta(seconds=121)) == ()
    assert evidence.close_lost_prompts(HERE, NOW + timedelta(hours=25)) == OWNERS


def test_a_control_plane_lives_on_a_cluster(clustered):
    life = Life.begin(clustered, owners=24)
    life.live(2, per_owner=1)
    rows = life.context.evidence.owner_days(
        HERE, life.rollout.guard, 1, life.context.evidence.days(HERE)
    )
    assert sum(row.started for row in rows) == 48
    assert life.promote(Mode.WARN).status.value == "done"
    life.live(1, per_owner=1)
    assert life.rollout.phase is Mode.WARN
    assert life.evaluate().verdict is not None


def test_a_request_cut_off_half_way_is_healed_by_its_repetition(cluster, clustered):
    evidence = EvidenceStore(clustered)
    lost = cluster.nodes[1]
    lost.kill()
    try:
        with pytest.raises(StoreUnavailable, match="try again in 1 s"):
            evidence.write(HERE, batch_of(0))
    finally:
        lost.start()
    until(cluster.is_well, why="the cluster is well again")
    again = _sent_until_acknowledged(evidence, batch_of(0))
    assert again.new + again.duplicate == 2 * OWNERS + 1
    assert evidence.write(HERE, batch_of(0)) == WriteResult(0, 2 * OWNERS + 1)
    rows = evidence.owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
    assert [row.started for row in rows] == [1] * OWNERS
    assert all(row.completed == row.ended == 1 for row in rows)


def _sent_until_acknowledged(evidence: EvidenceStore, batch: EvidenceBatch) -> WriteResult:
    pause = threading.Event()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return evidence.write(HERE, batch)
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            pause.wait(0.02)


class Writer(threading.Thread):
    """A host that repeats each batch until it is acknowledged."""

    def __init__(self, number: int, settings: Settings, acknowledged: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.number = number
        self._settings = settings
        self._acknowledged = acknowledged

    def run(self) -> None:
        with open_store(self._settings) as client:
            evidence = EvidenceStore(client)
            for number in range(self.number, WRITERS * BATCHES, WRITERS):
                _sent_until_acknowledged(evidence, batch_of(number))
                self._acknowledged.release()


def test_a_node_killed_and_replaced_under_load_loses_and_doubles_nothing(cluster, clustered):
    acknowledged = threading.Semaphore(0)
    writers = [Writer(number, cluster.settings, acknowledged) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for node in cluster.nodes:
        for _ in range(WRITERS * BATCHES // 5):
            assert acknowledged.acquire(timeout=PATIENCE_S)
        node.kill()
        node.start()
        until(cluster.is_well, why="the cluster is well again")
    for writer in writers:
        writer.join(timeout=PATIENCE_S)
        assert not writer.is_alive()
    rows = EvidenceStore(clustered).owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
    assert [row.started for row in rows] == [WRITERS * BATCHES] * OWNERS
    assert all(row.completed == row.ended == row.started for row in rows)


def test_a_replica_takes_over_for_a_lost_node_without_a_person():
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        cluster_in(Path(directory), with_replica=True) as cluster,
        open_store(cluster.settings) as client,
    ):
        evidence = EvidenceStore(client)
        evidence.write(HERE, batch_of(0))
        with cluster.nodes[0].client() as first:
            until(lambda: first.wait(1, 500) == 1, why="the replica has it")
        cluster.nodes[0].kill()
        assert _sent_until_acknowledged(evidence, batch_of(1)).new > 0
        assert _sent_until_acknowledged(evidence, batch_of(0)).new == 0
        rows = evidence.owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
        assert [row.started for row in rows] == [2] * OWNERS


def test_sentinels_lead_to_the_server_that_took_over():
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        sentinel_in(Path(directory)) as setup,
        open_store(setup.settings) as client,
    ):
        evidence = EvidenceStore(client)
        evidence.write(HERE, batch_of(0))
        until(lambda: client.wait(1, 500) == 1, why="the replica has it")
        setup.master.kill()
        assert _sent_until_acknowledged(evidence, batch_of(1)) == WriteResult(2 * OWNERS + 1, 0)
        assert _sent_until_acknowledged(evidence, batch_of(0)) == WriteResult(0, 2 * OWNERS + 1)
        rows = evidence.owner_days(HERE, STRATUM.guard, STRATUM.wave, [DAY])
        assert [row.started for row in rows] == [2] * OWNERS


def test_a_missing_cluster_stops_the_start_with_a_remedy():
    settings = Settings(redis_url="redis://127.0.0.1:1", store=StoreKind.CLUSTER)
    with pytest.raises(StoreStartError, match=r"no node of the cluster answers.*REDIS_URL"):
        open_store(settings)
