"""Settings: the environment variables, read once when a process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from guardwave.control_plane.core.errors import SettingsError
from guardwave.control_plane.core.otlp_request import Limits

SCHEMES = ("redis", "rediss", "unix")
_REMEDY = "set redis://, rediss:// or unix:// with a host or a path, or unset it"
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


class StoreKind(StrEnum):
    """The arrangement of the servers behind `REDIS_URL`."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"

    @property
    def default_port(self) -> int:
        """The port of its servers when the URL names none."""
        return 26379 if self is StoreKind.SENTINEL else 6379


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The address of the store. `text` is a URL for redis-py with the first of the places.

    `master` is the server's name at the Sentinels; `sentinel_options` sign in with them. The repr
    leaves out the URL and these options, and no message quotes them.
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
    def parse(cls, url: str, kind: StoreKind) -> "StoreUrl":
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
        query = parse_qsl(parts.query)
        options = {name: text for name, text in query if name in _SENTINEL_OPTIONS}
        return cls(_single_place_url(parts, places[0]), places, master, options)


def _standalone(url: str, parts: SplitResult) -> str:
    place = parts.path if parts.scheme == "unix" else parts.hostname
    _ = parts.port
    if parts.scheme not in SCHEMES or not place:
        raise ValueError("no place")
    return url


def _places(parts: SplitResult, kind: StoreKind) -> tuple[tuple[str, int], ...]:
    found = []
    for part in parts.netloc.rpartition("@")[2].split(","):
        at = urlsplit(f"//{part.strip()}")
        if not at.hostname:
            raise ValueError("a place without a host")
        found.append((at.hostname, at.port or kind.default_port))
    return tuple(found)


def _single_place_url(parts: SplitResult, place: tuple[str, int]) -> str:
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
    """Return the error with the scheme alone: user info, path and query may hold secrets."""
    scheme, mark, _ = url.partition("://")
    return SettingsError("REDIS_URL", f"{scheme}://..." if mark else "(a text without ://)", remedy)


DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
# OTLP over gRPC has this port everywhere (IANA, opentelemetry-proto).
DEFAULT_GRPC_PORT = 4317
DEFAULT_DATA = "guardwave-data"
# The time to read and answer a request. Exporters give up after 10 s, and a write gives up on a
# store that is away after 5 s; a slower sender would keep a thread from the others.
DEFAULT_REQUEST_SECONDS = 15
DEFAULT_WORKERS = 2
MOST_WORKERS = 64
DEFAULT_LIMITS = Limits()
# A body takes up to twelve times its bytes of memory, in each of 16 threads.
LEAST_BODY_BYTES = 64 * 1024
MOST_WIRE_BYTES = 64 * 1024 * 1024
MOST_INFLATED_BYTES = 2 * MOST_WIRE_BYTES
# The batch of an SDK, and the most that is answered before exporters give up.
LEAST_RECORDS, MOST_RECORDS = 512, 50_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of `serve`, `worker` and `demo`; `redis_url` None means the embedded store."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    data_dir: Path = Path(DEFAULT_DATA)
    # Kept out of repr: the URL may hold a password, and settings end up in logs.
    redis_url: str | None = field(default=None, repr=False)
    store: StoreKind = StoreKind.STANDALONE
    policy_path: Path | None = None
    workers: int = DEFAULT_WORKERS
    otlp_prefix: str = ""
    grpc_port: int = DEFAULT_GRPC_PORT
    request_seconds: int = DEFAULT_REQUEST_SECONDS
    otlp_limits: Limits = DEFAULT_LIMITS

    @property
    def store_url(self) -> StoreUrl | None:
        """The address of the store; None means the embedded one.

        Raises:
            SettingsError: as `from_env`.
        """
        return None if self.redis_url is None else StoreUrl.parse(self.redis_url, self.store)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches a server that listens on `host`."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the settings; an empty variable counts as unset.

        Raises:
            SettingsError: naming the variable, its value and what to set instead.
        """
        given = {name: text.strip() for name, text in env.items() if text.strip()}
        policy = given.get("GUARDWAVE_POLICY")
        read = cls(
            host=given.get("GUARDWAVE_HOST", DEFAULT_HOST),
            port=_whole_number(given, "GUARDWAVE_PORT", default=DEFAULT_PORT, most=65535),
            data_dir=Path(given.get("GUARDWAVE_DATA", DEFAULT_DATA)).expanduser(),
            redis_url=given.get("REDIS_URL"),
            store=_store_kind(given),
            policy_path=Path(policy) if policy else None,
            workers=_whole_number(
                given, "GUARDWAVE_WORKERS", default=DEFAULT_WORKERS, most=MOST_WORKERS
            ),
            otlp_prefix=_otlp_prefix(given),
            grpc_port=_whole_number(
                given, "GUARDWAVE_GRPC_PORT", default=DEFAULT_GRPC_PORT, most=65535
            ),
            request_seconds=_whole_number(
                given, "GUARDWAVE_REQUEST_SECONDS", default=DEFAULT_REQUEST_SECONDS, most=600
            ),
            otlp_limits=_otlp_limits(given),
        )
        # Read once here, so that a URL which cannot be used stops the start.
        if read.store_url is None and read.store is not StoreKind.STANDALONE:
            remedy = f"set REDIS_URL to the servers of the {read.store}, or leave it unset"
            raise SettingsError("GUARDWAVE_STORE", read.store.value, remedy)
        return read


def _otlp_limits(given: Mapping[str, str]) -> Limits:
    wire_bytes = _whole_number(
        given,
        "GUARDWAVE_OTLP_WIRE_BYTES",
        default=DEFAULT_LIMITS.wire_bytes,
        least=LEAST_BODY_BYTES,
        most=MOST_WIRE_BYTES,
    )
    inflated_bytes = _whole_number(
        given,
        "GUARDWAVE_OTLP_INFLATED_BYTES",
        default=DEFAULT_LIMITS.inflated_bytes,
        least=LEAST_BODY_BYTES,
        most=MOST_INFLATED_BYTES,
    )
    if inflated_bytes < wire_bytes:
        remedy = f"set at least the {wire_bytes} bytes of GUARDWAVE_OTLP_WIRE_BYTES, or lower that"
        raise SettingsError("GUARDWAVE_OTLP_INFLATED_BYTES", str(inflated_bytes), remedy)
    records = _whole_number(
        given,
        "GUARDWAVE_OTLP_RECORDS",
        default=DEFAULT_LIMITS.records,
        least=LEAST_RECORDS,
        most=MOST_RECORDS,
    )
    return Limits(wire_bytes, inflated_bytes, records)


def _whole_number(
    given: Mapping[str, str], variable: str, *, default: int, most: int, least: int = 1
) -> int:
    text = given.get(variable)
    if text is None:
        return default
    # isdecimal alone would let through digits of other scripts, which int() reads too.
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and least <= int(text) <= most):
        raise SettingsError(variable, text, f"set a whole number from {least} to {most}")
    return int(text)


def _store_kind(given: Mapping[str, str]) -> StoreKind:
    word = given.get("GUARDWAVE_STORE", StoreKind.STANDALONE)
    try:
        return StoreKind(word)
    except ValueError:
        remedy = "set standalone, sentinel or cluster, or leave it unset"
        raise SettingsError("GUARDWAVE_STORE", word, remedy) from None


def _otlp_prefix(given: Mapping[str, str]) -> str:
    prefix = given.get("GUARDWAVE_OTLP_PREFIX", "").rstrip("/")
    segments = prefix.split("/")[1:]
    if prefix and not (
        prefix.startswith("/")
        and all(segments)
        and all(c.isascii() and (c.isalnum() or c in "._~-") for s in segments for c in s)
        and not {".", ".."} & set(segments)
    ):
        raise SettingsError(
            "GUARDWAVE_OTLP_PREFIX", prefix, "set a path such as /otlp, or leave it unset"
        )
    return prefix
