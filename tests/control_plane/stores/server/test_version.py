import pytest

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.stores.server.connection import (
    ServerVersion,
    check_minimum_version,
    version_from_info,
    version_from_output,
)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param({"redis_version": "7.0.15"}, ("Redis", "7.0.15"), id="redis"),
        pytest.param(
            {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"},
            ("Valkey", "9.1.2"),
            id="valkey, which also names the redis it is compatible with",
        ),
        pytest.param({}, ("Redis", "of unknown version"), id="a server without a version"),
    ],
)
def test_a_server_is_known_by_its_own_name_and_version(info, expected):
    assert version_from_info(info) == expected


@pytest.mark.parametrize(
    ("name", "version"),
    [
        pytest.param("Redis", "6.2.14", id="redis 6.2"),
        pytest.param("Redis", "2.8", id="redis 2.8"),
        pytest.param("Valkey", "7.1.9", id="a valkey that never was"),
        pytest.param("Redis", "of unknown version", id="unknown"),
    ],
)
def test_an_old_server_is_rejected_by_name_and_version(name, version):
    with pytest.raises(StoreStartError, match=rf"\(REDIS_URL\) is {name} {version}; "):
        check_minimum_version(ServerVersion(name, version), found_at="REDIS_URL")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        pytest.param("Redis", "7.0.0", id="redis 7.0"),
        pytest.param("Redis", "10.1.0", id="two digits"),
        pytest.param("Redis", "7.4-rc1", id="a release candidate"),
        pytest.param("Valkey", "7.2.5", id="the first valkey"),
    ],
)
def test_a_server_with_functions_is_accepted(name, version):
    check_minimum_version(ServerVersion(name, version), found_at="REDIS_URL")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64",
            ("Redis", "7.0.15"),
            id="redis",
        ),
        pytest.param("Valkey server v=9.1.2 sha=1536df31:1", ("Valkey", "9.1.2"), id="valkey"),
        pytest.param("", ("Redis", "of unknown version"), id="silence"),
        pytest.param("nginx version: 1.22", ("Redis", "of unknown version"), id="another program"),
    ],
)
def test_a_program_is_known_by_its_version_output(output, expected):
    assert version_from_output(output) == expected
