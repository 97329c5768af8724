"""How many threads of a web worker may wait for senders that are slow, and for how long at all."""

import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from control_plane.otlp_door import CutOff, TooManySlowSenders

# What a sender's packets may keep a thread waiting for, in one request, before it counts as slow.
PATIENCE_SECONDS = 0.1


class Places:
    """The places for waiting: half of the threads, and a quarter for one address."""

    def __init__(self, threads: int) -> None:
        self._most = max(1, threads // 2)
        self._most_of_one = max(1, threads // 4)
        self._taken: Counter[str] = Counter()
        self._guard = threading.Lock()

    @contextmanager
    def one_for(self, address: str) -> Iterator[None]:
        """Take a place while the block runs.

        Raises:
            TooManySlowSenders: there is none left, or none for this address.
        """
        with self._guard:
            if self._taken.total() >= self._most or self._taken[address] >= self._most_of_one:
                raise TooManySlowSenders
            self._taken[address] += 1
        try:
            yield
        finally:
            with self._guard:
                self._taken[address] -= 1
                if not self._taken[address]:
                    del self._taken[address]


class WatchedSocket:
    """A socket as gunicorn's parser reads it: who keeps it waiting needs a place."""

    def __init__(self, sock: socket.socket, address: str, places: Places) -> None:
        self._sock = sock
        self._address = address
        self._places = places
        self._timeout: float | None = None
        self._patience = PATIENCE_SECONDS
        self._is_cut_off = False

    def begin(self) -> None:
        """Begin a request, with all patience there is."""
        self._patience = PATIENCE_SECONDS

    def cut_off(self) -> None:
        """Let the read that waits, and each that follows, fail; the answer can still be sent."""
        self._is_cut_off = True
        self._sock.shutdown(socket.SHUT_RD)

    def gettimeout(self) -> float | None:
        """Return how many seconds a read may take, None without a bound."""
        return self._timeout

    def settimeout(self, seconds: float | None) -> None:
        """Bound the reads that follow; the socket itself stays as it is, for the answer."""
        self._timeout = seconds

    def recv(self, size: int) -> bytes:
        """Return at most `size` bytes, and none at the end.

        Raises:
            CutOff: the request took too long.
            TooManySlowSenders: nothing came, and all places for waiting are taken.
            TimeoutError: nothing came in time.
        """
        found = self._waited_for(size)
        if self._is_cut_off:
            raise CutOff
        return found

    def _waited_for(self, size: int) -> bytes:
        found = self._received(size)
        if found is not None:
            return found
        began = time.monotonic()
        if self._patience > 0 and self._is_readable_within(self._patience):
            self._patience -= time.monotonic() - began
            return self._sock.recv(size)
        self._patience = 0.0
        with self._places.one_for(self._address):
            if not self._is_readable_within(self._timeout):
                raise TimeoutError("the sender sent nothing in time")
        return self._sock.recv(size)

    def _received(self, size: int) -> bytes | None:
        try:
            return self._sock.recv(size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def _is_readable_within(self, seconds: float | None) -> bool:
        waiting = select.poll()
        waiting.register(self._sock, select.POLLIN)
        return bool(waiting.poll(None if seconds is None else seconds * 1000))
