"""The gunicorn worker: threads, with a bound on slow senders and errors that repeat nothing."""

import contextlib
import json
import os
import socket
import time
from typing import TYPE_CHECKING

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

from control_plane.http.access_log import masked_path
from control_plane.settings import Settings

if TYPE_CHECKING:
    from gunicorn.workers.gthread import TConn


class WebWorker(ThreadWorker):
    """gunicorn's gthread worker, which has no time-out for a request that arrives byte by byte."""

    def init_process(self) -> None:
        """Prepare this process, after the fork."""
        self._began: dict[TConn, float] = {}
        self._within_s = Settings.from_env(os.environ).request_seconds
        super().init_process()

    def handle(self, conn: "TConn") -> bool:
        """Handle one request, and remember since when."""
        self._began[conn] = time.monotonic()
        try:
            return super().handle(conn)
        finally:
            self._began.pop(conn, None)

    def murder_pending(self) -> None:
        """Called by gunicorn's loop every second: also end requests that arrive too slowly."""
        super().murder_pending()
        oldest = time.monotonic() - self._within_s
        for conn, began in list(self._began.items()):
            if began < oldest:
                # The thread's read returns at once, as if the sender had hung up.
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)

    def handle_error(
        self,
        req: Request | None,
        client: socket.socket,
        addr: object,  # noqa: ARG002  # gunicorn passes it by position
        exc: BaseException,
    ) -> None:
        """Answer a request that gunicorn could not read, or an application that failed.

        gunicorn's own answer is HTML that repeats the request line, and its log names the path;
        both can hold an owner id.
        """
        if isinstance(exc, ParseException):
            status, title = _refusal(exc)
            self.log.warning("refused a malformed request: %s", type(exc).__name__)
        else:
            status, title = 500, "Internal Server Error"
            path = masked_path(getattr(req, "path", "") or "")
            self.log.error("failed on %s", path, exc_info=exc)
        with contextlib.suppress(OSError):
            client.sendall(_problem(status, title))


def _refusal(exc: ParseException) -> tuple[int, str]:
    match exc:
        case LimitRequestLine():
            return 414, "URI Too Long"
        case LimitRequestHeaders():
            return 431, "Request Header Fields Too Large"
        case _:
            return 400, "Bad Request"


def _problem(status: int, title: str) -> bytes:
    """Return a whole HTTP answer with a problem document (RFC 9457)."""
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": "the request could not be read as HTTP; send an ASCII request line and headers"
        if status < 500
        else "guardwave failed on this request; its log says why",
    }
    body = json.dumps(problem).encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
