"""A real cluster and a real set of Sentinels: server processes of the embedded program."""

import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from guardwave.control_plane.core.settings import Settings, StoreKind
from guardwave.control_plane.stores.server.embedded import find_program
from tests.support.web_workers import HERE, PATIENCE_S, free_port

SLOTS = 16384
NODE_TIMEOUT_MS = 1000
FAST_SENTINEL = ("publish-period", "100", "ping-period", "100")
_pause = threading.Event()


def until(condition: Callable[[], bool], *, why: str) -> None:
    """Wait for a condition of processes that send no notice of it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(redis.RedisError, redis.exceptions.RedisClusterException):
            if condition():
                return
        _pause.wait(0.02)
    raise AssertionError(f"not in {PATIENCE_S:.0f} s: {why}")


@dataclass
class Node:
    """One server process and its directory."""

    directory: Path
    options: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    program: Path = field(default_factory=find_program)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, on its earlier data if there is any, and wait until it answers."""
        self.directory.mkdir(exist_ok=True)
        options = {"port": str(self.port), "bind": HERE, "dir": str(self.directory), **self.options}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), *self.arguments, *words],
                stdout=log,
                stderr=log,
                # Python ignores SIGXFSZ: so does the server, which then sees a full disk.
                restore_signals=False,
            )
        until(self._answers, why=f"the server on port {self.port} answers")

    def _answers(self) -> bool:
        if self.has_ended():
            raise AssertionError((self.directory / "log").read_text()[-2000:])
        with self.client() as client:
            return bool(client.ping())

    def client(self) -> redis.Redis:
        return redis.Redis(host=HERE, port=self.port, protocol=2, socket_timeout=2)

    def execute_once(self, *words: str | int) -> None:
        """Send a command that must not be repeated, and wait long for the answer."""
        once = Retry(NoBackoff(), 0)
        with redis.Redis(
            host=HERE, port=self.port, protocol=2, socket_timeout=PATIENCE_S, retry=once
        ) as client:
            client.execute_command(*words)

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """End it without a warning (SIGKILL), as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """Let it neither run nor close its connections."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def limit_files_to(self, size: int) -> None:
        """Let no file grow beyond so many bytes, as on a full disk; -1 takes the limit away."""
        assert self.process is not None
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, hard))

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)


def durable(directory: Path, **further: str) -> Node:
    """Return a server that writes before it acknowledges: a crash loses nothing."""
    options = {"appendonly": "yes", "appendfsync": "no", "save": ""}
    return Node(directory, {**options, **further})


@dataclass
class Cluster:
    """Three nodes that share the slots, and a replica of the first when one was asked for."""

    nodes: list[Node]
    replica: Node | None = None

    @property
    def all_nodes(self) -> list[Node]:
        return self.nodes if self.replica is None else [*self.nodes, self.replica]

    @property
    def settings(self) -> Settings:
        """Settings that name two of the nodes; the others are found."""
        places = ",".join(f"{HERE}:{node.port}" for node in self.nodes[:2])
        return Settings(redis_url=f"redis://{places}", store=StoreKind.CLUSTER)

    def is_well(self) -> bool:
        for node in self.all_nodes:
            if node.has_ended():
                continue
            with node.client() as client:
                info = client.execute_command("CLUSTER", "INFO")
                known = client.execute_command("CLUSTER", "NODES")
            if b"cluster_state:ok" not in info or known.count(b"\n") != len(self.all_nodes):
                return False
        return True


@contextlib.contextmanager
def cluster_in(
    directory: Path, *, with_replica: bool = False, program: Path | None = None
) -> Iterator[Cluster]:
    """Run a cluster until the block ends, of the embedded program unless another one is given."""
    options = {
        "cluster-enabled": "yes",
        "cluster-node-timeout": str(NODE_TIMEOUT_MS),
        "cluster-config-file": "nodes.conf",
        "cluster-replica-validity-factor": "0",
        "repl-diskless-sync-delay": "0",
    }
    nodes = [
        durable(directory / f"node-{at}", **options, **{"cluster-port": str(free_port())})
        for at in range(3 + with_replica)
    ]
    for node in nodes:
        node.program = program or node.program
    cluster = Cluster(nodes[:3], nodes[3] if with_replica else None)
    try:
        for node in nodes:
            node.start()
        _join(cluster)
        yield cluster
    finally:
        for node in nodes:
            node.kill()


def _join(cluster: Cluster) -> None:
    first, *others = cluster.all_nodes
    width = SLOTS // len(cluster.nodes) + 1
    for at, node in enumerate(cluster.nodes):
        low, high = at * width, min((at + 1) * width, SLOTS) - 1
        node.execute_once("CLUSTER", "ADDSLOTSRANGE", low, high)
        node.execute_once("CLUSTER", "SET-CONFIG-EPOCH", at + 1)

    def is_joined() -> bool:
        # An introduction lapses after a second in which one of the two did not hear the other.
        with first.client() as client:
            known = client.execute_command("CLUSTER", "NODES").decode()
        for node in others:
            if f":{node.port}@" not in known:
                first.execute_once("CLUSTER", "MEET", HERE, node.port, node.options["cluster-port"])
        return cluster.is_well()

    until(is_joined, why="the cluster is joined")
    if cluster.replica is not None:
        with first.client() as client, cluster.replica.client() as replica:
            name = client.execute_command("CLUSTER", "MYID")
            replica.execute_command("CLUSTER", "REPLICATE", name)
            until(lambda: _follows(replica), why="the replica follows")


@dataclass
class SentinelSetup:
    """A server with a replica, and their Sentinel.

    Three Sentinels may vote for themselves again and again; one always has a majority.
    """

    master: Node
    replica: Node
    sentinel: Node

    @property
    def settings(self) -> Settings:
        # Nobody listens on port 1: the next place is asked.
        places = f"{HERE}:1,{HERE}:{self.sentinel.port}"
        return Settings(redis_url=f"redis://{places}/guardwave", store=StoreKind.SENTINEL)


@contextlib.contextmanager
def sentinel_in(directory: Path) -> Iterator[SentinelSetup]:
    """Run a server, its replica and their Sentinel until the block ends."""
    started: list[Node] = []

    def run(node: Node) -> Node:
        started.append(node)
        node.start()
        return node

    try:
        master = run(durable(directory / "master"))
        replica = run(
            durable(
                directory / "replica",
                replicaof=f"{HERE} {master.port}",
                **{"repl-diskless-sync-delay": "0"},
            )
        )
        with replica.client() as client:
            until(lambda: _follows(client), why="the replica follows")
        sentinel = run(_sentinel(directory / "sentinel", master))
        # It looks every 10 s and speaks every 2 s, unless these settings make it faster.
        with sentinel.client() as client:
            client.execute_command("SENTINEL", "DEBUG", "info-period", "100", *FAST_SENTINEL)
        until(lambda: _knows_all(sentinel), why="the Sentinel knows the replica")
        yield SentinelSetup(master, replica, sentinel)
    finally:
        for node in started:
            node.kill()


def _follows(replica: redis.Redis) -> bool:
    return replica.info("replication").get("master_link_status") == "up"


def _sentinel(directory: Path, master: Node) -> Node:
    directory.mkdir()
    configuration = directory / "sentinel.conf"
    configuration.write_text(
        f"sentinel monitor guardwave {HERE} {master.port} 1\n"
        "sentinel down-after-milliseconds guardwave 500\n"
        "sentinel failover-timeout guardwave 3000\n"
    )
    return Node(directory, arguments=(str(configuration), "--sentinel"))


def _knows_all(sentinel: Node) -> bool:
    with sentinel.client() as client:
        facts = client.sentinel_master("guardwave")
    return bool(facts["num-slaves"] == 1)
