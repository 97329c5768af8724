"""How a client of each arrangement of servers is made: one server, Sentinels, a cluster."""

from typing import Any, cast
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from control_plane.errors import SettingsError, StoreStartError
from control_plane.settings import Settings
from control_plane.store_url import StoreKind, StoreUrl
from control_plane.stores.data_directory import socket_path

# An OTLP client gives up after 10 s at best; an answer within 5 s leaves it time to retry.
TIMEOUT_S = 2.0
# A command may wait for a node, then for what another one says of the cluster, then once more.
CLUSTER_TIMEOUT_S = 1.0
HEALTH_CHECK_S = 15


class Nodes(RedisCluster):
    """A cluster's client that knows by itself where a function's keys are."""

    def determine_slot(self, *args: Any) -> int | None:
        """Return the slot of a command. The keys of a function are all in that of the first.

        redis-py would ask its default node for the keys, before each call and without a retry: once
        that node is lost, no function could be called any more.
        """
        if args[0] == "FCALL":
            _, _, _, first, *_ = args
            return int(self.keyslot(first))  # type: ignore[no-untyped-call]  # as redis-py has it
        slot: int | None = super().determine_slot(*args)
        return slot


def connect(settings: Settings) -> redis.Redis:
    """Return a client of `REDIS_URL`, else of the embedded server of the data directory.

    It may be shared between threads. A broken connection is tried anew once, which is safe because
    every write is idempotent; a timeout is tried again by a cluster's client only. That one asks
    for the nodes at once, the others connect when first used.

    Raises:
        SettingsError: redis-py does not understand `REDIS_URL`.
        StoreStartError: no server was ever started on a data directory with a long path, or no node
            of the cluster answers.
    """
    url = settings.store_url
    try:
        match (url, settings.store):
            case (None, _):
                path = quote(str(socket_path(settings.data_dir)))
                return _standalone(StoreUrl(f"unix://{path}"))
            case (StoreUrl(), StoreKind.SENTINEL):
                return _master(url)
            case (StoreUrl(), StoreKind.CLUSTER):
                return _cluster(url)
            case (StoreUrl(), StoreKind.STANDALONE):
                return _standalone(url)
    except ValueError:
        raise SettingsError(
            "REDIS_URL", "redis://...", "set redis://host:port/db, rediss:// or unix://"
        ) from None


def primaries(client: redis.Redis) -> tuple[redis.Redis, ...]:
    """Return a client of each server that takes writes: of a cluster there are several."""
    if not isinstance(client, RedisCluster):
        return (client,)
    return tuple(client.get_redis_connection(node) for node in client.get_primaries())


def is_cluster(client: redis.Redis) -> bool:
    """Whether keys are spread over several servers."""
    return isinstance(client, RedisCluster)


def _standalone(url: StoreUrl) -> redis.Redis:
    return redis.Redis.from_url(url.text, **_options(TIMEOUT_S), retry=_retry())


def _master(url: StoreUrl) -> redis.Redis:
    given = parse_url(url.text)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
    options = {name: given[name] for name in given if name not in _OF_THE_PLACE}
    timing = {**_options(TIMEOUT_S), "ssl": url.is_encrypted, "retry": _retry()}
    own = {name.removeprefix("sentinel_"): value for name, value in url.sentinel_options.items()}
    sentinels = Sentinel(  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        url.places, sentinel_kwargs={**timing, **own}
    )
    found: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]  # as above
        url.master, **{**options, **timing}
    )
    return found


def _cluster(url: StoreUrl) -> redis.Redis:
    nodes = [
        ClusterNode(host, port)  # type: ignore[no-untyped-call]  # redis-py leaves it untyped
        for host, port in url.places
    ]
    try:
        cluster = Nodes.from_url(
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
    # It has the commands that the stores use; redis-py gives the two classes no common type.
    return cast(redis.Redis, cluster)


# What the URL says of a place; Sentinels tell where the master is instead.
_OF_THE_PLACE = ("host", "port", "connection_class")


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
