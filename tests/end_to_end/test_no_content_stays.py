"""Content in telemetry: none of it is in files, answers or pages afterwards."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
import urllib3

from guardwave.control_plane.client import Assignments
from guardwave.control_plane.ingest.contract.events import EVENTS
from guardwave.control_plane.ingest.contract.points import ALLOWED_ON_POINTS
from guardwave.control_plane.stores.server.data_directory import socket_path
from guardwave.reducer import contract
from tests.end_to_end.canaries import CANARY, MARK, newest_ns, planted
from tests.end_to_end.native_canaries import PATH, NativeHost
from tests.end_to_end.serving import Api, Served, polls
from tests.support.otlp.qwen import VERSION, Body, cases
from tests.support.web_workers import PATIENCE_S

ENVIRONMENT, GUARD, OWNER = "internal", "repeated_tool_failure", "workspace-1"
NAMES = {"environment": ENVIRONMENT, "guard": GUARD, "owner": OWNER, "number": "1", "wave": "1"}
WHY = "a test of what stays"

pytestmark = pytest.mark.xdist_group("served")


class Deployment:
    """A served control plane which received every recorded case, full of content."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.pool = urllib3.PoolManager(retries=False, timeout=PATIENCE_S)
        self.admin = Api(served.url, served.token("--role", "admin"))
        at = ("--environment", ENVIRONMENT)
        self.ingest = served.token("--role", "ingest", *at, "--trusted")
        self.admin.put(f"/environments/{ENVIRONMENT}", {"reason": WHY})
        rollout = {"version_pin": [VERSION], "reason": WHY}
        self.admin.put(f"/environments/{ENVIRONMENT}/guards/{GUARD}", rollout)
        facts = [{"owner": OWNER, "ownership": "known", "trusted": True}]
        self.admin.ask("POST", f"/environments/{ENVIRONMENT}/owners", {"owners": facts})
        self.assignment_id = self._assignment_id(served.token("--role", "runtime", *at))
        self.answers: list[bytes] = []
        self.whole: list[bytes] = []

    def _assignment_id(self, runtime: str) -> str:
        for _ in polls():
            assignments = Assignments(
                self.served.url, runtime, ENVIRONMENT, service_version=VERSION
            )
            found = assignments.resolve(GUARD, OWNER)
            assignments.close()
            if found.assignment_id is not None and found.mode == "shadow":
                return found.assignment_id
        raise AssertionError(self.served.log)

    def send(self, body: Body) -> bytes:
        return self.send_bytes(body.signal, orjson.dumps(body.content))

    def send_bytes(
        self, signal: str, body: bytes, *, status: int = 200, content_type: str = "application/json"
    ) -> bytes:
        sent = self.pool.request(
            "POST",
            f"{self.served.url}/v1/{signal}",
            body=body,
            headers={
                "Authorization": f"Bearer {self.ingest}",
                "Content-Type": content_type,
                "User-Agent": CANARY,
            },
        )
        assert sent.status == status, sent.data
        self.answers.append(sent.data)
        return sent.data

    def receive(self) -> None:
        """Receive every case, the modes above shadow too: those latch, and are shown."""
        now = time.time_ns()
        for case in cases().values():
            shift = now - newest_ns(case) - 60_000_000_000
            for body in case.bodies:
                found = planted(body, shift_ns=shift, assignment_id=self.assignment_id)
                self.send(found)
        for planted_body in NativeHost(now, self.assignment_id).everything():
            answer = self.send(planted_body.body)
            if planted_body.is_whole:
                self.whole.append(answer)
        for forged in (f"a1.{CANARY}", f"{self.assignment_id}{CANARY}"):
            for other in NativeHost(now, forged).everything():
                self.send(other.body)
        for signal in ("logs", "metrics", "traces"):
            self.send_bytes(signal, f'{{"a": "{PATH}" {CANARY}'.encode(), status=400)
            protobuf = "application/x-protobuf"
            self.send_bytes(signal, f"\n{PATH}".encode(), status=400, content_type=protobuf)


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        served = Served(Path(directory))
        try:
            served.start()
            found = Deployment(served)
            found.receive()
            yield found
        finally:
            served.end()


def files_with(directory: Path, mark: bytes) -> list[str]:
    """Return the files below a directory that hold some bytes, whatever their case."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files if mark in path.read_bytes().lower()]


def test_the_telemetry_was_counted(deployment):
    summary = deployment.admin.get(f"/environments/{ENVIRONMENT}/owners/{OWNER}")
    prompts = sum(len(case.prompts) for case in cases().values())
    assert sum(row["started"] for row in summary["evidence"]) >= prompts
    shown = deployment.admin.get(f"/environments/{ENVIRONMENT}")
    assert shown["latch"] is not None


def test_every_native_event_and_metric_was_read_with_content_beside_what_is_right(deployment):
    assert set(deployment.whole) == {b"{}"}
    assert len(deployment.whole) == len(EVENTS) + len(ALLOWED_ON_POINTS)


def test_no_answer_repeats_content_but_a_wrong_word(deployment):
    words = [answer for answer in deployment.answers if MARK in answer.lower()]
    unquoted = [answer.replace(f" '{CANARY}', ".encode(), b"") for answer in words]
    assert [answer for answer in unquoted if MARK in answer.lower()] == []
    logged = b"".join(words)
    for field in (contract.DECISION, contract.OUTCOME, contract.TURNS, contract.INVARIANT):
        assert f"{field} is '{CANARY}', not ".encode() in logged, field
    assert any(b"rejectedDataPoints" in answer for answer in deployment.answers)


def test_no_file_holds_content(deployment):
    directory = deployment.served.data_dir
    # the version stands beside the content and is kept: a search that finds nothing would show
    assert any("aof" in name for name in files_with(directory, VERSION.encode()))
    assert files_with(directory, MARK) == []


def test_no_value_and_no_name_in_the_store_holds_content(deployment):
    store: Any = redis.Redis(
        unix_socket_path=str(socket_path(deployment.served.data_dir)), protocol=2
    )
    reads: dict[bytes, Callable[[bytes], list[bytes]]] = {
        b"string": lambda key: [store.get(key)],
        b"hash": lambda key: [item for pair in store.hgetall(key).items() for item in pair],
        b"set": lambda key: list(store.smembers(key)),
        b"zset": lambda key: store.zrange(key, 0, -1),
        b"list": lambda key: store.lrange(key, 0, -1),
        b"stream": lambda key: [repr(store.xrange(key)).encode()],
    }
    keys = list(store.scan_iter())
    found = [
        (key, item)
        for key in keys
        for item in [key, *reads[store.type(key)](key)]
        if MARK in item.lower()
    ]
    assert found == []
    assert any(key.startswith(b"ps:") for key in keys)


def test_no_resource_of_the_api_and_no_series_holds_content(deployment):
    url, pool = deployment.served.url, urllib3.PoolManager(retries=False, timeout=PATIENCE_S)
    document = orjson.loads(pool.request("GET", f"{url}/api/v1/openapi.json").data)
    paths = [path for path, verbs in document["paths"].items() if "get" in verbs]
    asked = [
        "/metrics",
        "/healthz",
        "/readyz",
        *(path.format_map(PathParameters()) for path in paths),
    ]
    statuses = {}
    for path in asked:
        bearer = {"Authorization": f"Bearer {deployment.admin.token}"}
        answer = pool.request("GET", f"{url}{path}", headers=bearer)
        statuses[path] = answer.status
        assert MARK not in answer.data.lower(), path
    assert statuses["/metrics"] == 200
    assert list(statuses.values()).count(200) > 12, statuses


class PathParameters(dict[str, str]):
    """Parameters of paths: the names of this deployment, and 1 for every number."""

    def __missing__(self, key: str) -> str:
        return NAMES.get(key, "1")


def test_no_page_holds_content(deployment):
    url, pool = deployment.served.url, urllib3.PoolManager(retries=False, timeout=PATIENCE_S)
    here = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html", "Origin": url}
    signed_in = pool.request(
        "POST",
        f"{url}/sign-in",
        fields={"token": deployment.admin.token},
        encode_multipart=False,
        headers=here,
        redirect=False,
    )
    assert signed_in.status == 303, signed_in.data
    cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
    place = f"/environments/{ENVIRONMENT}"
    for path in ("/", place, f"{place}/guards/{GUARD}", f"{place}/rollback", "/nothing-here"):
        answer = pool.request("GET", f"{url}{path}", headers={**here, **cookie}, redirect=False)
        assert answer.status in {200, 404}, path
        assert MARK not in answer.data.lower(), path


def test_no_export_holds_content(deployment):
    exported = subprocess.run(
        [sys.executable, "-m", "guardwave.control_plane.cli", "evidence", "export", ENVIRONMENT],
        env=deployment.served.environment,
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert b'"kind":"owner-day"' in exported.stdout
    assert MARK not in exported.stdout.lower() + exported.stderr.lower()
