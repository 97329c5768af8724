from pathlib import Path

import pytest

from guardwave.control_plane.core.errors import SettingsError
from guardwave.control_plane.core.otlp_request import Limits
from guardwave.control_plane.core.settings import Settings, StoreKind, StoreUrl


def test_an_empty_environment_gives_the_documented_defaults():
    assert Settings.from_env({}) == Settings(
        host="127.0.0.1",
        port=8080,
        data_dir=Path("guardwave-data"),
        redis_url=None,
        store=StoreKind.STANDALONE,
        policy_path=None,
        workers=2,
        otlp_prefix="",
        grpc_port=4317,
        otlp_limits=Limits(8 * 1024 * 1024, 16 * 1024 * 1024, 10_000),
    )


def test_every_variable_is_read():
    settings = Settings.from_env(
        {
            "GUARDWAVE_HOST": "0.0.0.0",
            "GUARDWAVE_PORT": "9000",
            "GUARDWAVE_DATA": "/srv/guardwave",
            "REDIS_URL": "rediss://user:secret@store.example:6380/1",
            "GUARDWAVE_STORE": "standalone",
            "GUARDWAVE_POLICY": "/etc/guardwave/policy.toml",
            "GUARDWAVE_WORKERS": "4",
            "GUARDWAVE_OTLP_PREFIX": "/otlp/",
            "GUARDWAVE_GRPC_PORT": "4318",
            "GUARDWAVE_OTLP_WIRE_BYTES": "67108864",
            "GUARDWAVE_OTLP_INFLATED_BYTES": "134217728",
            "GUARDWAVE_OTLP_RECORDS": "50000",
        }
    )
    assert settings == Settings(
        host="0.0.0.0",
        port=9000,
        data_dir=Path("/srv/guardwave"),
        redis_url="rediss://user:secret@store.example:6380/1",
        policy_path=Path("/etc/guardwave/policy.toml"),
        workers=4,
        otlp_prefix="/otlp",
        grpc_port=4318,
        otlp_limits=Limits(64 * 1024 * 1024, 128 * 1024 * 1024, 50_000),
    )


def test_an_empty_variable_counts_as_unset():
    names = ("GUARDWAVE_PORT", "REDIS_URL", "GUARDWAVE_STORE", "GUARDWAVE_OTLP_PREFIX")
    assert Settings.from_env(dict.fromkeys(names, " ")) == Settings()


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        pytest.param("GUARDWAVE_PORT", "http", "from 1 to 65535", id="a port in words"),
        pytest.param("GUARDWAVE_PORT", "0", "from 1 to 65535", id="port zero"),
        pytest.param("GUARDWAVE_PORT", "65536", "from 1 to 65535", id="a port too high"),
        pytest.param("GUARDWAVE_PORT", "-1", "from 1 to 65535", id="a negative port"),
        pytest.param("GUARDWAVE_PORT", "٨٠", "from 1 to 65535", id="digits of another script"),
        pytest.param("GUARDWAVE_PORT", "9" * 5000, "from 1 to 65535", id="a port of 5,000 digits"),
        pytest.param("GUARDWAVE_GRPC_PORT", "0", "from 1 to 65535", id="a gRPC port of zero"),
        pytest.param(
            "GUARDWAVE_OTLP_WIRE_BYTES", "8 MiB", "from 65536 to 67108864", id="bytes in words"
        ),
        pytest.param(
            "GUARDWAVE_OTLP_WIRE_BYTES", "67108865", "from 65536 to 67108864", id="bytes too many"
        ),
        pytest.param(
            "GUARDWAVE_OTLP_INFLATED_BYTES", "65535", "to 134217728", id="inflated bytes too few"
        ),
        pytest.param(
            "GUARDWAVE_OTLP_INFLATED_BYTES",
            "8388607",
            "at least the 8388608 bytes of GUARDWAVE_OTLP_WIRE_BYTES",
            id="fewer bytes inflated than sent",
        ),
        pytest.param(
            "GUARDWAVE_OTLP_RECORDS",
            "511",
            "from 512 to 50000",
            id="less than one batch of an SDK",
        ),
        pytest.param("GUARDWAVE_WORKERS", "1.5", "from 1 to 64", id="half a worker"),
        pytest.param("GUARDWAVE_STORE", "cluster", "set REDIS_URL", id="a cluster of nothing"),
        pytest.param("GUARDWAVE_STORE", "sentinel", "set REDIS_URL", id="sentinels of nothing"),
        pytest.param("GUARDWAVE_STORE", "postgres", "set standalone", id="another store"),
        pytest.param("GUARDWAVE_OTLP_PREFIX", "otlp", "such as /otlp", id="no leading slash"),
        pytest.param("GUARDWAVE_OTLP_PREFIX", "/a//b", "such as /otlp", id="an empty segment"),
        pytest.param("GUARDWAVE_OTLP_PREFIX", "/a?b", "such as /otlp", id="a query"),
        pytest.param("GUARDWAVE_OTLP_PREFIX", "/../v1", "such as /otlp", id="a step up"),
    ],
)
def test_an_unusable_value_is_refused_by_name_and_with_a_remedy(variable, value, remedy):
    with pytest.raises(SettingsError) as refused:
        Settings.from_env({variable: value})
    assert f"{variable}={value!r}" in str(refused.value)
    assert remedy in str(refused.value)
    assert refused.value.exit_code == 1


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://user:secret@store.example", id="another scheme"),
        pytest.param("user:secret@store.example", id="no scheme"),
        pytest.param("redis://user:secret@", id="no host"),
        pytest.param("redis://user:secret@store.example:port", id="a port in words"),
        pytest.param("unix://", id="no path"),
    ],
)
def test_an_unusable_redis_url_is_refused_without_showing_its_password(url):
    with pytest.raises(SettingsError, match=r"REDIS_URL.*set redis://") as refused:
        Settings.from_env({"REDIS_URL": url})
    assert "secret" not in str(refused.value)


def test_settings_can_be_logged_without_showing_the_password():
    assert "secret" not in repr(Settings.from_env({"REDIS_URL": "redis://:secret@localhost"}))


@pytest.mark.parametrize(
    ("store", "url"),
    [
        pytest.param("sentinel", "redis://:secret@one:26379", id="sentinels of no name"),
        pytest.param("sentinel", "unix:///run/secret.sock/name", id="sentinels on a socket"),
        pytest.param("cluster", "redis://:secret@one:6379/0", id="a database of a cluster"),
        pytest.param("cluster", "redis://:secret@one,,two", id="a node without a name"),
        pytest.param("cluster", "redis://:secret@one:six", id="a port in words"),
    ],
)
def test_a_url_that_does_not_fit_the_kind_of_store_is_refused_without_showing_it(store, url):
    with pytest.raises(SettingsError, match=r"REDIS_URL.*set redis://") as refused:
        Settings.from_env({"REDIS_URL": url, "GUARDWAVE_STORE": store})
    assert "secret" not in str(refused.value)


def test_the_places_of_several_servers_are_read():
    nodes = StoreUrl.parse("rediss://me:pass@one,[::1]:7000,three:7001?db=0", StoreKind.CLUSTER)
    assert nodes.places == (("one", 6379), ("::1", 7000), ("three", 7001))
    assert nodes.text == "rediss://me:pass@one:6379?db=0"
    assert nodes.is_encrypted


def test_sentinels_have_a_name_for_the_server_and_may_have_a_password_of_their_own():
    url = "redis://:pass@one,two:7000/my%20store?sentinel_password=theirs&socket_keepalive=yes"
    read = StoreUrl.parse(url, StoreKind.SENTINEL)
    assert read.places == (("one", 26379), ("two", 7000))
    assert read.master == "my store"
    assert read.sentinel_options == {"sentinel_password": "theirs"}
    assert read.text == "redis://:pass@one:26379?socket_keepalive=yes"
    assert "theirs" not in repr(read)
