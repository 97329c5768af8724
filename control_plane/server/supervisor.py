"""Supervisor: the embedded store, the web workers and the worker, kept running."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType

import urllib3

from guardwave.control_plane.core.errors import StartError, StoreStartError
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.server import EmbeddedServer

TICK_S = 0.2
READY_WITHIN_S = 60.0
STOP_WITHIN_S = 6.0
CLIENT_ENDS_WITHIN_S = 2.0
_TOO_SOON_S = 10.0
_PR_SET_PDEATHSIG = 1
_MOST_EARLY_ENDS = 5


@dataclass(slots=True)
class Child:
    """A process that is started again when it ends, until it ends early five times in a row."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    is_client: bool = False
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    early_ends: int = 0

    def start(self) -> None:
        """Start the process in its own session, so that Ctrl-C reaches only the supervisor."""
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603  # commands of this module, no user input
            self.command,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  # this process has one thread then
        )

    def ensure_running(self) -> None:
        """Start the process again if it ended.

        Raises:
            StartError: it ended within 10 s of its start five times in a row.
        """
        if self.process is None or self.process.poll() is None:
            return
        is_early = time.monotonic() - self.started_at < _TOO_SOON_S
        self.early_ends = self.early_ends + 1 if is_early else 0
        if self.early_ends >= _MOST_EARLY_ENDS:
            raise StartError(
                f"{self.name} ended with code {self.process.returncode} right after its start, "
                f"{self.early_ends} times in a row; see what it printed"
            )
        self.start()

    def ask_to_end(self) -> None:
        """Ask the process to end."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self, *, within: float) -> None:
        """Wait for the process to end, and kill it when it does not."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, within))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass(slots=True)
class Supervisor:
    """Runs the store (unless `REDIS_URL` names one) and the children until asked to stop."""

    settings: Settings
    children: list[Child]
    store: EmbeddedServer | None = None
    stop_asked: threading.Event = field(default_factory=threading.Event)

    def watch_signals(self) -> None:
        """Stop at SIGINT or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_asked.set()

    def start(self) -> None:
        """Start every child."""
        for child in self.children:
            child.start()

    def tick(self) -> None:
        """Start every process again that has ended.

        Raises:
            StartError: the store or a child cannot be kept running.
        """
        if self.store is not None:
            self.store.ensure_running()
        for child in self.children:
            child.ensure_running()

    def wait_until_ready(self) -> None:
        """Wait until `/readyz` answers 200.

        Raises:
            StartError: it does not within a minute.
        """
        pool = urllib3.PoolManager(retries=False, timeout=2.0)
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.stop_asked.is_set():
            self.tick()
            try:
                if pool.request("GET", f"{url_of(self.settings)}/readyz").status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise StartError(
                    f"{url_of(self.settings)}/readyz did not answer 200 within "
                    f"{READY_WITHIN_S:.0f} s; see what the web workers printed"
                )
            self.stop_asked.wait(TICK_S)

    def wait_until_listening(self, port: int) -> None:
        """Wait until a process listens on the port.

        Raises:
            StartError: none does within a minute.
        """
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.stop_asked.is_set():
            self.tick()
            try:
                socket.create_connection((_reachable_host(self.settings.host), port), 2.0).close()
            except OSError:
                pass
            else:
                return
            if time.monotonic() > deadline:
                raise StartError(
                    f"nothing listened on port {port} within {READY_WITHIN_S:.0f} s; see what its "
                    "process printed"
                )
            self.stop_asked.wait(TICK_S)

    def run(self) -> None:
        """Keep everything running until asked to stop."""
        while not self.stop_asked.wait(TICK_S):
            self.tick()

    def stop(self) -> None:
        """Stop the children, clients first and the others together, then the store."""
        deadline = time.monotonic() + STOP_WITHIN_S
        for child in reversed(self.children):
            child.ask_to_end()
            if child.is_client:
                # A client ends first, so that it does not miss the processes it talks to.
                child.end(within=CLIENT_ENDS_WITHIN_S)
        for child in self.children:
            child.end(within=deadline - time.monotonic())
        if self.store is not None:
            self.store.stop()


def _end_with_parent() -> None:
    """Ask Linux to end this process with the supervisor: an orphan would keep the port.

    See prctl(2), PR_SET_PDEATHSIG. On other systems `check_port` finds orphans.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def check_port(settings: Settings) -> None:
    """Check that the web server's port is free.

    Raises:
        StartError: the port is taken, or the address is not this machine's.
    """
    _check_free(settings.host, settings.port, variable="GUARDWAVE_PORT")


def check_grpc_port(settings: Settings) -> None:
    """Check that the port of OTLP over gRPC is free; raises as `check_port`."""
    _check_free(settings.host, settings.grpc_port, variable="GUARDWAVE_GRPC_PORT")


def _check_free(host: str, port: int, *, variable: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartError(
                f"{host}:{port} cannot be listened on ({error.strerror}); stop "
                f"what is there, or set {variable} or GUARDWAVE_HOST"
            ) from error


def url_of(settings: Settings) -> str:
    """Return the server's address for a browser on this machine."""
    return f"http://{_url_host(settings)}:{settings.port}"


def grpc_url_of(settings: Settings) -> str:
    """Return the address of OTLP over gRPC for exporters on this machine."""
    return f"http://{_url_host(settings)}:{settings.grpc_port}"


def _url_host(settings: Settings) -> str:
    host = _reachable_host(settings.host)
    return f"[{host}]" if ":" in host else host


def _reachable_host(host: str) -> str:
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104  # compared, not bound


def start_store(settings: Settings) -> EmbeddedServer | None:
    """Start the embedded store; None when `REDIS_URL` names another.

    Raises:
        StoreStartError: the store does not start, or its directory cannot be used.
    """
    if settings.redis_url is not None:
        return None
    try:
        return EmbeddedServer.start(settings.data_dir)
    except OSError as error:
        raise StoreStartError(
            f"the data directory {settings.data_dir} cannot be used ({error.strerror}); set "
            "GUARDWAVE_DATA to one that can"
        ) from error


def web_child(environment: Mapping[str, str]) -> Child:
    """Return the web workers' process."""
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--config",
        "python:guardwave.control_plane.server.gunicorn_conf",
        "guardwave.control_plane.server.wsgi:app",
    ]
    return Child("the web server", command, environment)


def worker_child(environment: Mapping[str, str]) -> Child:
    """Return the worker's process."""
    return Child(
        "the worker", [sys.executable, "-m", "guardwave.control_plane.cli", "worker"], environment
    )


def grpc_child(environment: Mapping[str, str]) -> Child:
    """Return the process that listens for OTLP over gRPC."""
    return Child(
        "OTLP over gRPC", [sys.executable, "-m", "guardwave.control_plane.server.grpc"], environment
    )
