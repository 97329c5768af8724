"""Cost of an assignment beside a bare WSGI reply and a Flask reply, on the same gunicorn worker.

Compare ratios of one run: absolute numbers depend on the machine. CPU time is that of the worker
alone, so a load generator that is slower than the server changes nothing.
"""

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from flask import Flask, Response, jsonify  # the checkout comes first on the path

from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane import build_data_plane
from guardwave.control_plane.data_plane.answer_cache import AnswerCache
from guardwave.control_plane.data_plane.assignment_request import AssignmentRequest
from guardwave.control_plane.data_plane.assignments import answer_assignment
from guardwave.control_plane.rollouts.context import open_store
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.reducer.vocabulary import Mode
from tests.support.web_workers import free_port, until
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION, World, context_over, world_in

CONNECTIONS = 4
WARM_UP_S = 1.0
MEASURED_S = 4.0
ROUNDS = 2
OWNERS = 1000
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def bare(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer two bytes."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]


flask = Flask(__name__)


@flask.get("/<path:_anything>")
def answer_by_flask(_anything: str) -> Response:
    """Answer a small JSON object, as the tutorial does."""
    return jsonify(mode="shadow")


class Cost(NamedTuple):
    """The cost of one kind of answer: answers a second, and the worker's CPU time for each."""

    per_second: float
    cpu_us: float


def main() -> None:
    """Measure and print the table."""
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        context = context_over(open_store(Settings(data_dir=server.data_dir)))
        world = world_in(context, Mode.ENFORCE, owners=OWNERS)
        token = world.token()
        measure_http(server, world, token)
        measure_in_process(world, token)


def measure_http(server: EmbeddedServer, world: World, token: str) -> None:
    """Print the cost of each kind of answer over HTTP."""
    requests = [request_bytes(owner, token) for owner in world.roster]
    kinds = {
        "bare WSGI": ("assignment:bare", False),
        "Flask jsonify": ("assignment:flask", False),
        "assignment": ("guardwave.control_plane.server.wsgi:app", True),
    }
    best: dict[str, Cost] = {}
    for _ in range(ROUNDS):
        for kind, (app, is_ours) in kinds.items():
            with gunicorn(app, server, is_ours=is_ours) as (pid, port):
                cost = measure(pid, port, requests)
            best[kind] = max(best.get(kind, cost), cost)
    floor = best["bare WSGI"]
    print(f"{'':16}{'answers/s':>12}{'of bare':>9}{'CPU us':>9}{'of bare':>9}")
    for kind, cost in best.items():
        rate, cpu = cost.per_second / floor.per_second, floor.cpu_us / cost.cpu_us
        print(f"{kind:16}{cost.per_second:>12,.0f}{rate:>9.2f}{cost.cpu_us:>9.0f}{cpu:>9.2f}")


def measure_in_process(world: World, token: str) -> None:
    """Print the cost of an answer without HTTP: from the cache, and computed."""
    plane = build_data_plane(world.context)
    query, authorization = f"service.version={VERSION}", f"Bearer {token}"
    requests = [
        AssignmentRequest(ENVIRONMENT, GUARD, owner, query=query, authorization=authorization)
        for owner in world.roster
    ]

    def answer_all() -> None:
        for request in requests:
            answer_assignment(plane, request)

    def answer_all_uncached() -> None:
        uncached = replace(plane, answers=AnswerCache())
        for request in requests:
            answer_assignment(uncached, request)

    answer_all()
    print("\nanswer_assignment in process, CPU us")
    for what, run in {"cached": answer_all, "computed": answer_all_uncached}.items():
        seconds = min(timeit.repeat(run, timer=time.thread_time, number=5, repeat=5))
        print(f"{what:16}{seconds / 5 / len(requests) * 1e6:>12.1f}")
    plane.refresher.stop()


def request_bytes(owner: str, token: str) -> bytes:
    """Return one GET as it is on the wire."""
    path = f"/api/v1/environments/{ENVIRONMENT}/guards/{GUARD}/assignments/{owner}"
    return (
        f"GET {path}?service.version={VERSION} HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {token}\r\nAccept: application/json\r\n\r\n"
    ).encode()


@contextmanager
def gunicorn(app: str, server: EmbeddedServer, *, is_ours: bool) -> Iterator[tuple[int, int]]:
    """Run one worker of 8 threads; yield the worker's process id and its port."""
    port = free_port()
    ours = ["-c", "python:guardwave.control_plane.server.gunicorn_conf"]
    plain = ["-b", f"127.0.0.1:{port}", "-k", "gthread", "--threads", "8", "--keep-alive", "75"]
    options = [*(ours if is_ours else plain), "--log-level", "error", "--no-control-socket"]
    process = subprocess.Popen(  # noqa: S603  # the benchmark's own command
        [sys.executable, "-m", "gunicorn", *options, app],
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
        assert until(lambda: is_open(port) and children.read_text(), within=30)
        yield int(children.read_text().split()[0]), port
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


def measure(pid: int, port: int, requests: list[bytes]) -> Cost:
    """Send the requests over a few connections for some seconds, and count the answers."""
    load(port, requests, WARM_UP_S)
    before, started = cpu_seconds(pid), time.monotonic()
    answers = load(port, requests, MEASURED_S)
    elapsed = time.monotonic() - started
    return Cost(answers / elapsed, (cpu_seconds(pid) - before) / answers * 1e6)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def load(port: int, requests: list[bytes], seconds: float) -> int:
    """Send the requests repeatedly over all connections; return the number of 200 answers."""
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        shares = [requests[number::CONNECTIONS] for number in range(CONNECTIONS)]
        return sum(threads.map(lambda share: ask(port, share, seconds), shares))


def ask(port: int, requests: list[bytes], seconds: float) -> int:
    """Send one request after the other over one connection; return the number of answers."""
    ends_at = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for count, request in enumerate(itertools.cycle(requests)):
            if time.monotonic() > ends_at:
                return count
            connection.sendall(request)
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(65536)
    return 0


if __name__ == "__main__":
    main()
