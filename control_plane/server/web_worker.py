"""Web worker: gunicorn's threads, a bound on slow senders, and errors without request content."""

import contextlib
import json
import os
import selectors
import socket
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import ThreadWorker

from guardwave.control_plane.core.errors import trace_of
from guardwave.control_plane.core.otlp_request import BrokenChunks
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.http.middleware import masked_path
from guardwave.control_plane.server.slow_senders import WaitingPlaces, WatchedSocket

if TYPE_CHECKING:
    from gunicorn.workers.gthread import TConn

# gunicorn rejects a longer head: its own limits are lower.
HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 5.0
LINGER_SECONDS = 2.0
_END_OF_HEAD = b"\r\n\r\n"


class WebWorker(ThreadWorker):
    """gunicorn's gthread worker, except that slow senders cannot hold all threads.

    gunicorn gives a connection a thread before its first byte, and sets no time limit for a request
    that arrives byte by byte. Here the event loop reads the head; a thread starts at a whole head.
    """

    def init_process(self) -> None:
        """Prepare this process, after the fork."""
        self._began: dict[TConn, float] = {}
        # Weak keys: gunicorn may drop a connection without a call of ours.
        self._heads: WeakKeyDictionary[TConn, bytearray] = WeakKeyDictionary()
        self._watched: WeakKeyDictionary[TConn, WatchedSocket] = WeakKeyDictionary()
        self._lingering: dict[TConn, float] = {}
        self._places = WaitingPlaces(self.cfg.threads)
        self._within_s = Settings.from_env(os.environ).request_seconds
        super().init_process()

    def enqueue_req(self, conn: "TConn") -> None:
        """Give a connection a thread; a new one waits for its head first."""
        if conn.initialized or conn.data_ready or self.cfg.is_ssl:
            super().enqueue_req(conn)
        else:
            self._await_head(conn)

    def on_client_socket_readable(self, conn: "TConn", client: socket.socket) -> None:
        """Read the next request of a kept-alive connection."""
        if self.cfg.is_ssl:
            super().on_client_socket_readable(conn, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._heads[conn] = bytearray()
        if self._has_head(conn):
            self.enqueue_req(conn)
        else:
            self._await_head(conn)

    def on_pending_socket_readable(self, conn: "TConn", client: socket.socket) -> None:
        """Read more of the head; a whole one gets a thread."""
        if self.cfg.is_ssl or self._has_head(conn):
            super().on_pending_socket_readable(conn, client)

    def _await_head(self, conn: "TConn") -> None:
        self._heads.setdefault(conn, bytearray())
        conn.timeout = time.monotonic() + HEAD_SECONDS
        self.pending_conns.append(conn)
        readable = partial(self.on_pending_socket_readable, conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, readable)

    def _has_head(self, conn: "TConn") -> bool:
        """Read what has arrived. A head that never ends goes on to gunicorn, which rejects it."""
        head = self._heads[conn]
        try:
            piece = conn.sock.recv(HEAD_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            return True
        searched = max(0, len(head) - len(_END_OF_HEAD))
        head += piece
        return not piece or len(head) >= HEAD_BYTES or head.find(_END_OF_HEAD, searched) >= 0

    def handle(self, conn: "TConn") -> bool:
        """Handle one request, and remember when it began."""
        self._began[conn] = time.monotonic()
        try:
            if not self.cfg.is_ssl:
                self._hand_over(conn)
            return super().handle(conn)
        finally:
            self._began.pop(conn, None)

    def handle_request(self, req: Request, conn: "TConn") -> bool:
        """Answer one request; a malformed chunk is a fault of its body."""
        watch_chunks(req)
        return super().handle_request(req, conn)

    def _hand_over(self, conn: "TConn") -> None:
        """Give the parser the head that the loop read, and a watched socket for the rest."""
        conn.sock.setblocking(True)
        conn.init()
        assert isinstance(conn.parser, RequestParser)  # HTTP/2 is not turned on
        watched = self._watched.get(conn)
        if watched is None:
            address = conn.client[0] if isinstance(conn.client, tuple) else ""
            watched = WatchedSocket(conn.sock, address, self._places)
            self._watched[conn] = watched
            # the unreader calls nothing but `recv` of a socket
            conn.parser.unreader = SocketUnreader(watched)  # type: ignore[arg-type]  # as above
        watched.begin()
        head = self._heads.pop(conn, None)
        if head:
            conn.parser.unreader.unread(bytes(head))

    def finish_request(self, conn: "TConn", fs: Future[bool]) -> None:
        """Keep a connection or end it; gunicorn's own way to end it stops the loop for 2 s."""
        if fs.cancelled() or fs.exception() is not None or fs.result():
            super().finish_request(conn, fs)
            return
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            readable = partial(self._on_lingering, conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, readable)
        except (OSError, ValueError):
            self._close(conn)
            return
        self._lingering[conn] = time.monotonic() + LINGER_SECONDS

    def _on_lingering(self, conn: "TConn", client: socket.socket) -> None:
        """Read what the sender still sends: closing earlier could lose our answer on its way."""
        try:
            is_over = not client.recv(HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            is_over = True
        if is_over:
            self._end_lingering(conn)

    def _end_lingering(self, conn: "TConn") -> None:
        del self._lingering[conn]
        self.poller.unregister(conn.sock)
        self._close(conn)

    def _close(self, conn: "TConn") -> None:
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """End requests that arrive too slowly, too; gunicorn's loop calls this every second."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [conn for conn, until in self._lingering.items() if until < now]:
            self._end_lingering(conn)
        oldest = time.monotonic() - self._within_s
        for conn, began in list(self._began.items()):
            if began < oldest:
                self._cut_off(conn)

    def _cut_off(self, conn: "TConn") -> None:
        watched = self._watched.get(conn)
        with contextlib.suppress(OSError):
            if watched is not None:
                watched.cut_off()
            else:
                # The thread's read then returns at once, as if the sender had hung up.
                conn.sock.shutdown(socket.SHUT_RD)

    def handle_error(
        self,
        req: Request | None,
        client: socket.socket,
        addr: object,  # noqa: ARG002  # gunicorn passes it by position
        exc: BaseException,
    ) -> None:
        """Answer a request that gunicorn could not read or the application failed on.

        gunicorn's own answer repeats the request line and its log names the path; both can hold an
        owner id.
        """
        if isinstance(exc, ParseException):
            status, title = _status_of(exc)
            self.log.warning("refused a malformed request: %s", type(exc).__name__)
        else:
            status, title = 500, "Internal Server Error"
            path = masked_path(getattr(req, "path", "") or "")
            self.log.error("failed on %s: %s", path, trace_of(exc))
        with contextlib.suppress(OSError):
            client.sendall(_problem(status, title))


def watch_chunks(request: Request) -> None:
    """Make reads of malformed chunks (RFC 9112, 7.1) raise BrokenChunks.

    gunicorn's own errors are no OSError, so frameworks take them for faults of the application.
    """
    body = request.body
    if body is not None and isinstance(body.reader, ChunkedReader):
        # gunicorn calls nothing but `read` of a reader
        body.reader = _ChunkReader(body.reader, request)  # type: ignore[assignment]  # as above


class _ChunkReader:
    """Reads chunks; a malformed chunk ends the connection after the answer."""

    def __init__(self, reader: ChunkedReader, request: Request) -> None:
        self._reader = reader
        self._request = request

    def read(self, size: int) -> bytes:
        try:
            return self._reader.read(size)
        except ParseException as error:
            # The start of the next request is unknown.
            self._request.force_close()
            raise BrokenChunks from error


def _status_of(exc: ParseException) -> tuple[int, str]:
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
