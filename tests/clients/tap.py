"""Network tap: a proxy that passes every byte on and notes the status of each answer."""

import contextlib
import re
import socket
import threading

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Tap:
    """Listens on a free port and connects each connection to the server on another one."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]
        self.statuses: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    is_answer = source is server
                    threading.Thread(
                        target=self._pump,
                        args=(source, target),
                        kwargs={"is_answer": is_answer},
                        daemon=True,
                    ).start()

    def _pump(self, source: socket.socket, target: socket.socket, *, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if is_answer:
                    self.statuses += (int(found) for found in _STATUS.findall(piece))
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
