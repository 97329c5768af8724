"""Stub model: a script's answers, streamed over HTTP like an OpenAI-compatible server's."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, TypeAlias

from examples.agent_host.messages import RequestedCall

Request: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer with a text, calls, or both; some servers do not report its token usage."""

    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    reports_usage: bool = True


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """An answer with an error status, or a stream that ends in the middle (200)."""

    status: int = 500


Step: TypeAlias = ModelAnswer | ModelFailure
Script: TypeAlias = Callable[[Request], Step]


def in_order(*steps: Step) -> Script:
    """Return a script that plays the steps in order, and then concludes."""
    waiting = list(steps)
    lock = threading.Lock()

    def play(_: Request) -> Step:
        with lock:
            return waiting.pop(0) if waiting else ModelAnswer("There is nothing more to do.")

    return play


class StubModel:
    """The server, on a free port of loopback. `requests` holds the received bodies in order."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """Return the base URL of the API."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(stub: StubModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One request of one client."""

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            request = json.loads(self.rfile.read(length))
            stub.requests.append(request)
            step = stub.script(request)
            if isinstance(step, ModelFailure) and step.status != 200:
                self.send_error(step.status)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in _events(step, request):
                self.wfile.write(f"data: {event}\n\n".encode())

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # inherited
            """Log nothing: the terminal belongs to the agent."""

    return Handler


def _events(step: Step, request: Request) -> Iterator[str]:
    if isinstance(step, ModelFailure):
        yield json.dumps(_chunk({"content": "I was about to"}))
        return
    for piece in _halves(step.text):
        yield json.dumps(_chunk({"content": piece}))
    for index, call in enumerate(step.calls):
        named = {"index": index, "id": call.call_id, "type": "function"}
        yield json.dumps(_chunk({"tool_calls": [{**named, "function": {"name": call.tool}}]}))
        for piece in _halves(call.arguments):
            part = {"index": index, "function": {"arguments": piece}}
            yield json.dumps(_chunk({"tool_calls": [part]}))
    yield json.dumps(_chunk({}, finish="tool_calls" if step.calls else "stop"))
    if step.reports_usage:
        usage = {"prompt_tokens": len(json.dumps(request)) // 4, "completion_tokens": 12}
        yield json.dumps({"choices": [], "usage": usage})
    yield "[DONE]"


def _chunk(delta: Mapping[str, object], *, finish: str | None = None) -> Mapping[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _halves(text: str) -> Iterable[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
