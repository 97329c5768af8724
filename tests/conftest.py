"""What every test may ask for: a real store, a real browser, and no way out to the network."""

import ipaddress
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
import redis

from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions

IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 * 1024**3
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
STORES = [
    pytest.param(None, id="valkey 9 (embedded)"),
    pytest.param("redis-server", id="redis 7.0 (debian)"),
]

# Laws are judged by what they say, not by how fast a loaded machine runs them.
hypothesis.settings.register_profile(
    "guardwave",
    parent=hypothesis.settings(),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("guardwave")


class NetworkBlockedError(RuntimeError):
    """A test tried to leave this machine."""


def pytest_configure() -> None:
    """Keep what tests and their servers write in memory, where there is room for it.

    A crash of a process loses nothing of it, and a disk that stalls can fail no test.
    """
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


def _stays_here(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # the path of a unix socket
    host = str(address[0])
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_name_elsewhere(host: object) -> bool:
    text = host.decode() if isinstance(host, bytes) else host
    if not isinstance(text, str) or text in {"", "localhost"}:
        return False
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return True
    return False


@pytest.fixture(autouse=True, scope="session")
def only_this_machine() -> Iterator[None]:
    """Let sockets reach loopback and unix sockets, and nothing else."""
    true_connect = socket.socket.connect
    true_connect_ex = socket.socket.connect_ex
    true_getaddrinfo = socket.getaddrinfo

    def refuse(target: object) -> NoReturn:
        raise NetworkBlockedError(f"tests reach only this machine, not {target!r}")

    def connect_here(self, address):
        return true_connect(self, address) if _stays_here(address) else refuse(address)

    def connect_ex_here(self, address):
        return true_connect_ex(self, address) if _stays_here(address) else refuse(address)

    def look_up_here(host, *further, **named):
        if _is_name_elsewhere(host):
            refuse(host)
        return true_getaddrinfo(host, *further, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        patch.setattr(socket.socket, "connect_ex", connect_ex_here)
        patch.setattr(socket, "getaddrinfo", look_up_here)
        yield


def _do_without(what: str, remedy: str) -> NoReturn:
    """Skip with words on a developer's machine; fail in CI, where nothing may go untested."""
    message = f"{what} is not on PATH, so this is NOT tested here; {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def _found(name: str) -> Path:
    program = shutil.which(name)
    if program is None:
        _do_without(name, f"install it (Debian: apt-get install {name})")
    return Path(program)


@pytest.fixture(scope="session")
def oldest_redis() -> Path:
    """The program of the oldest Redis that guardwave promises to run on."""
    return _found("redis-server")


@pytest.fixture(scope="session")
def store_server() -> Iterator[EmbeddedServer]:
    """The embedded server of this test process, in a directory with a short path."""
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        yield server


@pytest.fixture
def settings(store_server: EmbeddedServer) -> Settings:
    """Settings that lead to `store_server`."""
    return Settings(data_dir=store_server.data_dir)


@pytest.fixture
def store(settings: Settings) -> Iterator[redis.Redis]:
    """An empty store with the functions loaded."""
    with connect(settings) as client:
        client.flushall()
        load_functions(client)
        yield client
        left = [thread for thread in threading.enumerate() if thread.name == "refresher"]
        assert not left, "a refresher that nobody stopped would read the stores of other tests"
        client.flushall()


@pytest.fixture(scope="session", params=STORES)
def any_server(
    request: pytest.FixtureRequest, store_server: EmbeddedServer
) -> Iterator[EmbeddedServer]:
    """Each server that guardwave promises to run on, one after the other."""
    if request.param is None:
        yield store_server
        return
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory), program=_found(request.param)) as server,
    ):
        yield server


@pytest.fixture
def any_store(any_server: EmbeddedServer) -> Iterator[redis.Redis]:
    """An empty store with the functions loaded, on each promised server."""
    with connect(Settings(data_dir=any_server.data_dir)) as client:
        client.flushall()
        load_functions(client)
        yield client
        client.flushall()


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """The browser that tests of pages drive."""
    found = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if found is None:
        _do_without("chromium", "install it (Debian: apt-get install chromium)")
    return Path(found)
