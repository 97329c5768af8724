"""Web workers in tests: gunicorn processes over the store of the tests."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import urllib3

from guardwave.control_plane.stores.server.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
# A disk may stall for seconds, and eight other workers may want the processor.
PATIENCE_S = 120.0
HERE = "127.0.0.1"
_pause = threading.Event()
_given: set[int] = set()


def until(condition, *, within: float = PATIENCE_S, every: float = 0.01):
    """Return the first true value of the condition; None when there is none in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        _pause.wait(every)
    return None


def free_port() -> int:
    """Return a port that nothing listens on now, below the range of outgoing connections.

    It is used a moment later, and in that range a connection of another test could take it first.
    No process of the tests gets a port that it, or another one, got before.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = 20_000 + secrets.randbelow(12_000 // workers) * workers + worker
        if port in _given:
            continue
        _given.add(port)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind((HERE, port))
            return port


@contextlib.contextmanager
def web_worker(server: EmbeddedServer, **variables: str) -> Iterator[str]:
    """Run gunicorn with one worker on the server's data; yield its address once it is ready."""
    port = free_port()
    environment = {
        **os.environ,
        "GUARDWAVE_PORT": str(port),
        "GUARDWAVE_DATA": str(server.data_dir),
        "GUARDWAVE_WORKERS": "1",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "python:guardwave.control_plane.server.gunicorn_conf",
    ]
    process = subprocess.Popen(
        [*command, "guardwave.control_plane.server.wsgi:app"], cwd=ROOT, env=environment
    )
    address = f"http://{HERE}:{port}"
    try:
        ready = until(lambda: process.poll() is not None or is_ready(address))
        assert ready, "the web worker did not get ready in time"
        assert process.poll() is None, "the web worker ended while starting"
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def is_ready(address: str) -> bool:
    """Whether `/readyz` answers 200."""
    with contextlib.suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("GET", f"{address}/readyz", retries=False).status == 200
    return False
