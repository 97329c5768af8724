"""Slow senders: a bound on the threads of a web worker that may wait for them."""

import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from guardwave.control_plane.core.otlp_request import BodyTimeout, TooManySlowSenders

# Seconds that a thread may wait for a sender in one request before the sender counts as slow.
PATIENCE_SECONDS = 0.1


class WaitingPlaces:
    """Places for threads that wait: half of the threads, a quarter for one address."""

    def __init__(self, threads: int) -> None:
        self._most = max(1, threads // 2)
        self._most_of_one = max(1, threads // 4)
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def place_for(self, address: str) -> Iterator[None]:
        """Take a place while the block runs.

        Raises:
            TooManySlowSenders: no place is left, or none for this address.
        """
        with self._lock:
            if self._taken.total() >= self._most or self._taken[address] >= self._most_of_one:
                raise TooManySlowSenders
            self._taken[address] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[address] -= 1
                if not self._taken[address]:
                    del self._taken[address]


class WatchedSocket:
    """A socket for gunicorn's parser, which needs a place to wait for a slow sender."""

    def __init__(self, sock: socket.socket, address: str, places: WaitingPlaces) -> None:
        self._sock = sock
        self._address = address
        self._places = places
        self._timeout: float | None = None
        self._patience = PATIENCE_SECONDS
        self._is_cut_off = False

    def begin(self) -> None:
        """Begin a request, with full patience."""
        self._patience = PATIENCE_SECONDS

    def cut_off(self) -> None:
        """Make the waiting read and all later ones fail; the answer can still be sent."""
        self._is_cut_off = True
        self._sock.shutdown(socket.SHUT_RD)

    def gettimeout(self) -> float | None:
        """Return the seconds that a read may take, None without a bound."""
        return self._timeout

    def settimeout(self, seconds: float | None) -> None:
        """Bound the reads that follow, but not the socket itself, which sends the answer."""
        self._timeout = seconds

    def recv(self, size: int) -> bytes:
        """Return at most `size` bytes, and none at the end.

        Raises:
            BodyTimeout: the request took too long.
            TooManySlowSenders: nothing came, and all places for waiting are taken.
            TimeoutError: nothing came in time.
        """
        data = self._receive(size)
        if self._is_cut_off:
            raise BodyTimeout
        return data

    def _receive(self, size: int) -> bytes:
        data = self._receive_at_once(size)
        if data is not None:
            return data
        began = time.monotonic()
        if self._patience > 0 and self._is_readable_within(self._patience):
            self._patience -= time.monotonic() - began
            return self._sock.recv(size)
        self._patience = 0.0
        with self._places.place_for(self._address):
            if not self._is_readable_within(self._timeout):
                raise TimeoutError("the sender sent nothing in time")
        return self._sock.recv(size)

    def _receive_at_once(self, size: int) -> bytes | None:
        try:
            return self._sock.recv(size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def _is_readable_within(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))
