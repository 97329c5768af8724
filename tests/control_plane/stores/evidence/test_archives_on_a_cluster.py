"""Archives between one server and a cluster, where an environment's evidence lies in 16 shards."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from guardwave.control_plane.archive.export import export_archive
from guardwave.control_plane.archive.imports import import_archive
from guardwave.control_plane.archive.lines import Head, Line, WaveLine
from guardwave.control_plane.rollouts.context import Context, open_store
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.vocabulary import Mode
from tests.support.lives import Life
from tests.support.stores.clusters import Cluster, cluster_in, until
from tests.support.worlds import ENVIRONMENT, OPERATOR, WHY, context_over

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        cluster_in(Path(directory)) as running,
    ):
        yield running


@pytest.fixture
def clustered(cluster: Cluster) -> Iterator[redis.Redis]:
    until(cluster.is_well, why="the cluster is well")
    with open_store(cluster.settings) as client:
        client.flushall()
        yield client


def lines_of(context: Context) -> list[Line]:
    """Return the archive, but for the moment of its making."""
    head, *rest = export_archive(context, ENVIRONMENT)
    assert isinstance(head, Head)
    return [replace(head, exported_at=context.clock.now()), *rest]


def ended(line: Line, life: Life) -> Line:
    """Return a line as an import leaves it: the open wave ended with the last day that was over."""
    if not isinstance(line, WaveLine) or line.wave.number != life.rollout.wave:
        return line
    return replace(line, wave=replace(line.wave, closed_at=day_start(life.today)))


def test_an_archive_goes_into_a_cluster_and_is_the_same_and_judged_the_same(store, clustered):
    life = Life.begin(store)
    life.live(7)
    assert life.promote(Mode.WARN).refusal is None
    life.live(8)
    here = life.evaluate()
    lines = lines_of(life.context)
    there = context_over(clustered, clock=life.calendar.clock)
    done = import_archive(there, iter(lines), actor=OPERATOR, reason=WHY)
    assert done.owner_days == 15 * len(life.owners)
    assert len({stratum.shard for stratum in there.pages.strata(ENVIRONMENT)}) > 4
    assert [ended(line, life) for line in lines] == lines_of(there)
    elsewhere = replace(life, context=there, store=clustered)
    assert elsewhere.evaluate().digest == here.digest
