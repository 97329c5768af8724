"""Web workers as they really run: gunicorn processes over the store of the tests."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import urllib3

from control_plane.stores.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 60.0
_pause = threading.Event()


def until(condition, *, within: float, every: float = 0.01):
    """Return the first true value of the condition; None when there is none in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        _pause.wait(every)
    return None


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
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
    command = [sys.executable, "-m", "gunicorn", "-c", "python:control_plane.gunicorn_conf"]
    process = subprocess.Popen([*command, "control_plane.wsgi:app"], cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        ready = until(lambda: process.poll() is not None or is_ready(address), within=START_LIMIT_S)
        assert ready, "the web worker did not get ready in time"
        assert process.poll() is None, "the web worker ended while starting"
        yield address
    finally:
        process.terminate()
        process.wait(30)


def is_ready(address: str) -> bool:
    """Whether `/readyz` answers 200."""
    with contextlib.suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("GET", f"{address}/readyz", retries=False).status == 200
    return False
