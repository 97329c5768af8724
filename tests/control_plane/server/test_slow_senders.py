"""Slow senders: the number of places for waiting, and when a sender needs one."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from guardwave.control_plane.core.otlp_request import BodyTimeout, TooManySlowSenders
from guardwave.control_plane.server.slow_senders import WaitingPlaces, WatchedSocket
from tests.support.web_workers import PATIENCE_S


@pytest.mark.parametrize(
    ("threads", "in_all", "for_one"),
    [
        pytest.param(16, 8, 4, id="sixteen threads"),
        pytest.param(4, 2, 1, id="four threads"),
        pytest.param(1, 1, 1, id="one thread"),
    ],
)
def test_half_of_the_threads_may_wait_and_a_quarter_for_one_address(threads, in_all, for_one):
    places = WaitingPlaces(threads)
    for addresses, most in [(["one"] * 20, for_one), (list("abcdefghijklmnopqrst"), in_all)]:
        with contextlib.ExitStack() as taken:
            for address in addresses[:most]:
                taken.enter_context(places.place_for(address))
            with pytest.raises(TooManySlowSenders), places.place_for(addresses[most]):
                pass
    with places.place_for("one"):
        pass


@pytest.fixture
def socket_ends():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_what_is_there_is_read_without_a_place(socket_ends):
    near, far = socket_ends
    places = WaitingPlaces(1)
    watched = WatchedSocket(near, "one", places)
    far.sendall(b"here")
    with places.place_for("one"):
        assert watched.recv(100) == b"here"
        far.shutdown(socket.SHUT_WR)
        assert watched.recv(100) == b""


def test_who_sends_nothing_for_long_needs_a_place_and_is_refused_without_one(socket_ends):
    near, _ = socket_ends
    places = WaitingPlaces(1)
    watched = WatchedSocket(near, "one", places)
    with places.place_for("another"), pytest.raises(TooManySlowSenders):
        watched.recv(100)


def test_a_read_with_a_time_out_ends_and_gives_its_place_back(socket_ends):
    near, _ = socket_ends
    places = WaitingPlaces(1)
    watched = WatchedSocket(near, "one", places)
    watched.settimeout(0.01)
    assert watched.gettimeout() == 0.01
    with pytest.raises(TimeoutError):
        watched.recv(100)
    with places.place_for("one"):
        pass


def test_who_is_cut_off_while_it_is_waited_for_is_read_no_further_and_answered():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as far,
        listener.accept()[0] as near,
        ThreadPoolExecutor() as pool,
    ):
        watched = WatchedSocket(near, "one", WaitingPlaces(1))
        far.sendall(b"here")
        assert watched.recv(100) == b"here"
        waiting = pool.submit(watched.recv, 100)
        watched.cut_off()
        with pytest.raises(BodyTimeout):
            waiting.result(PATIENCE_S)
        far.sendall(b"too late")
        with pytest.raises(BodyTimeout):
            watched.recv(100)
        near.sendall(b"answer")
        assert far.recv(100) == b"answer"
