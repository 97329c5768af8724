"""Persistent senders: hosts that resend until every request is acknowledged."""

import contextlib
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import urllib3

from guardwave.control_plane.core import policy
from guardwave.control_plane.core.clock import Clock
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.hosts import Assigner, Prompt, logs
from tests.support.web_workers import PATIENCE_S, web_worker
from tests.support.worlds import ENVIRONMENT, GUARD, world_in

OWNERS, PROMPTS = 8, 5
# As the exporters of OpenTelemetry's SDKs do; what has no answer by then counts as unanswered.
EXPORTERS_WAIT_S = 10.0


def exporter_pool(*, waits_s: float = PATIENCE_S) -> urllib3.PoolManager:
    """Return connections of an exporter, which waits so long for an answer."""
    return urllib3.PoolManager(retries=False, timeout=waits_s)


@dataclass
class Deployment:
    """A web worker over a store, and what hosts need to send to it."""

    context: Context
    address: str
    token: str
    at: datetime
    ids: tuple[str, ...]

    def body(self, owner: int, name: str) -> bytes:
        """Return start and end of prompts that a body of another name does not hold."""
        prompts = [
            Prompt(f"{name}-{number}", [self.ids[owner]], self.at) for number in range(PROMPTS)
        ]
        return logs([event for prompt in prompts for event in prompt.events()]).SerializeToString()

    def send(self, body: bytes, pool: urllib3.PoolManager | None = None) -> int:
        """Send a body once; return the status of the answer, 0 without one in time."""
        pool = pool or exporter_pool()
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/x-protobuf",
        }
        try:
            answer = pool.request("POST", f"{self.address}/v1/logs", body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            return 0
        if answer.status == 503:
            assert answer.headers["Retry-After"] == "1"
        return answer.status

    def stored(self) -> Counter[int]:
        """Return the prompts of each owner in the evidence, each whole."""
        days = [self.at.date()]
        rows = self.context.evidence.owner_days(ENVIRONMENT, GUARD, 1, days)
        assert all(row.started == row.ended == row.completed == row.covered for row in rows), rows
        place = {assignment_id.split(".")[2]: at for at, assignment_id in enumerate(self.ids)}
        return Counter({place[row.owner]: row.started for row in rows})


@contextlib.contextmanager
def deployed(server: EmbeddedServer, **variables: str) -> Iterator[Deployment]:
    """Run a web worker on a store that has one environment and its owners."""
    settings = Settings.from_env({"GUARDWAVE_DATA": str(server.data_dir), **variables})
    with connect(settings) as client:
        load_functions(client)
        context = make_context(client, clock=Clock(), policies=policy.load(None))
        context.environments.store_id()
        world_in(context, Mode.SHADOW)
        token = create_token(context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=True)
        assigner = Assigner(context, ENVIRONMENT)
        ids = tuple(assigner.of(f"owner-{number}")[1] for number in range(OWNERS))
        at = datetime.now(UTC) - timedelta(minutes=10)
        with web_worker(server, **variables) as address:
            yield Deployment(context, address, token, at, ids)


@contextlib.contextmanager
def embedded_store() -> Iterator[EmbeddedServer]:
    """Run a store of its own, which the block may kill."""
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as running,
    ):
        yield running


@dataclass
class Sender(threading.Thread):
    """A host of one owner. `answers` counts statuses, and broken connections under 0."""

    deployment: Deployment
    owner: int
    bodies: int
    acknowledged: threading.Semaphore
    copies: int = 1
    waits_s: float = PATIENCE_S
    answers: Counter[int] = field(default_factory=Counter)
    run_id: str = field(default_factory=lambda: os.urandom(8).hex())

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        pool = exporter_pool(waits_s=self.waits_s)
        for number in range(self.bodies):
            body = self.deployment.body(self.owner, f"{self.run_id}-{number}")
            copies = [
                threading.Thread(target=self._send, args=(pool, body), daemon=True)
                for _ in range(self.copies)
            ]
            for copy in copies:
                copy.start()
            for copy in copies:
                copy.join()
            self.acknowledged.release()

    def _send(self, pool: urllib3.PoolManager, body: bytes) -> None:
        pause = threading.Event()
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            status = self.deployment.send(body, pool)
            self.answers[status] += 1
            if status == 200:
                return
            pause.wait(0.05)


@dataclass
class Load:
    """Several senders at once."""

    senders: list[Sender]
    acknowledged: threading.Semaphore
    bodies: int
    before: Counter[int]

    @classmethod
    def on(
        cls,
        deployment: Deployment,
        *,
        bodies: int,
        copies: int = 1,
        waits_s: float = PATIENCE_S,
    ) -> "Load":
        acknowledged = threading.Semaphore(0)
        senders = [
            Sender(deployment, owner, bodies, acknowledged, copies, waits_s)
            for owner in range(OWNERS)
        ]
        before = deployment.stored()
        for sender in senders:
            sender.start()
        return cls(senders, acknowledged, bodies, before)

    def wait_for(self, share: float) -> None:
        """Wait until so much more of all requests is acknowledged."""
        for _ in range(int(OWNERS * self.bodies * share)):
            assert self.acknowledged.acquire(timeout=PATIENCE_S)

    def has_met(self, status: int, times: int = 1) -> bool:
        """Whether every sender has been answered so, as often."""
        return all(sender.answers[status] >= times for sender in self.senders)

    def finish(self) -> Counter[int]:
        """Wait for all senders, and return how often each answer came."""
        for sender in self.senders:
            sender.join(PATIENCE_S)
            assert not sender.is_alive()
        return sum((sender.answers for sender in self.senders), Counter())

    def everything(self) -> Counter[int]:
        """Return what must be stored when all of it was acknowledged."""
        added = PROMPTS * self.bodies
        return Counter({owner: self.before[owner] + added for owner in range(OWNERS)})


def web_worker_pids() -> list[int]:
    """Return the processes that gunicorn, started by this one, has forked to answer requests."""
    masters = [pid for pid in _children(os.getpid()) if "gunicorn" in _command(pid)]
    return [worker for pid in masters for worker in _children(pid)]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""
