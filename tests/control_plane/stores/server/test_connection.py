from pathlib import Path

import pytest
import redis

from guardwave.control_plane.core.errors import SettingsError, StoreStartError, StoreUnavailable
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.connection import check_version, translate_store_errors


def test_the_promised_servers_are_accepted(any_store):
    assert check_version(any_store).name in {"Redis", "Valkey"}


def test_a_missing_server_stops_the_start_with_a_remedy():
    with (
        connect(Settings(redis_url="redis://127.0.0.1:1/0")) as client,
        pytest.raises(StoreStartError, match=r"does not answer.*check REDIS_URL"),
    ):
        check_version(client)


def test_a_url_redis_does_not_understand_is_rejected_without_showing_it():
    with pytest.raises(SettingsError, match="REDIS_URL") as rejected:
        connect(Settings(redis_url="redis://:secret@localhost?socket_timeout=soon"))
    assert "secret" not in str(rejected.value)


def test_a_data_directory_may_have_any_name(store_server, tmp_path):
    odd = tmp_path / "100%41 sure?#"
    odd.symlink_to(store_server.data_dir)
    with connect(Settings(data_dir=odd)) as client:
        assert client.ping()


def test_a_dropped_connection_is_restored_silently(any_store):
    any_store.set("kept", 1)
    any_store.client_kill_filter(_type="normal", skipme=False)
    assert any_store.get("kept") == b"1"


@translate_store_errors()
def _write(client: redis.Redis) -> None:
    client.set("written", 1)


@translate_store_errors()
def _write_in_a_pipeline(client: redis.Redis) -> None:
    with client.pipeline() as pipeline:
        pipeline.set("written", 1)
        pipeline.execute()


@pytest.fixture
def troubled_store(any_store, request):
    """A store whose configuration keeps it from writing until the test is over."""
    name, trouble = request.param
    calm = any_store.config_get(name)[name]
    any_store.config_set(name, trouble)
    yield any_store
    any_store.config_set(name, calm)


TROUBLES = [
    pytest.param(("maxmemory", "1"), id="full"),
    pytest.param(("min-replicas-to-write", "1"), id="too few replicas"),
]


@pytest.mark.parametrize("troubled_store", TROUBLES, indirect=True)
@pytest.mark.parametrize("write", [_write, _write_in_a_pipeline])
def test_a_store_that_cannot_write_now_is_unavailable(troubled_store, write):
    with pytest.raises(StoreUnavailable, match="try again in 1 s"):
        write(troubled_store)


def test_a_read_only_replica_is_unavailable(any_store):
    any_store.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(StoreUnavailable, match="ReadOnlyError"):
            _write(any_store)
    finally:
        any_store.replicaof("NO", "ONE")


def test_a_paused_store_is_unavailable_in_time(any_server, any_store):
    impatient = connect(Settings(data_dir=any_server.data_dir))
    impatient.connection_pool.connection_kwargs["socket_timeout"] = 0.05
    any_store.client_pause(60_000, all=False)
    try:
        with impatient, pytest.raises(StoreUnavailable, match="TimeoutError"):
            _write(impatient)
    finally:
        any_store.client_unpause()


def test_a_store_that_is_away_is_unavailable():
    with (
        connect(Settings(redis_url="redis://127.0.0.1:1/0")) as client,
        pytest.raises(StoreUnavailable, match="ConnectionError"),
    ):
        _write(client)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(redis.BusyLoadingError("loading the dataset in memory"), id="loading"),
        pytest.param(redis.exceptions.ClusterDownError("the cluster is down"), id="cluster down"),
        pytest.param(redis.exceptions.MasterDownError("link is down"), id="primary down"),
        pytest.param(redis.exceptions.TryAgainError("a slot moves"), id="a slot moves"),
        pytest.param(redis.ResponseError("MISCONF errors writing to disk"), id="disk full"),
        pytest.param(redis.ResponseError("BUSY running a script"), id="busy"),
    ],
)
def test_errors_of_a_store_that_cannot_answer_now_mean_unavailable(error):
    with pytest.raises(StoreUnavailable), translate_store_errors():
        raise error


def test_our_own_mistakes_are_not_blamed_on_the_store(any_store):
    any_store.set("text", "x")
    with pytest.raises(redis.ResponseError), translate_store_errors():
        any_store.hset("text", "field", "value")
    pipeline = any_store.pipeline().hset("text", "MISCONF ", "BUSY ")
    with pytest.raises(redis.ResponseError), translate_store_errors():
        pipeline.execute()


def test_without_redis_url_a_client_leads_to_the_data_directory(store_server, store):
    store.set("here", 1)
    with connect(Settings(data_dir=Path(store_server.data_dir))) as client:
        assert client.get("here") == b"1"
