"""The connection every store is given: how it is made, what it refuses, how its absence is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from control_plane.errors import SettingsError, StoreStartError, StoreUnavailable
from control_plane.settings import Settings
from control_plane.stores.data_directory import socket_path
from control_plane.stores.version import ServerVersion, refuse_old, version_in_info

# An OTLP client gives up after 10 s at best; an answer within 5 s leaves it time to retry.
TIMEOUT_S = 2.0
HEALTH_CHECK_S = 15

# Replies without an exception class of their own that mean "not now", not "wrong request".
UNAVAILABLE_REPLIES = ("BUSY ", "MISCONF ", "NOREPLICAS ")


def connect(settings: Settings) -> redis.Redis:
    """Return a client of `REDIS_URL`, else of the embedded server of the data directory.

    The client connects when first used and may be shared between threads. A broken connection is
    tried anew once, which is safe because every write is idempotent; a timeout is not tried again.

    Raises:
        SettingsError: redis-py does not understand `REDIS_URL`.
        StoreStartError: no server was ever started on a data directory with a long path.
    """
    url = settings.redis_url or f"unix://{quote(str(socket_path(settings.data_dir)))}"
    try:
        return redis.Redis.from_url(
            url,
            # RESP2: the same Lua conversions on every server, and no pushed frames in between.
            protocol=2,
            decode_responses=False,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            health_check_interval=HEALTH_CHECK_S,
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        )
    except ValueError:
        raise SettingsError(
            "REDIS_URL", "redis://...", "set redis://host:port/db, rediss:// or unix://"
        ) from None


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
        redis.exceptions.ClusterDownError,
        redis.exceptions.TryAgainError,
    ) as error:
        raise _away(error) from error
    except redis.ResponseError as error:
        # A pipeline puts the command in front: "Command # 1 (SET a 1) of pipeline caused error: ".
        if not str(error).rpartition("caused error: ")[2].startswith(UNAVAILABLE_REPLIES):
            raise
        raise _away(error) from error


def _away(error: redis.RedisError) -> StoreUnavailable:
    return StoreUnavailable(
        f"the store cannot answer ({type(error).__name__}); nothing was changed half-way, "
        "try again in 1 s"
    )


def check_version(client: redis.Redis) -> ServerVersion:
    """Return what the server is, or refuse it.

    Raises:
        StoreStartError: the server is too old for functions, or cannot be reached.
    """
    try:
        info = client.info("server")
    except redis.RedisError as error:
        raise StoreStartError(
            f"the store does not answer ({error}); check REDIS_URL, its password and the network"
        ) from error
    server = version_in_info(info)
    refuse_old(server, found_at="REDIS_URL")
    return server
