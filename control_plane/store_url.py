"""`REDIS_URL` taken apart: one server, the Sentinels of one, or nodes of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from control_plane.errors import SettingsError

SCHEMES = ("redis", "rediss", "unix")
_REMEDY = "set redis://, rediss:// or unix:// with a host or a path, or unset it"
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


class StoreKind(StrEnum):
    """How the servers behind `REDIS_URL` are arranged."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"

    @property
    def default_port(self) -> int:
        """Return where its servers listen when the URL names no port."""
        return 26379 if self is StoreKind.SENTINEL else 6379


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """Where the store is. `text` is one that redis-py reads, with the first of the places.

    `master` is the name by which Sentinels know the server; `sentinel_options` is how one signs in
    with them. Neither stands in the repr of settings, and no message quotes them.
    """

    text: str = field(repr=False)
    places: tuple[tuple[str, int], ...] = ()
    master: str = ""
    sentinel_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_encrypted(self) -> bool:
        """Whether connections are made with TLS."""
        return self.text.startswith("rediss://")

    @classmethod
    def parsed(cls, url: str, kind: StoreKind) -> "StoreUrl":
        """Read a URL of this kind of store.

        Several places are separated by commas; the path of a Sentinel's URL names the master:
        `redis://user:password@one:26379,two:26379,three/mymaster`.

        Raises:
            SettingsError: naming the variable and what to set instead, never what the URL holds
                beyond its scheme.
        """
        try:
            parts = urlsplit(url)
            if kind is StoreKind.STANDALONE:
                return cls(_standalone(url, parts))
            places = _places(parts, kind)
        except ValueError:
            raise _unusable(url, _remedy(kind)) from None
        master = unquote(parts.path.strip("/"))
        names_one = bool(master) == (kind is StoreKind.SENTINEL)
        if parts.scheme not in {"redis", "rediss"} or not places or not names_one:
            raise _unusable(url, _remedy(kind))
        own = {name: text for name, text in parse_qsl(parts.query) if name in _SENTINEL_OPTIONS}
        return cls(_of_first(parts, places[0]), places, master, own)


def _standalone(url: str, parts: SplitResult) -> str:
    place = parts.path if parts.scheme == "unix" else parts.hostname
    _ = parts.port
    if parts.scheme not in SCHEMES or not place:
        raise ValueError("no place")
    return url


def _places(parts: SplitResult, kind: StoreKind) -> tuple[tuple[str, int], ...]:
    found = []
    for each in parts.netloc.rpartition("@")[2].split(","):
        at = urlsplit(f"//{each.strip()}")
        if not at.hostname:
            raise ValueError("a place without a host")
        found.append((at.hostname, at.port or kind.default_port))
    return tuple(found)


def _of_first(parts: SplitResult, place: tuple[str, int]) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    host, port = place
    shown = f"[{host}]" if ":" in host else host
    kept = "&".join(
        option for option in parts.query.split("&") if not option.startswith("sentinel_")
    )
    return f"{parts.scheme}://{user}{at}{shown}:{port}{'?' if kept else ''}{kept}"


def _remedy(kind: StoreKind) -> str:
    match kind:
        case StoreKind.STANDALONE:
            return _REMEDY
        case StoreKind.SENTINEL:
            return "set redis://sentinel-1:26379,sentinel-2:26379/NAME, with the master's name"
        case StoreKind.CLUSTER:
            return "set redis://node-1:6379,node-2:6379 with some of the cluster's nodes, no path"


def _unusable(url: str, remedy: str) -> SettingsError:
    """Show the scheme alone: user info, path and query may hold secrets."""
    scheme, mark, _ = url.partition("://")
    return SettingsError("REDIS_URL", f"{scheme}://..." if mark else "(a text without ://)", remedy)
