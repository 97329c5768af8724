"""The connection every store is given: what it refuses, and how its absence is told."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from control_plane.errors import StoreStartError, StoreUnavailable
from control_plane.stores.clients import primaries
from control_plane.stores.version import ServerVersion, refuse_old, version_in_info

# Replies without an exception class of their own that mean "not now", not "wrong request".
UNAVAILABLE_REPLIES = ("BUSY ", "MISCONF ", "NOREPLICAS ")


@contextmanager
def unavailable() -> Iterator[None]:
    """Turn what redis-py raises when the store cannot answer now into StoreUnavailable.

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
        raise _away(error) from error
    except redis.ResponseError as error:
        # A pipeline puts the command in front: "Command # 1 (SET a 1) of pipeline caused error: ".
        if not str(error).rpartition("caused error: ")[2].startswith(UNAVAILABLE_REPLIES):
            raise
        raise _away(error) from error


def _away(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store cannot answer ({type(error).__name__}); nothing was changed half-way, "
        "try again in 1 s"
    )


def check_version(client: redis.Redis) -> ServerVersion:
    """Return what the server is, or refuse it; of a cluster every node that takes writes is asked.

    Raises:
        StoreStartError: a server is too old for functions, or cannot be reached.
    """
    found = [_version_of(each) for each in primaries(client)]
    for server in found:
        refuse_old(server, found_at="REDIS_URL")
    return found[0]


def _version_of(client: redis.Redis) -> ServerVersion:
    try:
        return version_in_info(client.info("server"))
    except redis.RedisError as error:
        raise StoreStartError(
            f"the store does not answer ({error}); check REDIS_URL, its password and the network"
        ) from error
