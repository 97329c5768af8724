"""Store clients: one for each arrangement of servers (a single one, Sentinels, a cluster)."""

from typing import Any, cast
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from guardwave.control_plane.core.errors import SettingsError, StoreStartError
from guardwave.control_plane.core.settings import Settings, StoreKind, StoreUrl
from guardwave.control_plane.stores.server.data_directory import socket_path

# An OTLP client gives up after 10 s at best; an answer within 5 s leaves it time to retry.
TIMEOUT_S = 2.0
# A command may wait for a node, then for another node's view of the cluster, then once more.
CLUSTER_TIMEOUT_S = 1.0
HEALTH_CHECK_S = 15


class ClusterClient(RedisCluster):
    """A client of a cluster that finds the slot of a function call by itself."""

    def determine_slot(self, *args: Any) -> int | None:
        """Return the slot of a command; all keys of a function share the slot of the first.

        redis-py would ask its default node for the keys before each call, without a retry: when
        that node is lost, no function could be called.
        """
        if args[0] == "FCALL":
            _, _, _, first, *_ = args
            return int(self.keyslot(first))  # type: ignore[no-untyped-call]  # as redis-py has it
        slot: int | None = super().determine_slot(*args)
        return slot


def connect(settings: Settings) -> redis.Redis:
    """Return a client of `REDIS_URL`, else of the embedded server of the data directory.

    Threads may share it. A broken connection is tried again once, which is safe because every
    write is idempotent; only a cluster's client tries again after a timeout. A cluster's client
    asks for the nodes at once, the others connect when first used.

    Raises:
        SettingsError: redis-py does not understand `REDIS_URL`.
        StoreStartError: no server was ever started on a data directory with a long path, or no
            node of the cluster answers.
    """
    url = settings.store_url
    try:
        match (url, settings.store):
            case (None, _):
                path = quote(str(socket_path(settings.data_dir)))
                return _standalone(StoreUrl(f"unix://{path}"))
            case (StoreUrl(), StoreKind.SENTINEL):
                return _sentinel_master(url)
            case (StoreUrl(), StoreKind.CLUSTER):
                return _cluster(url)
            case (StoreUrl(), StoreKind.STANDALONE):
                return _standalone(url)
    except ValueError:
        raise SettingsError(
            "REDIS_URL", "redis://...", "set redis://host:port/db, rediss:// or unix://"
        ) from None


def primaries(client: redis.Redis) -> tuple[redis.Redis, ...]:
    """Return a client of each server that takes writes; a cluster has several."""
    if not isinstance(client, RedisCluster):
        return (client,)
    return tuple(client.get_redis_connection(node) for node in client.get_primaries())


def is_cluster(client: redis.Redis) -> bool:
    """Whether keys are spread over several servers."""
    return isinstance(client, RedisCluster)


def _standalone(url: StoreUrl) -> redis.Redis:
    return redis.Redis.from_url(url.text, **_options(TIMEOUT_S), retry=_retry())


def _sentinel_master(url: StoreUrl) -> redis.Redis:
    given = parse_url(url.text)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
    options = {name: given[name] for name in given if name not in _ADDRESS_OPTIONS}
    timing = {**_options(TIMEOUT_S), "ssl": url.is_encrypted, "retry": _retry()}
    sentinel_options = {
        name.removeprefix("sentinel_"): value for name, value in url.sentinel_options.items()
    }
    sentinels = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        url.places, sentinel_kwargs={**timing, **sentinel_options}
    )
    master: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]  # as above
        url.master, **{**options, **timing}
    )
    return master


def _cluster(url: StoreUrl) -> redis.Redis:
    nodes = [
        ClusterNode(host, port)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        for host, port in url.places
    ]
    try:
        cluster = ClusterClient.from_url(
            url.text,
            startup_nodes=nodes,
            **_options(CLUSTER_TIMEOUT_S),
            retry=_retry(),
        )
    except redis.exceptions.RedisClusterException as error:
        raise StoreStartError(
            f"no node of the cluster answers ({error}); check REDIS_URL, its password, the network "
            "and whether every slot is served"
        ) from error
    # A cluster has the commands that the stores use; redis-py gives both no common type.
    return cast(redis.Redis, cluster)


# Options of the URL's own address; the Sentinels name the master's instead.
_ADDRESS_OPTIONS = ("host", "port", "connection_class")


def _options(timeout_s: float) -> dict[str, Any]:
    return {
        # RESP2: the same Lua conversions on every server, and no pushed frames in between.
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "health_check_interval": HEALTH_CHECK_S,
    }


def _retry() -> Retry:
    return Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
