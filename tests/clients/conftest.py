"""Live servers: a web worker and a gRPC server over a store that a test may kill."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from guardwave.control_plane.core import policy
from guardwave.control_plane.core.clock import Clock
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import assignment_for
from tests.support.web_workers import PATIENCE_S, ROOT, free_port, until, web_worker
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION, world_in

JS = Path(__file__).parent / "js"
PYTHON_HOST = Path(__file__).parent / "python_host.py"


@dataclass(frozen=True)
class Deployment:
    """What runs: the store, a web worker, a gRPC server; and what a host needs to send."""

    server: EmbeddedServer
    context: Context
    token: str
    http_port: int
    grpc_port: int

    def rows(self, owner: str) -> list[OwnerDay]:
        """Return the evidence of this owner, today's and yesterday's."""
        now = datetime.now(UTC)
        days = [now.date(), (now - timedelta(days=1)).date()]
        assignment, _ = assignment_for(self.context, owner)
        rows = self.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, days)
        return [row for row in rows if row.owner == assignment.pseudonym]

    def started(self, owner: str) -> int:
        """Return how many prompts of this owner are in the evidence, each with its end."""
        mine = self.rows(owner)
        assert all(row.started == row.completed == row.covered for row in mine)
        return sum(row.started for row in mine)

    def executions(self) -> int:
        """Return the counted tool calls."""
        now = datetime.now(UTC)
        days = [now.date(), (now - timedelta(days=1)).date()]
        counted = [self.context.evidence.counters(ENVIRONMENT, day) for day in days]
        return sum(
            value
            for counters in counted
            for (_, counter), value in counters.items()
            if "tool.executions" in counter
        )

    def assignment_id(self, owner: str) -> str:
        return assignment_for(self.context, owner)[1]

    def variables(self, port: int, timeout: str) -> dict[str, str]:
        """Return the environment of a host that sends to this port, until the time-out ends."""
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("OTEL_", "GUARDWAVE_"))
        }
        attributes = {
            "service.name": "agent-host",
            "service.version": VERSION,
            "service.instance.id": os.urandom(8).hex(),
            "deployment.environment.name": ENVIRONMENT,
        }
        return {
            **kept,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": timeout,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{self.token}",
            "OTEL_RESOURCE_ATTRIBUTES": ",".join(f"{k}={v}" for k, v in attributes.items()),
        }

    def python_host(self, protocol: str, assignment_id: str, *, port: int) -> subprocess.Popen[str]:
        """Start a host with the Python SDK."""
        arguments = [sys.executable, str(PYTHON_HOST), protocol, "p-1", assignment_id]
        return _run(arguments, self.variables(port, f"{PATIENCE_S:.0f}"))

    def js_host(self, encoding: str, assignment_id: str, *, port: int) -> subprocess.Popen[str]:
        """Start a host with the JavaScript SDK."""
        arguments = ["node", "host.mjs", encoding, "p-1", assignment_id]
        # This SDK counts the time-out in milliseconds, as the specification does.
        return _run(arguments, self.variables(port, f"{1000 * PATIENCE_S:.0f}"), directory=JS)


def _run(
    arguments: list[str], environment: dict[str, str], *, directory: Path = ROOT
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(host: subprocess.Popen[str]) -> str:
    """Wait for a host to end well and return what it printed."""
    output, _ = host.communicate(timeout=PATIENCE_S)
    assert host.returncode == 0, output
    return output


@contextlib.contextmanager
def _grpc_server(server: EmbeddedServer, log: Path) -> Iterator[int]:
    port = free_port()
    environment = {
        **os.environ,
        "GUARDWAVE_GRPC_PORT": str(port),
        "GUARDWAVE_DATA": str(server.data_dir),
        "PYTHONPATH": str(ROOT),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "guardwave.control_plane.server.grpc"],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        assert until(lambda: process.poll() is not None or listens(port))
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, log.read_text()


def listens(port: int) -> bool:
    """Return whether a connection to this port is taken."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
        connect(Settings(data_dir=server.data_dir)) as client,
    ):
        load_functions(client)
        context = make_context(client, clock=Clock(), policies=policy.load(None))
        context.environments.store_id()
        world_in(context, Mode.SHADOW)
        token = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
        with (
            web_worker(server) as address,
            _grpc_server(server, Path(directory) / "grpc.log") as grpc_port,
        ):
            http_port = int(address.rpartition(":")[2])
            yield Deployment(server, context, token, http_port, grpc_port)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The exporters of package-lock.json, installed beside it when they are not there."""
    remedy = "install nodejs and npm (Debian: apt-get install nodejs npm)"
    if shutil.which("node") is None or shutil.which("npm") is None:
        message = f"Node is not on PATH, so the JavaScript exporters are NOT tested here; {remedy}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    modules = JS / "node_modules"
    done = modules / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < (JS / "package-lock.json").stat().st_mtime:
        subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"],
            cwd=JS,
            check=True,
            capture_output=True,
            timeout=180,
        )
    return modules
