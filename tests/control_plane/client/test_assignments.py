"""The client over a real socket, against control planes that answer well, badly, late or never."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from control_plane.client import Assignments
from control_plane.client import assignments as module
from reducer.vocabulary import Mode
from tests.control_plane.web_workers import PATIENCE_S, until

GUARD = "repeated_tool_failure"
LIMIT_S = 0.2


def answer(**changed):
    """Return an answer of the control plane."""
    return {
        "environment": "internal",
        "guard": GUARD,
        "mode": "enforce",
        "cohort": "enforced",
        "wave": 2,
        "generation": 7,
        "reasons": [],
        "sentence": "Mode enforce: cohort enforced of wave 2.",
        "assignment_id": "a1.x",
        "ttl_s": 30,
        **changed,
    }


class ControlPlane:
    """A server on loopback that answers what the test tells it to."""

    def __init__(self):
        self.status = 200
        self.document = answer()
        self.body = None
        self.etag = '"one"'
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.let_go = threading.Event()
        self.let_go.set()
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                plane.asked.append((self.path, dict(self.headers)))
                plane.let_go.wait(PATIENCE_S)
                plane.reply(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, request):
        body = self.body if self.body is not None else json.dumps(self.document).encode()
        unchanged = self.status == 200 and request.headers.get("If-None-Match") == self.etag
        request.send_response(304 if unchanged else self.status)
        request.send_header("ETag", self.etag)
        request.send_header("Content-Length", str(0 if unchanged else len(body)))
        request.end_headers()
        if not unchanged:
            request.wfile.write(body)

    def stop(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def plane():
    running = ControlPlane()
    yield running
    running.stop()


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def patience(monkeypatch):
    """Let an answer come late, as on a busy machine; the limit has a test of its own."""
    monkeypatch.setattr(module, "NETWORK_TIMEOUT_SECONDS", PATIENCE_S)
    monkeypatch.setattr(module, "LONGEST_WAIT_SECONDS", PATIENCE_S)


@pytest.fixture
def assignments(plane, seconds, patience):
    made = Assignments(
        plane.address,
        "gw_x_y",
        "internal",
        service_version="1.4.0",
        monotonic=seconds,
        timeout_seconds=PATIENCE_S,
    )
    yield made
    made.close()


def test_an_owner_gets_what_the_control_plane_says(plane, assignments):
    found = assignments.resolve(GUARD, "workspace-1")
    assert (found.mode, found.assignment_id, found.generation) == (Mode.ENFORCE, "a1.x", 7)
    assert not found.is_fallback
    path, headers = plane.asked[0]
    assert path == (
        f"/api/v1/environments/internal/guards/{GUARD}/assignments/workspace-1"
        "?service.version=1.4.0&route=interactive_foreground"
    )
    assert headers["Authorization"] == "Bearer gw_x_y"


def test_a_young_answer_is_not_asked_for_again(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    seconds.now += 4.9
    assert assignments.resolve(GUARD, "workspace-1") is first
    assert len(plane.asked) == 1


def test_an_older_answer_is_asked_for_with_its_etag(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1") is first
    assert plane.asked[1][1]["If-None-Match"] == '"one"'


def test_a_rollback_is_followed(plane, assignments, seconds):
    assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW


def test_while_the_control_plane_is_away_the_last_answer_stays_for_its_ttl(
    plane, assignments, seconds
):
    first = assignments.resolve(GUARD, "workspace-1")
    plane.status = 503
    seconds.now += 29
    assert assignments.resolve(GUARD, "workspace-1") is first
    seconds.now += 2
    fallen = assignments.resolve(GUARD, "workspace-1")
    assert (fallen.mode, fallen.is_fallback) == (Mode.SHADOW, True)


def test_an_older_generation_is_never_used(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(generation=6, cohort="control"), '"old"'
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1") is first
    seconds.now += 30
    assert assignments.resolve(GUARD, "workspace-1").is_fallback


def test_a_newer_generation_seen_for_one_owner_ends_the_answers_of_the_others(
    plane, assignments, seconds
):
    assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
    assignments.resolve(GUARD, "workspace-2")
    assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_ends_what_was_held(plane, assignments, seconds, status):
    assignments.resolve(GUARD, "workspace-1")
    plane.status = status
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1").is_fallback


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(json.dumps(answer(mode="charge")).encode(), id="unknown mode"),
        pytest.param(json.dumps(answer(mode=None)).encode(), id="no mode"),
        pytest.param(json.dumps(answer(generation="7")).encode(), id="generation as text"),
        pytest.param(json.dumps(answer(generation=True)).encode(), id="generation as truth"),
        pytest.param(json.dumps(answer(reasons="none")).encode(), id="reasons as text"),
        pytest.param(json.dumps(answer(sentence="x" * 70_000)).encode(), id="far too long"),
    ],
)
def test_an_answer_that_makes_no_sense_is_shadow(plane, assignments, body):
    plane.body = body
    found = assignments.resolve(GUARD, "workspace-1")
    assert (found.mode, found.is_fallback, found.assignment_id) == (Mode.SHADOW, True, None)


def test_nobody_listening_is_shadow():
    made = Assignments("http://127.0.0.1:1", "gw_x_y", "internal", service_version="1.4.0")
    assert made.resolve(GUARD, "workspace-1").is_fallback


def test_a_control_plane_that_hangs_costs_a_prompt_200_ms_and_its_late_answer_is_kept(
    plane, seconds, monkeypatch
):
    monkeypatch.setattr(module, "NETWORK_TIMEOUT_SECONDS", PATIENCE_S)
    hurried = Assignments(
        plane.address, "gw_x_y", "internal", service_version="1.4.0", monotonic=seconds
    )
    plane.let_go.clear()
    started = time.monotonic()
    assert hurried.resolve(GUARD, "workspace-1").is_fallback
    waited = time.monotonic() - started
    plane.let_go.set()
    late = until(lambda: assigned(hurried.resolve(GUARD, "workspace-1")))
    assert late.mode is Mode.ENFORCE
    assert len(plane.asked) == 1
    assert waited >= LIMIT_S
    hurried.close()


def assigned(found):
    return None if found.is_fallback else found


def test_an_owner_id_that_does_not_fit_a_path_is_not_sent(plane, assignments):
    assert assignments.resolve(GUARD, "a/../b").is_fallback
    assert plane.asked == []


def test_a_pinned_prompt_keeps_its_mode(plane, assignments, seconds):
    with assignments.pin(GUARD, "workspace-1") as pinned:
        plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
        seconds.now += 60
        assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW
        assert pinned.mode is Mode.ENFORCE


@pytest.mark.parametrize("endpoint", ["", "localhost:8080", "ftp://host", "http://"])
def test_an_endpoint_that_is_no_url_is_refused_at_once(endpoint):
    with pytest.raises(ValueError, match="endpoint is"):
        Assignments(endpoint, "gw_x_y", "internal", service_version="1.4.0")


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_a_wait_that_would_hold_up_prompts_is_refused(wait):
    with pytest.raises(ValueError, match="timeout_seconds"):
        Assignments(
            "http://localhost", "gw_x_y", "internal", service_version="1", timeout_seconds=wait
        )
