"""Which servers will do: what one says it is, and the refusal of one that is too old."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from control_plane.errors import StoreStartError

UNKNOWN = "of unknown version"
OLDEST = {"Redis": (7, 0), "Valkey": (7, 2)}


class ServerVersion(NamedTuple):
    """What a server says it is, such as `("Valkey", "9.1.2")`."""

    name: str
    version: str


def version_in_info(info: Mapping[str, object]) -> ServerVersion:
    """Read name and version out of INFO's `server` section.

    Valkey also reports the Redis version it is compatible with; its own one decides.
    """
    if "valkey_version" in info:
        return ServerVersion("Valkey", str(info["valkey_version"]))
    return ServerVersion("Redis", str(info.get("redis_version", UNKNOWN)))


def version_in_words(words: str) -> ServerVersion:
    """Read name and version out of what a program answers to `--version`.

    Redis says `Redis server v=7.0.15 sha=...`, Valkey `Valkey server v=9.1.2 sha=...`.
    """
    found = re.match(r"(Redis|Valkey) server v=(\S+)", words)
    return ServerVersion(found[1], found[2]) if found else ServerVersion("Redis", UNKNOWN)


def refuse_old(server: ServerVersion, *, found_at: str) -> None:
    """Refuse a server without functions; `found_at` is the program, or the setting that led to it.

    Raises:
        StoreStartError: naming the server, its version and the oldest that will do.
    """
    numbers = re.match(r"(\d+)\.(\d+)", server.version)
    if numbers and (int(numbers[1]), int(numbers[2])) >= OLDEST[server.name]:
        return
    raise StoreStartError(
        f"the store ({found_at}) is {server.name} {server.version}; guardwave needs Redis >= 7.0 "
        "or Valkey >= 7.2, for their functions. Update it, or unset REDIS_URL and install "
        "guardwave[server], which brings one"
    )
