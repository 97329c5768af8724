"""Served guardwave: `guardwave serve` as a process, reached only by HTTP."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from tests.support.web_workers import PATIENCE_S, free_port

POLL_S = 0.05


@dataclass
class Served:
    """A running `guardwave serve` with a data directory of its own."""

    data_dir: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        mine = {"GUARDWAVE_DATA": str(self.data_dir), "GUARDWAVE_PORT": str(self.port)}
        kept = {k: v for k, v in os.environ.items() if k != "REDIS_URL"}
        return {**kept, **mine, **self.variables}

    @property
    def log(self) -> str:
        return (self.data_dir / "serve.log").read_text()

    def start(self) -> None:
        """Start it and wait until it reports that it is ready."""
        with (self.data_dir / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "guardwave.control_plane.cli", "serve", *self.options],
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        pool = urllib3.PoolManager(retries=False, timeout=2.0)
        for _ in polls():
            assert self.process.poll() is None, self.log
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                if pool.request("GET", f"{self.url}/readyz").status == 200:
                    return
        raise AssertionError(self.log)

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit code: it takes about two seconds, or something hangs."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_S)

    def processes(self) -> tuple[int, ...]:
        """Return every process that was started with this data directory."""
        mark = f"GUARDWAVE_DATA={self.data_dir}\0".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_dead = b"\nState:\tZ" in (entry / "status").read_bytes()
                if not is_dead and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return tuple(found)

    def crash(self) -> None:
        """Kill every process of it, and wait until none is left that holds a port or a file."""
        for _ in polls():
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
        if self.process is not None:
            self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """End whatever is left of it."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.interrupt()
        self.crash()

    def token(self, *options: str) -> str:
        """Make a token with the command line and return it."""
        made = subprocess.run(
            [sys.executable, "-m", "guardwave.control_plane.cli", "token", "create", *options],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        found = re.search(r"gw_\S+", made.stdout)
        assert found is not None, made
        return found[0]


@dataclass(frozen=True)
class Answer:
    """What the API answered."""

    status: int
    headers: Mapping[str, str]
    document: Any


@dataclass(frozen=True)
class Api:
    """The API as one credential sees it. Each request takes a connection of its own."""

    url: str
    token: str

    def ask(self, method: str, path: str, document: object = None, **headers: str) -> Answer:
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Connection": "close",
            **({} if document is None else {"Content-Type": "application/json"}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = None if document is None else json.dumps(document)
        pool = urllib3.PoolManager(retries=False, timeout=PATIENCE_S)
        got = pool.request(method, f"{self.url}/api/v1{path}", body=body, headers=sent)
        content = json.loads(got.data) if got.data else None
        return Answer(got.status, dict(got.headers), content)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.document

    def put(self, path: str, document: object, **headers: str) -> Any:
        answer = self.ask("PUT", path, document, **headers)
        assert answer.status in {200, 201}, answer
        return answer.document


def polls() -> Iterator[None]:
    """Yield until patience ends, with a short pause between."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        yield
        time.sleep(POLL_S)
