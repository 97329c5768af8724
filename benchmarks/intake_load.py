"""Intake load: a web worker under HTTP load, at its limit or at a given rate."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from tests.support.web_workers import free_port, until

ROOT = Path(__file__).parents[1]
CONNECTIONS = 4
WARM_UP_S = 1.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class WebWorker(NamedTuple):
    """A running web worker: its process id, and the port that it listens on."""

    pid: int
    port: int


class Cost(NamedTuple):
    """Requests a second, the worker's CPU time for each, and how long the answers took."""

    per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


@contextmanager
def serving(app: str, server: EmbeddedServer) -> Iterator[WebWorker]:
    """Run gunicorn as `guardwave serve` does, with one worker."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603  # the benchmark's own command
        [
            sys.executable,
            "-m",
            "gunicorn",
            "-c",
            "python:guardwave.control_plane.server.gunicorn_conf",
            app,
        ],
        cwd=ROOT / "benchmarks",
        env={
            **os.environ,
            "GUARDWAVE_PORT": str(port),
            "GUARDWAVE_DATA": str(server.data_dir),
            "GUARDWAVE_WORKERS": "1",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}",
        },
    )
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert until(lambda: is_open(port) and children.read_text(), within=60)
        yield WebWorker(int(children.read_text().split()[0]), port)
    finally:
        process.terminate()
        process.wait()


def is_open(port: int) -> bool:
    """Whether something listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def measure(
    worker: WebWorker, requests: Iterator[bytes], *, seconds: float, rate: float | None = None
) -> Cost:
    """Send the requests for some seconds, after a warm-up, and count the answers.

    Without a `rate` each connection sends the next request as soon as it has an answer. With a rate
    in requests a second each request has a due time, and its latency counts from then, however late
    it was sent.
    """
    plan = Plan(requests, rate)
    run(worker.port, plan, WARM_UP_S)
    before, began = cpu_seconds(worker.pid), time.monotonic()
    latencies = sorted(run(worker.port, plan, seconds))
    elapsed = time.monotonic() - began
    cpu = cpu_seconds(worker.pid) - before
    size = len(latencies)
    return Cost(
        size / elapsed,
        cpu / size * 1e6,
        latencies[size // 2] * 1e3,
        latencies[min(size - 1, size * 99 // 100)] * 1e3,
    )


class Plan:
    """Hands requests to the connections, each with the time at which it is due."""

    def __init__(self, requests: Iterator[bytes], rate: float | None) -> None:
        self._requests = requests
        self._rate = rate
        self._lock = threading.Lock()
        self._due = 0.0

    def begin(self) -> None:
        """Let the next request be due now."""
        self._due = time.monotonic()

    def next(self) -> tuple[bytes, float]:
        """Return a request and when it is due."""
        with self._lock:
            request = next(self._requests)
            if self._rate is None:
                return request, time.monotonic()
            due = self._due
            self._due += 1 / self._rate
            return request, due


def run(port: int, plan: Plan, seconds: float) -> list[float]:
    """Send over a few connections for a while; return the latency of each answer in seconds."""
    plan.begin()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        parts = threads.map(lambda _: ask(port, plan, seconds), range(CONNECTIONS))
        return [latency for part in parts for latency in part]


def ask(port: int, plan: Plan, seconds: float) -> list[float]:
    """Send one request after the other over one connection."""
    latencies: list[float] = []
    ends_at = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < ends_at:
            request, due = plan.next()
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(request)
            answer = connection.recv(65536)
            if not answer.startswith(b"HTTP/1.1 200 ") or b"ontent-Length: 0\r\n" not in answer:
                raise SystemExit(f"intake answered {answer!r}")
            latencies.append(time.monotonic() - due)
    return latencies


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
