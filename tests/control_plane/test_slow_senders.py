"""Places for waiting: how many there are, for whom, and when a sender needs one."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from control_plane.otlp_door import CutOff, TooManySlowSenders
from control_plane.slow_senders import Places, WatchedSocket
from tests.control_plane.web_workers import PATIENCE_S


@pytest.mark.parametrize(
    ("threads", "in_all", "for_one"),
    [
        pytest.param(16, 8, 4, id="sixteen threads"),
        pytest.param(4, 2, 1, id="four threads"),
        pytest.param(1, 1, 1, id="one thread"),
    ],
)
def test_half_of_the_threads_may_wait_and_a_quarter_for_one_address(threads, in_all, for_one):
    places = Places(threads)
    for addresses, most in [(["one"] * 20, for_one), (list("abcdefghijklmnopqrst"), in_all)]:
        with contextlib.ExitStack() as taken:
            for address in addresses[:most]:
                taken.enter_context(places.one_for(address))
            with pytest.raises(TooManySlowSenders), places.one_for(addresses[most]):
                pass
    with places.one_for("one"):
        pass


@pytest.fixture
def ends():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_what_is_there_is_read_without_a_place(ends):
    near, far = ends
    places = Places(1)
    watched = WatchedSocket(near, "one", places)
    far.sendall(b"here")
    with places.one_for("one"):
        assert watched.recv(100) == b"here"
        far.shutdown(socket.SHUT_WR)
        assert watched.recv(100) == b""


def test_who_sends_nothing_for_long_needs_a_place_and_is_refused_without_one(ends):
    near, _ = ends
    places = Places(1)
    watched = WatchedSocket(near, "one", places)
    with places.one_for("another"), pytest.raises(TooManySlowSenders):
        watched.recv(100)


def test_a_read_with_a_time_out_ends_and_gives_its_place_back(ends):
    near, _ = ends
    places = Places(1)
    watched = WatchedSocket(near, "one", places)
    watched.settimeout(0.01)
    assert watched.gettimeout() == 0.01
    with pytest.raises(TimeoutError):
        watched.recv(100)
    with places.one_for("one"):
        pass


def test_who_is_cut_off_while_it_is_waited_for_is_read_no_further_and_answered():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as far,
        listener.accept()[0] as near,
        ThreadPoolExecutor() as pool,
    ):
        watched = WatchedSocket(near, "one", Places(1))
        far.sendall(b"here")
        assert watched.recv(100) == b"here"
        waiting = pool.submit(watched.recv, 100)
        watched.cut_off()
        with pytest.raises(CutOff):
            waiting.result(PATIENCE_S)
        far.sendall(b"too late")
        with pytest.raises(CutOff):
            watched.recv(100)
        near.sendall(b"answer")
        assert far.recv(100) == b"answer"
