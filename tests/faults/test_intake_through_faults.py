"""Intake through faults: acknowledged records are stored once, the rest is to be sent again."""

import contextlib
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tests.faults.senders import (
    EXPORTERS_WAIT_S,
    PROMPTS,
    Deployment,
    Load,
    deployed,
    embedded_store,
    exporter_pool,
    web_worker_pids,
)
from tests.support.stores.clusters import Node, cluster_in
from tests.support.web_workers import until

pytestmark = pytest.mark.xdist_group("faults")


@pytest.fixture(scope="module")
def server():
    with embedded_store() as running:
        yield running


@pytest.fixture(scope="module")
def deployment(server) -> Iterator[Deployment]:
    """One web worker for the tests that leave the store where it is."""
    with deployed(server) as running:
        yield running


@contextlib.contextmanager
def paused_process(pid: int) -> Iterator[None]:
    """Let a process neither run nor close its connections."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_store_killed_and_started_again_under_load(server, deployment):
    load = Load.on(deployment, bodies=30)
    for _ in range(3):
        load.wait_for(0.2)
        server.kill()
        assert until(lambda: load.has_met(503))
        assert server.ensure_running()
    answers = load.finish()
    assert set(answers) == {200, 503}
    assert deployment.stored() == load.everything()


def test_a_store_that_is_paused_for_ten_seconds(server, deployment):
    load = Load.on(deployment, bodies=10, waits_s=EXPORTERS_WAIT_S)
    load.wait_for(0.3)
    given_up = deployment.body(0, "given up")
    pid = server.pid
    assert pid is not None
    with paused_process(pid):
        ends_at = time.monotonic() + 10
        assert deployment.send(given_up, exporter_pool(waits_s=EXPORTERS_WAIT_S)) == 503
        asked = urllib3.request("GET", f"{deployment.address}/readyz", retries=False)
        assert (asked.status, asked.headers["Retry-After"]) == (503, "1")
        is_over = until(lambda: time.monotonic() > ends_at and load.has_met(503, 2))
        assert is_over
    # Whoever has no answer while an exporter waits for it would be counted under 0.
    assert set(load.finish()) == {200, 503}

    more = deployment.stored() - load.everything()
    assert more in (Counter(), Counter({0: PROMPTS})), "written whole or not at all"
    assert deployment.stored() - more == load.everything()
    assert deployment.send(given_up) == 200
    assert deployment.stored() == load.everything() + Counter({0: PROMPTS})


def test_a_web_worker_killed_in_mid_request(deployment):
    load = Load.on(deployment, bodies=30)
    killed: set[int] = set()
    for _ in range(4):
        load.wait_for(0.1)
        pid = until(lambda: next(iter(set(web_worker_pids()) - killed), None))
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
        load.wait_for(0.1)
        if any(sender.answers[0] for sender in load.senders):
            break
    answers = load.finish()
    assert answers[0] > 0, "no kill met a request"
    assert set(answers) <= {200, 503, 0}
    assert deployment.stored() == load.everything()


def test_every_request_sent_twice_at_once(deployment):
    load = Load.on(deployment, bodies=20, copies=2)
    assert load.finish() == {200: 2 * 20 * len(load.senders)}
    assert deployment.stored() == load.everything()


def test_a_store_out_of_memory(deployment):
    client = deployment.context.evidence._redis
    calm = client.config_get("maxmemory")["maxmemory"]
    load = Load.on(deployment, bodies=20)
    load.wait_for(0.3)
    client.config_set("maxmemory", "1")
    try:
        assert until(lambda: load.has_met(503))
    finally:
        client.config_set("maxmemory", calm)
    assert set(load.finish()) == {200, 503}
    assert deployment.stored() == load.everything()


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("everysec", id="a store with fsync every second"),
        pytest.param("always", id="a store that ends itself"),
    ],
)
def test_a_disk_that_is_full(server, policy):
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        node = Node(Path(directory), {"appendonly": "yes", "appendfsync": policy, "save": ""})
        node.start()
        try:
            with deployed(server, REDIS_URL=f"redis://127.0.0.1:{node.port}") as deployment:
                load = Load.on(deployment, bodies=20)
                load.wait_for(0.3)
                node.limit_files_to(1)
                assert until(lambda: load.has_met(503))
                node.limit_files_to(-1)
                if policy == "always":
                    assert until(node.has_ended)
                    node.start()
                assert set(load.finish()) == {200, 503}
                assert deployment.stored() == load.everything()
        finally:
            node.kill()


def test_a_cluster_that_loses_a_node_and_gets_it_back(server):
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        cluster_in(Path(directory)) as cluster,
    ):
        url = cluster.settings.redis_url
        assert url is not None
        with deployed(server, REDIS_URL=url, GUARDWAVE_STORE="cluster") as deployment:
            load = Load.on(deployment, bodies=20)
            load.wait_for(0.3)
            lost = cluster.nodes[1]
            lost.kill()
            assert until(lambda: any(sender.answers[503] for sender in load.senders))
            lost.start()
            assert set(load.finish()) == {200, 503}
            assert deployment.stored() == load.everything()
