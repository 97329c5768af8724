"""Data directory: the socket, and the locks that show which process supervises and serves."""

import fcntl
import os
import stat
import tempfile
import time
from pathlib import Path
from typing import TextIO

from guardwave.control_plane.core.errors import StoreStartError

SOCKET_FILE = "store.sock"
SOCKET_POINTER = "store.socket"

# sun_path holds 104 bytes on macOS and 108 on Linux, its terminating zero included.
SOCKET_PATH_BYTES = 103

LOCK_POLL_S = 0.01


def private_directory(data_dir: Path) -> Path:
    """Make the directory (mode 0700) when it is missing; return its absolute path.

    Raises:
        StoreStartError: it is a file, or this user may not make it or write to it.
    """
    directory = data_dir.absolute()
    remedy = "set GUARDWAVE_DATA to a directory this user can write in"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreStartError(
            f"GUARDWAVE_DATA={str(directory)!r} cannot be made ({error.strerror}); {remedy}"
        ) from error
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise StoreStartError(f"GUARDWAVE_DATA={str(directory)!r} is not writable; {remedy}")
    return directory


def socket_path(data_dir: Path) -> Path:
    """Return the server's socket; the same path after every restart.

    Raises:
        StoreStartError: the path is too long for a socket and no server was started yet.
    """
    directory = data_dir.absolute()
    direct = directory / SOCKET_FILE
    if _fits(direct):
        return direct
    try:
        return Path((directory / SOCKET_POINTER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreStartError(
            f"no store was started on GUARDWAVE_DATA={str(directory)!r}; start guardwave serve "
            "on it, or set REDIS_URL"
        ) from None


def place_socket(data_dir: Path) -> Path:
    """Return the socket for a new server, in a short private directory when the path is too long.

    That directory stays for good: clients that know its path find the next server there.

    Raises:
        StoreStartError: no path is short enough, or the directory is not this user's alone.
    """
    direct = data_dir / SOCKET_FILE
    if _fits(direct):
        return direct
    pointer = data_dir / SOCKET_POINTER
    if not pointer.exists():
        short = Path(tempfile.mkdtemp(prefix="guardwave-")) / SOCKET_FILE
        if not _fits(short):
            short.parent.rmdir()
            raise StoreStartError(
                f"GUARDWAVE_DATA={str(data_dir)!r} and TMPDIR={str(short.parent.parent)!r} are "
                f"both too long for a socket ({SOCKET_PATH_BYTES} bytes); set a shorter "
                "GUARDWAVE_DATA"
            )
        pointer.write_text(str(short), encoding="utf-8")
    socket = Path(pointer.read_text(encoding="utf-8"))
    socket.parent.mkdir(mode=0o700, exist_ok=True)
    status = socket.parent.lstat()
    # The system may have removed the directory, and another user may have made it again.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StoreStartError(
            f"{socket.parent} is not a directory of this user alone; delete {pointer} and "
            "start again"
        )
    return socket


def lock(path: Path, *, limit_s: float) -> TextIO | None:
    """Lock a file while the result stays open; None when another process holds it past the limit.

    A child process that inherits the descriptor keeps the lock when this process ends.
    """
    file = path.open("a+", encoding="ascii")
    deadline = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(LOCK_POLL_S)
        else:
            return file


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock. The check takes a shared lock, so checks never collide."""
    try:
        with path.open("r", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _fits(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= SOCKET_PATH_BYTES
