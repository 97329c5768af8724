"""What the environment variables say, read once when a process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from control_plane.errors import SettingsError

REDIS_SCHEMES = ("redis", "rediss", "unix")
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
DEFAULT_DATA = "guardwave-data"
# A request is read and answered within this: exporters give up after 10 s, a write that waits for
# a store that is away after 5 s. Whoever sends more slowly would keep a thread from the others.
DEFAULT_REQUEST_SECONDS = 15
DEFAULT_WORKERS = 2
MOST_WORKERS = 64


class StoreKind(StrEnum):
    """How the servers behind `REDIS_URL` are arranged."""

    STANDALONE = "standalone"


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
    request_seconds: int = DEFAULT_REQUEST_SECONDS

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
        return cls(
            host=given.get("GUARDWAVE_HOST", DEFAULT_HOST),
            port=_whole_number(given, "GUARDWAVE_PORT", default=DEFAULT_PORT, most=65535),
            data_dir=Path(given.get("GUARDWAVE_DATA", DEFAULT_DATA)).expanduser(),
            redis_url=_redis_url(given),
            store=_store_kind(given),
            policy_path=Path(policy) if policy else None,
            workers=_whole_number(
                given, "GUARDWAVE_WORKERS", default=DEFAULT_WORKERS, most=MOST_WORKERS
            ),
            otlp_prefix=_otlp_prefix(given),
            request_seconds=_whole_number(
                given, "GUARDWAVE_REQUEST_SECONDS", default=DEFAULT_REQUEST_SECONDS, most=600
            ),
        )


def _whole_number(given: Mapping[str, str], variable: str, *, default: int, most: int) -> int:
    text = given.get(variable)
    if text is None:
        return default
    # isdecimal alone would let through digits of other scripts, which int() reads too.
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= most):
        raise SettingsError(variable, text, f"set a whole number from 1 to {most}")
    return int(text)


def _redis_url(given: Mapping[str, str]) -> str | None:
    url = given.get("REDIS_URL")
    if url is None:
        return None
    remedy = "set redis://, rediss:// or unix:// with a host or a path, or unset it"
    try:
        parts = urlsplit(url)
        place = parts.path if parts.scheme == "unix" else parts.hostname
        _ = parts.port
    except ValueError:
        raise SettingsError("REDIS_URL", _scheme_alone(url), remedy) from None
    if parts.scheme not in REDIS_SCHEMES or not place:
        raise SettingsError("REDIS_URL", _scheme_alone(url), remedy)
    return url


def _scheme_alone(url: str) -> str:
    """Return what of the URL a message may show: user info, path and query may hold secrets."""
    scheme, mark, _ = url.partition("://")
    return f"{scheme}://..." if mark else "(a text without ://)"


def _store_kind(given: Mapping[str, str]) -> StoreKind:
    word = given.get("GUARDWAVE_STORE", StoreKind.STANDALONE)
    try:
        return StoreKind(word)
    except ValueError:
        remedy = "set standalone"
        if word in {"sentinel", "cluster"}:
            remedy = f"set standalone or leave it unset; {word} follows in a later release"
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
