"""Stand-in control plane: a server on loopback with the answers that a test sets."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from guardwave.control_plane.client import FallbackReason
from guardwave.reducer.vocabulary import Mode
from tests.support.web_workers import PATIENCE_S

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
    """A server that takes as many connections at once as a client opens."""

    daemon_threads = True
    request_queue_size = 64


class ControlPlane:
    """A server on loopback with the answers that the test sets."""

    def __init__(self):
        self.status = 200
        self.document = answer()
        self.body = None
        self.etag = '"one"'
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.release = threading.Event()
        self.release.set()
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                plane.asked.append((self.path, dict(self.headers)))
                plane.release.wait(PATIENCE_S)
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
        self.release.set()
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
    """Check that an assignment is a fallback, and return its one code."""
    assert (found.mode, found.is_fallback, found.assignment_id) == (Mode.SHADOW, True, None)
    assert found.sentence.startswith("Mode shadow: ")
    assert found.sentence.endswith(".")
    assert not found.sentence.endswith("..")
    (code,) = found.reasons
    return FallbackReason(code)
