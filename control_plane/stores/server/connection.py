"""Store connection: its errors, the types of its replies, and the oldest server it accepts."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import redis

from guardwave.control_plane.core.errors import StoreStartError, StoreUnavailable
from guardwave.control_plane.stores.server.clients import primaries

# Replies without an exception class of their own that mean "not now", not "wrong request".
UNAVAILABLE_REPLIES = ("BUSY ", "MISCONF ", "NOREPLICAS ")
OLDEST = {"Redis": (7, 0), "Valkey": (7, 2)}
UNKNOWN = "of unknown version"


@contextmanager
def translate_store_errors() -> Iterator[None]:
    """Raise StoreUnavailable for each error of redis-py that means "not now".

    Also a decorator. Every other error of the store is a fault of ours and passes unchanged.

    Raises:
        StoreUnavailable: away, slow, loading, read-only, full, or the cluster is down.
    """
    try:
        yield
    except (
        redis.ConnectionError,
        redis.TimeoutError,
        redis.ReadOnlyError,
        redis.OutOfMemoryError,
        redis.exceptions.ClusterError,
        redis.exceptions.RedisClusterException,
        redis.exceptions.TryAgainError,
    ) as error:
        raise _unavailable(error) from error
    except redis.ResponseError as error:
        # A pipeline puts the command in front: "Command # 1 (SET a 1) of pipeline caused error: ".
        if not str(error).rpartition("caused error: ")[2].startswith(UNAVAILABLE_REPLIES):
            raise
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store cannot answer ({type(error).__name__}); nothing was changed half-way, "
        "try again in 1 s"
    )


def reply_bytes(reply: object) -> bytes:
    """Return a reply that is a string of the store.

    Raises:
        TypeError: it is none; the connection decodes responses, or the key has another type.
    """
    if not isinstance(reply, bytes):
        raise TypeError(f"the store answered {type(reply).__name__} where bytes were expected")
    return reply


def reply_text(reply: object) -> str:
    """Return a reply that is UTF-8 text; errors as for `reply_bytes`."""
    return reply_bytes(reply).decode()


def reply_int(reply: object) -> int:
    """Return a whole number, which the store sends as such or as a string; nil is 0."""
    if reply is None:
        return 0
    if isinstance(reply, float) and reply.is_integer():
        # redis-py turns the scores of sorted sets into floats
        return int(reply)
    return reply if isinstance(reply, int) else int(reply_bytes(reply))


def reply_pair(reply: object) -> tuple[object, object]:
    """Return a reply of two parts.

    Raises:
        TypeError: it is not a list of two.
    """
    first, second = reply_parts(reply, 2)
    return first, second


def reply_parts(reply: object, count: int) -> tuple[object, ...]:
    """Return a reply of `count` parts.

    Raises:
        TypeError: it is not a list of that length.
    """
    if not isinstance(reply, list | tuple) or len(reply) != count:
        raise TypeError(
            f"the store answered {type(reply).__name__} where a list of {count} was expected"
        )
    return tuple(reply)


class ServerVersion(NamedTuple):
    """Name and version that a server reports, such as `("Valkey", "9.1.2")`."""

    name: str
    version: str


def version_from_info(info: Mapping[str, object]) -> ServerVersion:
    """Read name and version from the `server` section of INFO.

    Valkey also reports the Redis version it is compatible with; its own version counts.
    """
    if "valkey_version" in info:
        return ServerVersion("Valkey", str(info["valkey_version"]))
    return ServerVersion("Redis", str(info.get("redis_version", UNKNOWN)))


def version_from_output(output: str) -> ServerVersion:
    """Read name and version from what a program prints for `--version`.

    Redis prints `Redis server v=7.0.15 sha=...`, Valkey `Valkey server v=9.1.2 sha=...`.
    """
    found = re.match(r"(Redis|Valkey) server v=(\S+)", output)
    return ServerVersion(found[1], found[2]) if found else ServerVersion("Redis", UNKNOWN)


def check_minimum_version(server: ServerVersion, *, found_at: str) -> None:
    """Reject a server without functions; `found_at` is the program or the setting that named it.

    Raises:
        StoreStartError: naming the server, its version and the oldest accepted version.
    """
    numbers = re.match(r"(\d+)\.(\d+)", server.version)
    if numbers and (int(numbers[1]), int(numbers[2])) >= OLDEST[server.name]:
        return
    raise StoreStartError(
        f"the store ({found_at}) is {server.name} {server.version}; guardwave needs Redis >= 7.0 "
        "or Valkey >= 7.2, for their functions. Update it, or unset REDIS_URL and install "
        "guardwave[server], which brings one"
    )


def check_version(client: redis.Redis) -> ServerVersion:
    """Return the server's version; on a cluster, check every node that takes writes.

    Raises:
        StoreStartError: a server is too old for functions, or cannot be reached.
    """
    versions = [_version_of(primary) for primary in primaries(client)]
    for server in versions:
        check_minimum_version(server, found_at="REDIS_URL")
    return versions[0]


def _version_of(client: redis.Redis) -> ServerVersion:
    try:
        return version_from_info(client.info("server"))
    except redis.RedisError as error:
        raise StoreStartError(
            f"the store does not answer ({error}); check REDIS_URL, its password and the network"
        ) from error
