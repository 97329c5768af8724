"""A server on loopback in the place of a control plane: it answers what a test tells it to."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from control_plane.client import FallbackReason
from reducer.vocabulary import Mode
from tests.control_plane.web_workers import PATIENCE_S

GUARD = "repeated_tool_failure"


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


class Server(ThreadingHTTPServer):
    """One that takes as many connections at once as a client opens."""

    daemon_threads = True
    request_queue_size = 64


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

        self.server = Server(("127.0.0.1", 0), Handler)
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


def why(found):
    """Return the one code of a fallback, once it is seen to be one."""
    assert (found.mode, found.is_fallback, found.assignment_id) == (Mode.SHADOW, True, None)
    assert found.sentence.startswith("Mode shadow: ")
    assert found.sentence.endswith(".")
    assert not found.sentence.endswith("..")
    (code,) = found.reasons
    return FallbackReason(code)
