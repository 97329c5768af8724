"""Demo stores: a demo's store and a real one are never mixed up."""

import os
import subprocess
import sys

import pytest

from guardwave.control_plane.core.errors import RuleViolated, StartError
from guardwave.control_plane.demo import files
from guardwave.control_plane.demo.bootstrap import fleets
from guardwave.control_plane.demo.history import HistoryImport
from guardwave.control_plane.rollouts.access import Identity, create_token, sign_in
from guardwave.control_plane.stores.demo import DemoMark, DemoStore
from guardwave.control_plane.stores.server.data_directory import socket_path
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.web_workers import PATIENCE_S
from tests.support.worlds import ENVIRONMENT, NOW, context_over, world_in

MARK = DemoMark(wall_origin_ns=1, moment_origin_ns=2, speed=1000.0)


def guardwave(*command: str, store_server, tmp_path) -> subprocess.CompletedProcess[str]:
    """Run a command of guardwave on the test's store; it must end by itself."""
    environment = {
        **os.environ,
        "REDIS_URL": f"unix://{socket_path(store_server.data_dir)}",
        "GUARDWAVE_DATA": str(tmp_path),
        "GUARDWAVE_PORT": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "guardwave.control_plane.cli", *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_history_is_imported_into_a_demos_store_only(store):
    world = world_in(context_over(store), Mode.SHADOW)
    token = create_token(world.context, role=Role.INGEST, environment=ENVIRONMENT)
    producer = sign_in(world.context, token)
    assert isinstance(producer, Identity)
    with pytest.raises(RuleViolated, match="a demo's store only"):
        HistoryImport(world.context, fleets(NOW.date())[0], producer=producer, is_demo_store=False)


def test_serve_refuses_a_demos_store(store, store_server, tmp_path):
    DemoStore(store).set_mark(MARK)
    ended = guardwave("serve", store_server=store_server, tmp_path=tmp_path)
    assert ended.returncode == 1
    assert "is a demo's, whose clock is not wall time" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_demo_refuses_a_store_that_holds_something_else(store, store_server, tmp_path):
    store.set("something", "else")
    ended = guardwave("demo", store_server=store_server, tmp_path=tmp_path)
    assert ended.returncode == 1
    assert "holds something that is not a demo" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert store.get("something") == b"else"


def test_misbehave_without_a_demo_names_the_command_that_starts_one(store, store_server, tmp_path):
    ended = guardwave("demo", "misbehave", store_server=store_server, tmp_path=tmp_path)
    assert ended.returncode == 1
    assert "start one with `guardwave demo`" in ended.stderr


def test_a_store_without_the_mark_is_not_wiped(store):
    store.set("something", "else")
    with pytest.raises(ValueError, match="bears no demo mark"):
        DemoStore(store).wipe()
    assert store.get("something") == b"else"


def test_only_its_owner_can_read_the_demo_file(tmp_path):
    content = files.DemoFile("http://127.0.0.1:1", {"internal": "a"}, {"internal": "b"}, "c")
    files.write(tmp_path, content)
    assert files.read(tmp_path) == content
    assert files.demo_file(tmp_path).stat().st_mode & 0o777 == 0o600
    files.demo_file(tmp_path).write_text("{")
    with pytest.raises(StartError, match="no demo runs on"):
        files.read(tmp_path)
