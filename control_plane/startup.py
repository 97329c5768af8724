"""Opens the store and makes the context that every process begins with."""

import redis

from control_plane.clock import Clock
from control_plane.context import Context, over
from control_plane.policy import load
from control_plane.settings import Settings
from control_plane.stores.clients import connect
from control_plane.stores.connection import check_version
from control_plane.stores.demo import DemoMark, DemoStore
from control_plane.stores.functions import load_functions


def open_store(settings: Settings) -> redis.Redis:
    """Return a client of the store, after its version was checked and the functions were loaded.

    Raises:
        StoreStartError: the server is too old, or refuses the functions.
        StoreUnavailable: it cannot be reached.
    """
    client = connect(settings)
    check_version(client)
    load_functions(client)
    return client


def open_context(settings: Settings, client: redis.Redis) -> Context:
    """Return the context over an open store, on the demo's clock when the store is a demo's."""
    mark = DemoStore(client).mark()
    return over(client, clock=clock_of(mark), policies=load(settings.policy_path))


def clock_of(mark: DemoMark | None) -> Clock:
    """Return wall time, or the clock of a demo's mark."""
    if mark is None:
        return Clock()
    return Clock(
        wall_origin_ns=mark.wall_origin_ns,
        moment_origin_ns=mark.moment_origin_ns,
        speed=mark.speed,
    )
